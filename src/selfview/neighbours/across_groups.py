"""Neighbours in other groups: what differs between speakers, donors or days is not to be learned.

A row and a row of another group that shows the same are two views of one thing. Which rows these
are is found without labels: each group is centred and scaled, and two rows are a pair if each is
among the nearest of the other in its group (mutual nearest neighbours [1]_), and no further away
than the nearer rows of their own groups. The differences within pairs show how groups differ: their
covariance is whitened, as in within-class covariance normalisation [2]_, and the search repeated.
The network sees rows that are whitened likewise, so that it minds less in what groups differ, also
for groups that it never saw.

References
----------
.. [1] Haghverdi, Lun, Morgan, Marioni, "Batch effects in single-cell RNA-sequencing data are
   corrected by matching mutual nearest neighbors", Nature Biotechnology 36, 2018.
.. [2] Hatch, Kajarekar, Stolcke, "Within-class covariance normalization for SVM-based speaker
   recognition", Interspeech 2006.
"""

import math
import warnings
import zlib
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from selfview.errors import SelfViewWarning
from selfview.neighbours.cells import BLOCK
from selfview.neighbours.search import Neighbours, nearest, search_points
from selfview.rows.projection import ProjectedRows, Projection
from selfview.training.loop import Step
from selfview.whitening import matrix_power

SHARE = 0.3  # of the second views, from other groups; always so would lose what is right in a group
CANDIDATES = 5  # nearest rows looked at in another group
OTHERS = 6  # groups in which a row looks for them, at most
COMPONENTS = 100  # in which rows are compared; the first search takes half of them
RADIUS = 0.1  # a pair is nearer than all but this share of the rows of one's own group
RADIUS_ROWS = 1000  # of them, that are looked at
RIDGE = 0.3  # added to the covariance of differences, in units of its mean variance
INPUT_RIDGE = 1.0  # the same, for what the network sees
FEWEST = 10  # rows of a group that can be centred
LEAST_PAIRED = 0.05  # of the rows of a group; below, it has nothing in common with others

Index = NDArray[np.int64]
Pairs = tuple[Index, Index]


