"""Nested clusters: those that were found, merged into fewer and split into more.

Ward's criterion says which two are merged next, and which one is split next, in the feature space
of the kernel that clusters are found by: ``n_a n_b / (n_a + n_b) * |m_a - m_b| ** 2`` for clusters
of n_a and n_b rows whose means are m_a and m_b.

Where rows are pixels, clusters that are scattered among each other are merged before all others: a
homogeneous background that differs by noise is then one region, not confetti. If that would merge
all of them, places say nothing, and none is merged so.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from selfview.clusters import Clusters, partition, similarities

MOST = 20  # clusters, unless more were found
SCATTERED = 0.5  # of the neighbours that two clusters would have by chance
_NAMED = 3  # of the clusters that are merged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """A cluster of some number of clusters: its name, its place in the palette, and its nodes."""

    name: str
    slot: int
    nodes: Ints


@dataclass(frozen=True, eq=False)
class ClusterTree:
    """Clusters for every number from 1 on, each a part of one of the number before.

    Attributes
    ----------
    parts : tuple of Part
    levels : tuple of tuple of int
        ``levels[k - 1]`` are the numbers of the k parts that are all rows.
    found : int
        The number of clusters that were found.
    shown : int
        The number of clusters once those that are scattered among each other are merged.
    node : ndarray (n,)
        The node of every row.
    """

    parts: tuple[Part, ...]
    levels: tuple[tuple[int, ...], ...]
    found: int
    shown: int
    node: Ints

    def rows(self, part: int) -> Ints:
        """The numbers of a part's rows."""
        return np.flatnonzero(np.isin(self.node, self.parts[part].nodes))

    def codes(self, number: int) -> Ints:
        """For so many clusters, the place of every row's part in its level: (n,)."""
        return _codes([self.parts[part] for part in self.levels[number - 1]], self.node)

    def table(self) -> Ints:
        """For every number of clusters the code of each of the smallest parts: (numbers, parts)."""
        smallest = [self.parts[part].nodes[0] for part in self.levels[-1]]
        found = np.zeros((len(self.levels), len(smallest)), np.int64)
        for number, level in enumerate(self.levels):
            for code, part in enumerate(level):
                found[number, np.isin(smallest, self.parts[part].nodes)] = code
        return found


def cluster_tree(
    found: Clusters,
    Z: NDArray[np.floating],
    seed: int = 0,
    scatter: Callable[[Ints], Floats] | None = None,
) -> ClusterTree:
    """The tree of clusters of an embedding's rows (n, dim), through those that were found.

    `scatter` tells for the codes of all rows how much every two clusters are scattered among each
    other in space: 1 as by chance, 0 not at all.

    Examples
    --------
    >>> from selfview.clusters import find_clusters
    >>> Z = np.repeat(np.eye(3), 20, axis=0) * 9 + np.random.default_rng(0).normal(size=(60, 3))
    >>> tree = cluster_tree(find_clusters(Z, 3, seed=0), Z)
    >>> [tree.parts[part].name for part in tree.levels[2]]
    ['cluster 0', 'cluster 1', 'cluster 2']
    """
    used, node = np.unique(found.nodes(Z), return_inverse=True)
    node = node.reshape(-1)
    sizes = np.bincount(node).astype(np.float64)
    kernel = similarities(np.asarray(found.centres[used], np.float64), found.unit)
    labels = found.labels[used]
    base = [Part(f"cluster {c}", int(c), np.flatnonzero(labels == c)) for c in np.unique(labels)]
    joined = [] if scatter is None else list(_scattered(base, node, scatter))
    if joined and len(joined[-1]) == 1:
        joined = []
    fewer = [*joined, *_merged([base, *joined][-1], kernel, sizes)]
    more = list(_split(base, kernel, sizes, seed))
    partitions = [*reversed(fewer), base, *more]
    parts = list(dict.fromkeys(part for level in partitions for part in level))
    place = {part: number for number, part in enumerate(parts)}
    levels = tuple(tuple(place[part] for part in level) for level in partitions)
    return ClusterTree(tuple(parts), levels, len(base), len(base) - len(joined), node)


def _codes(parts: Sequence[Part], node: Ints) -> Ints:
    """The place of every row's part among the parts: (n,)."""
    place = np.zeros(int(node.max()) + 1, np.int64)
    for code, part in enumerate(parts):
        place[part.nodes] = code
    return np.asarray(place[node])


