"""Clusters of an embedding: a Gaussian mixture's, or spectral ones where they are stabler.

Rows are gathered into at most 500 small clusters (nodes). Which nodes belong together is found in
two ways:

- A Gaussian mixture with one covariance for all clusters. It finds clusters that touch.
- Spectral clustering with the kernel that the embedding was learned by. Two nodes are as similar
  as InfoNCE's Cauchy kernel says, ``(1 + d^2 / (3 s^2)) ** -3`` times their sizes, where s is the
  median distance of a row to its 15th nearest. It finds clusters of any form.

Spectral clusters are taken if their stability is greater by a tenth: how well random halves of the
rows agree on clusters, times how evenly these divide the rows. (Halves always agree that nearly all
rows are one cluster.)

A new row belongs to the cluster of its nearest node.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NODES = 500  # and more where there are more clusters
NODES_EACH = 5
SAMPLE_ROWS = 20_000  # from which nodes are found
MOST = 40  # clusters that "auto" thinks of
BLOCK = 4096  # rows compared with all nodes at a time
RESAMPLES = 5  # random halves of the rows, that tell how stable clusters are
CLEARLY = 1.1  # times as stable as a mixture's have spectral clusters to be
LEAST_STABLE = 0.3  # adjusted Rand index of halves, below which there is one cluster only
NEIGHBOUR = 15  # whose distance is the unit of the kernel
EM_ROUNDS, EM_CHANGE = 100, 1e-3  # of a mixture, at most; shares that change less are final
RIDGE = 0.01  # added to its covariance, in units of the embedding's variance
WIDTH, POWER = 3.0, 3.0  # of the kernel
LEAST_GAP = 0.01  # added to what gaps between eigenvalues are divided by: near 1 all are equal
SHARPNESS = np.geomspace(0.1, 100, 61)  # of probabilities, of which the likeliest is taken


@dataclass(frozen=True, eq=False)
class Clusters:
    """Nodes with the cluster of each, from which rows get theirs.

    Attributes
    ----------
    centres : ndarray (nodes, dim)
    labels : ndarray (nodes,)
        Clusters from 0, those with more rows first.
    unit : float
        A distance between near rows.
    sharpness : float
        Of probabilities: what makes them agree best with clusters of random halves of the rows.
    stability : mapping of int to float
        Adjusted Rand index between the clusters and those of random halves of the rows, for the
        number of clusters and, if it was chosen, the next best number.
    """

    centres: NDArray[np.float32]
    labels: Ints
    unit: float = 1.0
    sharpness: float = 1.0
    stability: dict[int, float] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return int(self.labels.max()) + 1

    def expect(self, dim: int) -> Self:
        """These clusters, if they are of embeddings of so many numbers."""
        if self.centres.shape[1] != dim:
            raise ValueError(f"its clusters are of {self.centres.shape[1]} dimensions, not {dim}")
        return self

    def distances(self, Z: NDArray[np.floating]) -> Floats:
        """Distance of every row to the nearest node of each cluster: (n, count)."""
        return _nearest_of_each(np.asarray(Z, np.float64), self.centres, self.labels)

    def probabilities(self, Z: NDArray[np.floating]) -> Floats:
        """Probability of each cluster for every row: (n, count); the nearest is the likeliest."""
        return _softmax(-self.sharpness * self.distances(Z) / self.unit)

    def nodes(self, Z: NDArray[np.floating]) -> Ints:
        """The number of the nearest node, for every row: (n,)."""
        centres = np.asarray(self.centres, np.float64)
        parts = np.split(np.asarray(Z, np.float64), range(BLOCK, len(Z), BLOCK))
        return np.concatenate([_squares(part, centres).argmin(axis=1) for part in parts])

    def assign(self, Z: NDArray[np.floating]) -> Ints:
        """The cluster of the nearest node, for every row: (n,)."""
        return np.asarray(self.distances(Z).argmin(axis=1), np.int64)


def find_clusters(Z: NDArray[np.floating], count: int | None, seed: int) -> Clusters:
    """The clusters of an embedding.

    Parameters
    ----------
    Z : ndarray (n, dim)
    count : int or None
        How many; None chooses the number by the largest relative gap between eigenvalues of the
        similarities, ``(l_k - l_{k+1}) / (1.01 - l_{k+1})``, and 1 if the clusters of half of the
        rows are others.
    seed : int

    Examples
    --------
    >>> Z = np.repeat(np.eye(3), 20, axis=0) * 9 + np.random.default_rng(0).normal(size=(60, 3))
    >>> found = find_clusters(Z, None, seed=0)
    >>> found.count, found.assign(9 * np.eye(3)).tolist() == found.assign(Z[::20]).tolist()
    (3, True)
    """
    random = np.random.default_rng(seed)
    Z = np.asarray(Z, np.float64)[np.sort(random.permutation(len(Z))[:SAMPLE_ROWS])]
    centres, node = _nodes(Z, max(NODES, NODES_EACH * (count or 0)), seed)
    sizes = np.bincount(node, minlength=len(centres)).astype(np.float64)
    unit = _unit(Z, random)
    kernel = similarities(centres, unit)
    numbers = [count] if count is not None else _best_numbers(kernel, sizes)
    halves = [
        np.bincount(node[random.random(len(Z)) < 0.5], minlength=len(centres)).astype(np.float64)
        for _ in range(RESAMPLES)
    ]
    ways = (partial(mixture, centres), partial(partition, kernel))
    tried: dict[int, Ints] = {}
    again: dict[int, list[Ints]] = {}
    stability: dict[int, float] = {}
    for k in numbers:
        best = -1.0
        for way in ways:
            labels, others = way(sizes, k, seed), [way(half, k, seed) for half in halves]
            agreement = _agreement(labels, others, node)
            worth = agreement * _evenness(labels, sizes)
            if worth > CLEARLY * best:
                best, tried[k], again[k], stability[k] = worth, labels, others, agreement
    chosen = numbers[0]
    if count is None and stability[chosen] < LEAST_STABLE:
        tried[1], again[1] = np.zeros(len(centres), np.int64), []
        chosen = 1
    labels = _largest_first(tried[chosen], sizes)
    found = Clusters(centres.astype(np.float32), labels, unit, stability=stability)
    return replace(found, sharpness=_sharpness(found, Z, node, again[chosen]))


def _nodes(Z: Floats, most: int, seed: int) -> tuple[Floats, Ints]:
    """Small clusters of rows: their centres, and the one of each row; few rows are their own."""
    from sklearn.cluster import KMeans

    if len(Z) <= most:
        return Z, np.arange(len(Z))
    model = KMeans(most, init="random", n_init=1, max_iter=10, random_state=seed % 2**32)
    with _no_convergence_warnings():
        node = model.fit_predict(Z)
    used, node = np.unique(node, return_inverse=True)
    return np.asarray(model.cluster_centers_[used]), np.asarray(node.reshape(-1), np.int64)


def _unit(Z: Floats, random: np.random.Generator) -> float:
    """The median distance of a row to its 15th nearest, from some rows."""
    some = Z[random.permutation(len(Z))[:NODES]]
    rank = min(NEIGHBOUR, len(Z) - 1)
    distances = np.sqrt(_squares(some, Z))
    unit = float(np.median(np.partition(distances, rank, axis=1)[:, rank]))
    return unit or float(distances.mean()) or 1.0


def similarities(centres: Floats, unit: float) -> Floats:
    """The kernel between centres, 1 for equal ones."""
    return np.asarray((1 + _squares(centres, centres) / (WIDTH * unit**2)) ** -POWER)


def _eigen(kernel: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and vectors of the normalised similarities of nodes, the largest first."""
    weights = kernel * np.outer(sizes, sizes)
    scale = 1 / np.sqrt(weights.sum(axis=1).clip(1e-300))
    values, vectors = np.linalg.eigh(scale[:, None] * weights * scale)
    return values[::-1], vectors[:, ::-1]


