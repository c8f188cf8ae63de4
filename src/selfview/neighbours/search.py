"""Nearest rows, found without labels: the pairs that two views may be taken from.

Rows are compared in their leading principal components: noise in many columns hides which rows are
near. The search is exact up to `EXACT_ROWS` rows. Above, rows are sorted into about sqrt(n) cells,
and looked for in the cells around their own (an inverted file, as in Faiss). Users may name a
metric for the search, or bring neighbours of their own (precomputed.py).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from selfview.distributed import current
from selfview.errors import InputError
from selfview.rows.base import Rows
from selfview.rows.projection import ProjectedRows, principal_components
from selfview.saving.checkpoints import kept
from selfview.training.loop import Step

COMPONENTS = 50  # in which dense rows are compared
EXACT_ROWS = 20_000
CELLS_SEARCHED = 24  # around a row's own: of MNIST's nearest 15 rows 96 % are found
CELL_ROUNDS = 6  # of k-means, that finds the cells
CELL_SAMPLE = 20_000  # rows from which it does
BLOCK = 1024  # rows that are looked up at a time
METRIC_BYTES = 1 << 31  # of rows that are compared by a metric of scikit-learn's


class Neighbours:
    """The nearest rows of every row, from which a batch can draw; looked for when first needed.

    Parameters
    ----------
    rows : Rows
        The rows that are compared.
    take : callable
        From row numbers to rows as a network takes them.
    count : int
        How many to draw from.
    components : int, default 50
        Principal components in which rows are compared; 0 compares the rows themselves.
    angle : bool
        Compare directions, not positions.
    metric : str, default "auto"
        A distance of scikit-learn's, by which the rows themselves are compared. "auto": Euclidean
        distance or angle, in principal components.
    scale : float or sequence of float, default 1.0
        What rows, or their columns, are divided by first.
    about : mapping, optional
        What tells these rows from others, that JSON can hold.
    folder : Path or None, default None
        Where to keep what was found, for a fit that goes on.
    first : int, optional
        Only for so many of the first rows; for all of them if not given.
    """

    FILE = "neighbours.safetensors"

    def __init__(
        self,
        rows: Rows,
        take: Callable[[NDArray[np.intp]], Tensor],
        *,
        count: int,
        angle: bool,
        components: int = COMPONENTS,
        metric: str = "auto",
        scale: float | Sequence[float] = 1.0,
        about: Mapping[str, Any] | None = None,
        folder: Path | None = None,
        first: int | None = None,
    ) -> None:
        self.rows, self.take = rows, take
        self.n = rows.n if first is None else first
        self.count, self.angle, self.scale = min(count, rows.n - 1), angle, scale
        self.components, self.metric = components, metric
        sizes = {"components": components, "rows": self.n, "count": self.count, "shape": rows.shape}
        self.about = {"angle": angle, "metric": metric, **sizes, **(about or {})}
        self.path = None if folder is None else folder / self.FILE

    def draw(self, step: Step) -> Tensor:
        """One neighbour of every row of the batch, nearer ones more often: (batch, *shape).

        Of k neighbours it takes the one of rank ``floor(k * u ** 2)``, u uniform in [0, 1).
        """
        near = self.numbers[step.rows]  # (batch, count)
        options = dict(generator=step.generator, device=step.generator.device)
        chance = step.shard.draw(torch.rand, near.shape[:1], **options).cpu().numpy()
        chosen = (chance**2 * self.count).astype(np.intp)
        return self.take(near[np.arange(len(near)), chosen].astype(np.intp))

    @cached_property
    def numbers(self) -> NDArray[np.int32]:
        """(n, count); found by one process for all that share a fit."""
        data = current().from_main(lambda: self._found().tobytes())
        return np.frombuffer(data or b"", np.int32).reshape(self.n, -1)

    def _found(self) -> NDArray[np.int32]:
        found = kept(self.path, self.about, lambda: {"numbers": torch.from_numpy(self._search())})
        numbers: NDArray[np.int32] = found["numbers"].numpy()
        return numbers

    def _search(self) -> NDArray[np.int32]:
        if self.metric != "auto":
            return nearest_by_metric(self.rows, self.metric, self.count)[: self.n]
        points = search_points(self.rows, self.components, angle=self.angle, scale=self.scale)
        return nearest(points, self.count, first=self.n)


def search_points(
    rows: Rows, components: int, *, angle: bool, scale: float | Sequence[float] = 1.0
) -> Tensor:
    """Points in which rows are compared: their leading principal components.

    With 0 `components` the rows themselves, as in a stream, whose components change.
    """
    if not components:
        divisor = torch.tensor(scale, dtype=torch.float32)
        points = torch.cat([x.flatten(1).cpu() / divisor for _, x in rows.chunks()])
    elif isinstance(rows, ProjectedRows):
        points = rows.components(components)
    else:
        found = principal_components(rows, components, scale=scale)
        points = ProjectedRows(rows, found).components(components)
    return F.normalize(points) if angle else points


def nearest(points: Tensor, count: int, first: int | None = None) -> NDArray[np.int32]:
    """Numbers of the `count` points nearest to each point, nearest first, itself left out.

    Parameters
    ----------
    points : Tensor (n, components)
    count : int
        At most n - 1 are returned.
    first : int, optional
        Look for those of so many of the first points only.

    Returns
    -------
    ndarray (n, count) or (first, count)

    Examples
    --------
    >>> nearest(torch.tensor([[0.0], [1.0], [5.0]]), 1).ravel().tolist()
    [1, 0, 1]
    """
    n = len(points)
    count = min(count, n - 1)
    asked = n if first is None else first
    found = torch.empty(asked, count, dtype=torch.int32)
    everything = torch.arange(n)
    if n <= EXACT_ROWS:
        for part in torch.split(torch.arange(asked), BLOCK):
            found[part] = _among(points, part, everything, count)
        return found.numpy()
    for own, around in _cells(points):
        own = own[own < asked]
        candidates = around if len(around) > count else everything
        for part in torch.split(own, BLOCK):
            found[part] = _among(points, part, candidates, count)
    return found.numpy()


def nearest_by_metric(rows: Rows, metric: str, count: int) -> NDArray[np.int32]:
    """Numbers of the `count` nearest rows by a metric of scikit-learn's, itself left out."""
    from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS
    from sklearn.neighbors import NearestNeighbors

    size = 4 * rows.n * rows.n_features
    if size > METRIC_BYTES:
        raise InputError(
            f"metric={metric!r} compares the rows themselves, which would take {size / 2**30:.1f} "
            "GiB: find the neighbours elsewhere and pass them as neighbours=, or leave metric out"
        )
    X = torch.cat([x.flatten(1).cpu() for _, x in rows.chunks()]).numpy()
    if metric in PAIRWISE_BOOLEAN_FUNCTIONS:
        X = X.astype(bool)
    try:
        search = NearestNeighbors(n_neighbors=count, metric=metric).fit(X)
        found: NDArray[np.int32] = search.kneighbors(return_distance=False).astype(np.int32)
    except (ValueError, TypeError) as error:
        raise InputError(f"rows can't be compared by metric={metric!r}: {error}") from error
    return found