class GroupNeighbours(Neighbours):
    """Nearest rows in a row's own group, and rows of other groups that show the same.

    Parameters
    ----------
    groups : ndarray (n,) of int
        The group of every row, numbered from 0.
    *args, **options
        Those of `Neighbours`.
    """

    def __init__(self, *args: object, groups: NDArray[np.int64], **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.groups = groups
        self.about = {"groups": zlib.crc32(groups.tobytes()), **self.about}

    def draw(self, step: Step) -> Tensor:
        """One neighbour of every row: of another group in three of ten draws, where it has any."""
        table = self.numbers[step.rows].astype(np.intp)
        near, across = table[:, : self.count], table[:, self.count :]
        options = dict(generator=step.generator, device=step.generator.device)
        chance = step.shard.draw(torch.rand, (len(table), 3), **options).cpu().numpy().T
        every = np.arange(len(table))
        chosen = near[every, (chance[0] ** 2 * self.count).astype(np.intp)]
        counts = (across >= 0).sum(axis=1)
        partner = across[every, (chance[1] * counts).astype(np.intp)]
        return self.take(np.where((chance[2] < SHARE) & (counts > 0), partner, chosen))

    def _search(self) -> NDArray[np.int32]:
        points = search_points(self.rows, COMPONENTS, angle=False, scale=self.scale)
        within, across = group_search(points, self.groups, self.count, angle=self.angle)
        return np.concatenate([within, across], axis=1)


def usable_groups(groups: NDArray[np.int64]) -> bool:
    """Are there two groups of enough rows? Else a warning says that none are taken out."""
    sizes = np.bincount(groups)
    if (sizes >= FEWEST).sum() >= 2:
        return True
    found = "one group" if len(sizes) == 1 else f"{len(sizes)} groups of {sizes.max()} rows at most"
    warnings.warn(
        f"groups holds {found}, and nothing can be taken out: at least two groups of {FEWEST} rows "
        "are needed. The fit goes on without groups",
        SelfViewWarning,
        stacklevel=2,
    )
    return False


def group_search(
    points: Tensor, groups: NDArray[np.int64], count: int, *, angle: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Nearest rows in the own group (n, count), and in others (n, m), -1 where there are fewer.

    Parameters
    ----------
    points : Tensor (n, components)
        Rows in their principal components.
    groups : ndarray (n,) of int
    count : int
    angle : bool
        Compare directions, not positions.
    """
    members = _members(groups)
    found, pairs = _pairs(points, members, angle)
    alone = _alone(pairs, members)
    if alone:
        _warn_of(len(alone), len(members))
    return _own(found, members, count), _table(_in_common(pairs, alone), len(points))


def without_differences(
    rows: ProjectedRows, groups: NDArray[np.int64], *, angle: bool, power: float, length: float
) -> Projection:
    """The projection of `rows`, whitened by how the rows of pairs across groups differ.

    Directions in which rows of different groups differ that show the same count less. If there are
    too few pairs to tell, the projection is as it was.

    Parameters
    ----------
    rows : ProjectedRows
    groups : ndarray (n,) of int
    angle : bool
        Compare directions, not positions.
    power, length : float
        Whitening of the components and root mean square length of rows, as in
        `principal_components`.
    """
    before = rows.projection
    points = rows.components(rows.shape[0])
    members = _members(groups)
    _, pairs = _pairs(points[:, :COMPONENTS], members, angle)
    i, j = _in_common(pairs, _alone(pairs, members))
    if len(i) <= points.shape[1]:
        return before
    white = whitening(points[i] - points[j], INPUT_RIDGE)
    return before.followed_by(white, points, whitening=power, length=length)


def _members(groups: NDArray[np.int64]) -> list[Index]:
    return [np.flatnonzero(groups == g) for g in range(int(groups.max()) + 1)]


def _pairs(points: Tensor, members: Sequence[Index], angle: bool) -> tuple[Tensor, Pairs]:
    """The points in which rows are compared at last, and the pairs of rows of different groups."""
    large = [rows for rows in members if len(rows) >= FEWEST]
    points = centred(points, members)
    found = _unit(points[:, : max(1, points.shape[1] // 2)], angle)
    pairs = mutual_pairs(found, large)
    if len(pairs[0]) > points.shape[1]:
        points = points @ whitening(points[pairs[0]] - points[pairs[1]])
        found = _unit(points, angle)
        pairs = mutual_pairs(found, large)
    return found, pairs


def centred(points: Tensor, members: Sequence[Index]) -> Tensor:
    """Points around the mean of their group, in units of its root mean square length.

    Examples
    --------
    >>> x = torch.tensor([[1.0], [3.0], [100.0], [300.0]])
    >>> centred(x, [np.array([0, 1]), np.array([2, 3])]).T
    tensor([[-1.,  1., -1.,  1.]])
    """
    moved = torch.empty_like(points)
    for rows in members:
        around = points[rows] - points[rows].mean(0)
        length = around.square().sum(1).mean().sqrt()
        moved[rows] = around / length if length > 0 else around
    return moved


def mutual_pairs(points: Tensor, members: Sequence[Index]) -> Pairs:
    """Pairs of rows of different groups, each near to the other; every pair in both directions."""
    n, radii = len(points), np.zeros(len(points), np.float32)
    for rows in members:
        radii[rows] = _radii(points[rows])
    found: list[Index] = []
    for a, one in enumerate(members):
        for b in _others(a, len(members)):
            other = members[b]
            there = (one[:, None] * n + other[_nearest(points[one], points[other])]).ravel()
            back = (one[_nearest(points[other], points[one])] * n + other[:, None]).ravel()
            found.append(np.intersect1d(there, back))
    coded = np.concatenate([np.empty(0, np.int64), *found])
    i, j = np.divmod(coded, n)
    distances = torch.linalg.vector_norm(points[i] - points[j], dim=1).numpy()
    near = distances <= np.minimum(radii[i], radii[j])
    i, j = i[near], j[near]
    return np.concatenate([i, j]), np.concatenate([j, i])


def whitening(differences: Tensor, ridge: float = RIDGE) -> Tensor:
    """The symmetric map that makes these differences (m, d) alike in all directions, nearly.

    ``(C + ridge * mean(diag C)) ** -1/2`` of their covariance C.
    """
    covariance = (differences.T @ differences / len(differences)).double()
    added = ridge * covariance.diagonal().mean() * torch.eye(len(covariance), dtype=torch.float64)
    return matrix_power(covariance + added, -1 / 2).to(differences.dtype)


def _unit(points: Tensor, angle: bool) -> Tensor:
    return F.normalize(points) if angle else points


def _others(a: int, count: int) -> range | list[int]:
    """Groups with which group `a` is compared, each two groups once; of many, the next few."""
    if count - 1 <= OTHERS:
        return range(a + 1, count)
    return [(a + step) % count for step in range(1, OTHERS // 2 + 1)]


def _nearest(points: Tensor, among: Tensor) -> Index:
    """Numbers of the `CANDIDATES` nearest to each point: (n, candidates)."""
    count, squares = min(CANDIDATES, len(among)), among.square().sum(1)
    found = [
        torch.addmm(squares, part, among.T, alpha=-2).topk(count, largest=False).indices
        for part in torch.split(points, BLOCK)
    ]
    return torch.cat(found).numpy()


def _radii(points: Tensor) -> NDArray[np.float32]:
    """How far away the nearer rows of a group are, for each of its rows."""
    some = np.random.default_rng(0).permutation(len(points))[:RADIUS_ROWS]
    rank = 1 + math.ceil(RADIUS * (len(some) - 1))  # the row itself counts too, where it is drawn
    reference = points[some]
    found = [
        torch.cdist(part, reference).kthvalue(min(rank, len(some)), dim=1).values
        for part in torch.split(points, BLOCK)
    ]
    return torch.cat(found).numpy()


def _alone(pairs: Pairs, members: Sequence[Index]) -> list[Index]:
    """The rows of each group in which too few rows have a pair."""
    paired = np.zeros(max(rows.max() for rows in members) + 1, bool)
    paired[pairs[0]] = True
    return [rows for rows in members if paired[rows].mean() < LEAST_PAIRED]


def _in_common(pairs: Pairs, alone: Sequence[Index]) -> Pairs:
    """The pairs without rows of the groups `alone`."""
    i, j = pairs
    rows = np.concatenate([np.empty(0, np.int64), *alone])
    left = np.isin(i, rows) | np.isin(j, rows)
    return i[~left], j[~left]


def _warn_of(alone: int, groups: int) -> None:
    what = (
        "the groups have nothing in common"
        if alone == groups
        else f"{alone} of {groups} groups have nothing in common with the others"
    )
    warnings.warn(
        f"{what}: fewer than {LEAST_PAIRED:.0%} of their rows are near to a row of another group "
        f"(or they have fewer than {FEWEST}). They are not mixed",
        SelfViewWarning,
        stacklevel=2,
    )


def _own(points: Tensor, members: Sequence[Index], count: int) -> NDArray[np.int32]:
    """Nearest rows of the own group (n, count); fewer are repeated. A row alone has any nearest."""
    found = np.empty((len(points), count), np.int32)
    for rows in members:
        if len(rows) < 2:
            continue
        near = nearest(points[rows], count)
        found[rows] = rows[near[:, np.arange(count) % near.shape[1]]]
    alone = np.concatenate([np.empty(0, np.int64), *(rows for rows in members if len(rows) == 1)])
    if len(alone):
        found[alone] = nearest(points, count)[alone]
    return found


def _table(pairs: Pairs, n: int) -> NDArray[np.int32]:
    """The partners of every row, side by side; -1 where there are fewer."""
    i, j = pairs
    order = np.argsort(i, kind="stable")
    i, j = i[order], j[order]
    counts = np.bincount(i, minlength=n)
    place = np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((n, max(1, int(counts.max(initial=0)))), -1, np.int32)
    table[i, place] = j
    return table