def _best_numbers(kernel: Floats, sizes: Floats) -> list[int]:
    """The two numbers of clusters with the largest relative gap after them."""
    values, _ = _eigen(kernel, sizes)
    most = min(MOST, len(sizes) - 1)
    if most < 2:
        return [1]
    gaps = (values[1:most] - values[2 : most + 1]) / (1 - values[2 : most + 1] + LEAST_GAP)
    return [int(k) + 2 for k in np.argsort(-gaps, kind="stable")[:2]]


def partition(kernel: Floats, sizes: Floats, k: int, seed: int) -> Ints:
    """The cluster of every node, of `k`: spectral clustering (Ng, Jordan, Weiss, 2001).

    A node without rows belongs to the cluster of the most similar one that has some.
    """
    from sklearn.cluster import KMeans

    used = np.flatnonzero(sizes)
    if len(used) < len(sizes) and len(used) >= k:
        labels = partition(kernel[np.ix_(used, used)], sizes[used], k, seed)
        return np.asarray(labels[kernel[:, used].argmax(axis=1)])
    if k == 1:
        return np.zeros(len(sizes), np.int64)
    _, vectors = _eigen(kernel, sizes)
    leading = vectors[:, :k]
    leading = leading / np.linalg.norm(leading, axis=1, keepdims=True).clip(1e-12)
    model = KMeans(k, n_init=10, random_state=seed % 2**32)
    with _no_convergence_warnings():
        return np.asarray(model.fit(leading, sample_weight=sizes + 1e-9).labels_, np.int64)


