"""Nearest rows, found without labels: the pairs that two views may be taken from.

Rows are compared in their leading principal components: noise in many columns hides which rows are
near. The search is exact up to `EXACT_ROWS` rows. Above, Faiss finds nearly all (engine.py), or
PyTorch alone where Faiss is not installed (cells.py). Users may name a metric for the search, or
pass neighbours of their own (precomputed.py).
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from selfview.distributed import Group, current
from selfview.errors import InputError, SelfViewWarning
from selfview.neighbours import cells, engine
from selfview.neighbours.cells import BLOCK, among
from selfview.rows.base import Rows
from selfview.rows.projection import ProjectedRows, principal_components
from selfview.saving.checkpoints import load_if_same, load_or_make, write_kept
from selfview.training.loop import Step

COMPONENTS = 50  # in which dense rows are compared
FURTHER = 3  # neighbours that a walk may pass after the first
EXACT_ROWS = 20_000
PART = 1 << 16  # rows that the engine is given at a time
MANY_ROWS = 100_000  # above, the engine is worth a word where it is missing
FALLBACK_ENTRIES = 1 << 29  # of points searched without the engine: 2 GiB, 10.7 million rows
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
    about : mapping or None, default None
        What tells these rows from others, that JSON can hold.
    folder : Path or None, default None
        Where to keep what was found, for a fit that goes on.
    first : int or None, default None
        Only for so many of the first rows. None: for all.
    walk : callable, default never
        From the epoch to the chance that a draw goes on from a neighbour to one of its neighbours.
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
        walk: Callable[[float], float] = lambda _: 0.0,
    ) -> None:
        self.rows, self.take, self.walk = rows, take, walk
        self.n = rows.n if first is None else first
        self.count, self.angle, self.scale = min(count, rows.n - 1), angle, scale
        self.components, self.metric = components, metric
        sizes = {"components": components, "rows": self.n, "count": self.count, "shape": rows.shape}
        self.about = {"angle": angle, "metric": metric, **sizes, **(about or {})}
        self.path = None if folder is None else folder / self.FILE

    def draw(self, step: Step) -> Tensor:
        """The end of a short random walk over neighbours from every row: (batch, *shape).

        Of k neighbours it takes the one of rank ``floor(k * u ** 2)``, u uniform in [0, 1). From
        there it goes on with the chance `walk(epoch)`, up to `FURTHER` times, never back to the row
        where it began.
        """
        chance = self.walk(step.epoch)
        further = FURTHER if chance else 0
        options = dict(generator=step.generator, device=step.generator.device)
        u = step.shard.draw(torch.rand, (len(step.rows), 1 + 2 * further), **options)
        ranks, goes = self._ranks(u[:, : 1 + further].cpu().numpy().T), u[:, 1 + further :] < chance
        at = self.numbers[step.rows, ranks[0]]
        for rank, go in zip(ranks[1:], goes.cpu().numpy().T, strict=True):
            to = self.numbers[at, rank]
            at = np.where(go & (to != step.rows), to, at)
        return self.take(at.astype(np.intp))

    def pairs(self, most: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Numbers of some rows, and of one neighbour of each."""
        random = np.random.default_rng(seed)
        some = np.sort(random.permutation(self.n)[:most])
        return some, self.numbers[some, self._ranks(random.random(len(some)))].astype(np.intp)

    def _ranks(self, u: NDArray[Any]) -> NDArray[np.intp]:
        """Ranks of neighbours for numbers uniform in [0, 1): nearer ones more often."""
        return (u**2 * self.count).astype(np.intp)

    @cached_property
    def numbers(self) -> NDArray[np.int32]:
        """(n, count), the same in all processes that share a fit; the first one keeps them."""
        group = current()
        if group.size == 1:
            return self._found()
        if not self._by_engine:
            data = group.from_main(lambda: self._found().tobytes())
            return np.frombuffer(data, np.int32).reshape(self.n, -1)
        known = group.from_main(lambda: load_if_same(self.path, self.about))
        found = known["numbers"].numpy() if known else self._search_together(group)
        if not known:
            group.from_main(lambda: write_kept(self.path, self.about, _as_tensors(found)))
        return found

    @property
    def _by_engine(self) -> bool:
        """Are all rows looked up in an index, so that they need not be in memory?"""
        plain = self.metric == "auto" and self.components > 0
        return plain and self.rows.n > EXACT_ROWS and engine.installed()

    def _found(self) -> NDArray[np.int32]:
        found = load_or_make(self.path, self.about, lambda: _as_tensors(self._search()))
        numbers: NDArray[np.int32] = found["numbers"].numpy()
        return numbers

    def _search(self) -> NDArray[np.int32]:
        if self.metric != "auto":
            return nearest_by_metric(self.rows, self.metric, self.count)[: self.n]
        if self._by_engine:
            return engine.nearest(self._parts(), self.rows.n, self.count, self.n)
        points = search_points(self.rows, self.components, angle=self.angle, scale=self.scale)
        return nearest(points, self.count, first=self.n)

    def _search_together(self, group: Group) -> NDArray[np.int32]:
        """The first process makes the index, and every one looks up its part of the rows."""
        parts = self._parts()
        index = group.from_main(lambda: engine.packed(engine.index_of(parts, self.rows.n)))
        own = range(self.n * group.rank // group.size, self.n * (group.rank + 1) // group.size)
        with group.all_or_none():
            found = engine.looked_up(engine.unpacked(index), parts, self.count, own)
        return np.concatenate(group.gathered(found))

    def _parts(self) -> engine.Parts:
        return search_parts(self.rows, self.components, angle=self.angle, scale=self.scale)


def _as_tensors(numbers: NDArray[np.int32]) -> dict[str, Tensor]:
    return {"numbers": torch.from_numpy(numbers)}


def search_points(
    rows: Rows, components: int, *, angle: bool, scale: float | Sequence[float] = 1.0
) -> Tensor:
    """Points in which rows are compared: their leading principal components.

    With 0 `components` the rows themselves, as in a stream, whose components change.
    """
    return torch.cat(list(search_parts(rows, components, angle=angle, scale=scale)()))


def search_parts(
    rows: Rows, components: int, *, angle: bool, scale: float | Sequence[float] = 1.0
) -> engine.Parts:
    """The same points, some at a time, each time that they are asked for."""
    projected: ProjectedRows | None = None
    if components:
        projected = (
            rows
            if isinstance(rows, ProjectedRows)
            else ProjectedRows(rows, principal_components(rows, components, scale=scale))
        )
    divisor = torch.tensor(scale, dtype=torch.float32)

    def parts() -> Iterator[Tensor]:
        found: Iterable[Tensor]
        if projected is None:
            found = (x.flatten(1).cpu() / divisor for _, x in rows.chunks())
        else:
            found = projected.component_chunks(min(components, projected.projection.signal))
        for points in found:
            yield F.normalize(points) if angle else points

    return parts


def nearest(points: Tensor, count: int, first: int | None = None) -> NDArray[np.int32]:
    """Numbers of the `count` points nearest to each point, nearest first, itself left out.

    Parameters
    ----------
    points : Tensor (n, components)
    count : int
        At most n - 1 are returned.
    first : int or None, default None
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
    if n <= EXACT_ROWS:
        return _exact(points, count, n if first is None else first)
    if engine.installed():
        return engine.nearest(lambda: torch.split(points, PART), n, count, first)
    _warn_without_faiss(n)
    return cells.nearest(points, count, first)


def searchable(rows: Rows) -> bool:
    """Can neighbours be searched for? Without the engine, all rows must fit into memory for it."""
    return rows.n * COMPONENTS <= FALLBACK_ENTRIES or engine.installed()


def _warn_without_faiss(n: int) -> None:
    if n > MANY_ROWS:
        warnings.warn(
            f"neighbours of {n:,} rows are searched by PyTorch alone, which takes longer and "
            "holds all of them in memory: pip install 'selfview[ann]'",
            SelfViewWarning,
            stacklevel=2,
        )


def _exact(points: Tensor, count: int, asked: int) -> NDArray[np.int32]:
    found = torch.empty(asked, count, dtype=torch.int32)
    everything = torch.arange(len(points))
    for part in torch.split(torch.arange(asked), BLOCK):
        found[part] = among(points, part, everything, count)
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