def _among(points: Tensor, part: Tensor, candidates: Tensor, count: int) -> Tensor:
    """The `candidates` nearest to each point of `part`, without itself."""
    there = points[candidates]
    # Squared distances, but for the square of the point itself, which orders nothing.
    distances = torch.addmm(there.square().sum(1), points[part], there.T, alpha=-2)
    distances.masked_fill_(candidates == part[:, None], math.inf)
    return candidates[distances.topk(count, largest=False).indices].int()


def _cells(points: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Every cell's points, and those of the cells around it with its own."""
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(points), generator=generator)
    centres, sample = points[order[: math.isqrt(len(points))]], points[order[:CELL_SAMPLE]]
    for _ in range(CELL_ROUNDS):
        cell = _nearest_centre(sample, centres)
        sums = torch.zeros_like(centres).index_add_(0, cell, sample)
        sizes = torch.bincount(cell, minlength=len(centres))[:, None]
        centres = torch.where(sizes > 0, sums / sizes.clamp_min(1), centres)
    cell = torch.cat([_nearest_centre(part, centres) for part in torch.split(points, 8 * BLOCK)])
    by_cell = cell.argsort()
    starts = torch.searchsorted(cell[by_cell], torch.arange(len(centres) + 1)).tolist()
    members = [by_cell[a:b] for a, b in pairwise(starts)]
    around = torch.cdist(centres, centres).topk(min(len(centres), CELLS_SEARCHED), largest=False)
    return [
        (own, torch.cat([members[i] for i in near]))
        for own, near in zip(members, around.indices.tolist(), strict=True)
        if len(own)
    ]


def _nearest_centre(points: Tensor, centres: Tensor) -> Tensor:
    return torch.addmm(centres.square().sum(1), points, centres.T, alpha=-2).argmin(1)