def mixture(centres: Floats, sizes: Floats, k: int, seed: int) -> Ints:
    """The cluster of every node, of `k`: a Gaussian mixture with one covariance for all clusters.

    k-means finds the start; EM follows, in which nodes count by their sizes.
    """
    from sklearn.cluster import KMeans

    if k == 1:
        return np.zeros(len(sizes), np.int64)
    sizes = sizes + 1e-9
    with _no_convergence_warnings():
        found = KMeans(k, n_init=10, random_state=seed % 2**32).fit(centres, sample_weight=sizes)
    ridge = RIDGE * np.average((centres - np.average(centres, 0, sizes)) ** 2, 0, sizes).mean()
    shares = np.eye(k)[found.labels_]  # (nodes, k): of every node in each cluster
    for _ in range(EM_ROUNDS):
        weights = shares * sizes[:, None]
        total = weights.sum(axis=0).clip(1e-9)
        means = weights.T @ centres / total[:, None]
        scatter = (centres.T * sizes) @ centres - (means.T * total) @ means
        covariance = scatter / sizes.sum() + (ridge + 1e-12) * np.eye(len(scatter))
        whiten = np.linalg.inv(np.linalg.cholesky(covariance))
        squares = _squares(centres @ whiten.T, means @ whiten.T)
        before, shares = shares, _softmax(np.log(total) - squares / 2)
        if np.abs(shares - before).max() < EM_CHANGE:
            break
    return np.asarray(shares.argmax(axis=1), np.int64)


def _agreement(labels: Ints, others: list[Ints], node: Ints) -> float:
    from sklearn.metrics import adjusted_rand_score

    if not others:
        return 1.0
    return float(np.mean([adjusted_rand_score(labels[node], o[node]) for o in others]))


def _evenness(labels: Ints, sizes: Floats) -> float:
    """How many clusters there are in effect, by Simpson's index, over their number."""
    shares = np.bincount(labels, sizes) / sizes.sum()
    return float(1 / (shares**2).sum() / len(shares))


def _sharpness(found: Clusters, Z: Floats, node: Ints, others: list[Ints]) -> float:
    """The sharpness whose probabilities are likeliest for the clusters of halves of the rows."""
    from scipy.optimize import linear_sum_assignment

    if found.count == 1 or not others:
        return 1.0
    rows = np.arange(0, len(Z), max(1, len(Z) // 2000))
    distances = found.distances(Z[rows]) / found.unit
    targets = []
    for other in others:
        counts = np.zeros((int(other.max()) + 1, found.count))
        np.add.at(counts, (other[node], found.labels[node]), 1)
        theirs, ours = linear_sum_assignment(counts, maximize=True)
        match = np.full(len(counts), -1)
        match[theirs] = ours
        targets.append(match[other[node[rows]]])
    chosen = np.array(targets)  # (resamples, rows)

    def likelihood(sharpness: float) -> float:
        p = _softmax(-sharpness * distances)
        known = chosen >= 0
        return float(np.log(p[np.nonzero(known)[1], chosen[known]] + 1e-6).mean())

    return float(max(SHARPNESS, key=likelihood))


def _largest_first(labels: Ints, sizes: Floats) -> Ints:
    """Labels numbered by the rows they have; the first node decides among equals."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    rows = np.bincount(codes.reshape(-1), sizes)
    rank = np.empty(len(rows), np.int64)
    rank[np.lexsort((first, -rows))] = np.arange(len(rows))
    return np.asarray(rank[codes.reshape(-1)])


def _nearest_of_each(Z: Floats, centres: NDArray[np.floating], labels: Ints) -> Floats:
    out = np.empty((len(Z), int(labels.max()) + 1))
    for start in range(0, len(Z), BLOCK):
        part = slice(start, start + BLOCK)
        distances = np.sqrt(_squares(Z[part], np.asarray(centres, np.float64)))
        for label in range(out.shape[1]):
            out[part, label] = distances[:, labels == label].min(axis=1)
    return out


def _squares(a: Floats, b: Floats) -> Floats:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(a, b, "sqeuclidean"))


def _softmax(x: Floats) -> Floats:
    p = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


@contextmanager
def _no_convergence_warnings() -> Iterator[None]:
    """k-means warns of fewer distinct points than clusters; there are fewer clusters then."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