def _scattered(
    parts: Sequence[Part], node: Ints, scatter: Callable[[Ints], Floats]
) -> Iterator[list[Part]]:
    """The parts with the two most scattered among each other merged, as long as there are such."""
    parts = list(parts)
    while len(parts) > 1:
        found = np.triu(scatter(_codes(parts, node)), 1)
        a, b = (int(i) for i in np.unravel_index(found.argmax(), found.shape))
        if found[a, b] < SCATTERED:
            return
        parts = _with_merged(parts, a, b)
        yield parts


def _with_merged(parts: Sequence[Part], a: int, b: int) -> list[Part]:
    """The parts, of which the b-th is merged into the a-th."""
    nodes = np.concatenate([parts[a].nodes, parts[b].nodes])
    merged = Part(_joined(parts[a].name, parts[b].name), parts[a].slot, nodes)
    return [*parts[:a], merged, *parts[a + 1 : b], *parts[b + 1 :]]


def _merged(parts: Sequence[Part], kernel: Floats, sizes: Floats) -> Iterator[list[Part]]:
    """The parts with the two most alike merged, and so on until there is one."""
    parts = list(parts)
    while len(parts) > 1:
        costs = ward(kernel, sizes, parts)
        np.fill_diagonal(costs, np.inf)
        a, b = sorted(int(i) for i in np.unravel_index(costs.argmin(), costs.shape))
        parts = _with_merged(parts, a, b)
        yield parts


def _joined(one: str, other: str) -> str:
    """The numbers of merged clusters in one name; many are cut."""
    names = [name.removeprefix("cluster ").removesuffix("+…") for name in (one, other)]
    cut = any(name.endswith("+…") for name in (one, other))
    numbers = sorted((n for name in names for n in name.split("+")), key=int)
    more = "+…" * (cut or len(numbers) > _NAMED)
    return "cluster " + "+".join(numbers[:_NAMED]) + more


def _split(parts: Sequence[Part], kernel: Floats, sizes: Floats, seed: int) -> Iterator[list[Part]]:
    """The parts with the one of most unlike halves split, and so on as far as it goes."""
    parts = list(parts)
    slot = max(part.slot for part in parts) + 1
    halves: dict[Part, tuple[float, tuple[Part, Part]]] = {}
    while len(parts) < MOST:
        for part in parts:
            if part not in halves:
                halves[part] = _halves(part, kernel, sizes, seed)
        costs = [halves[part][0] for part in parts]
        chosen = int(np.argmax(costs))
        if costs[chosen] <= 0:
            return
        larger, smaller = halves[parts[chosen]][1]
        parts[chosen] = larger  # it keeps its colour
        parts.append(replace(smaller, slot=slot))
        slot += 1
        yield list(parts)


def _halves(
    part: Part, kernel: Floats, sizes: Floats, seed: int
) -> tuple[float, tuple[Part, Part]]:
    """Two spectral clusters of a part, the larger first, and Ward's criterion between them.

    It is 0 if the part can't be split.
    """
    nodes = part.nodes
    if len(nodes) < 2:
        return 0.0, (part, part)
    label = partition(kernel[np.ix_(nodes, nodes)], sizes[nodes], 2, seed)
    counts = np.bincount(label, sizes[nodes], minlength=2)
    if counts.min() == 0:
        return 0.0, (part, part)
    order = np.argsort(-counts, kind="stable")
    two = [
        Part(part.name + letter, part.slot, nodes[label == code])
        for letter, code in zip("ab", order, strict=True)
    ]
    return float(ward(kernel, sizes, two)[0, 1]), (two[0], two[1])


def ward(kernel: Floats, sizes: Floats, parts: Sequence[Part]) -> Floats:
    """Ward's criterion between all parts, in the feature space of the kernel: (parts, parts)."""
    weights = np.zeros((len(sizes), len(parts)))
    for code, part in enumerate(parts):
        weights[part.nodes, code] = sizes[part.nodes]
    rows = weights.sum(axis=0)
    weights = weights / rows
    products = weights.T @ kernel @ weights  # of the parts' means
    own = products.diagonal()
    squares = (own[:, None] + own - 2 * products).clip(0)
    return np.asarray(rows[:, None] * rows / (rows[:, None] + rows) * squares)
