"""Nearest rows, found without labels: the pairs that two views may be taken from.

Exact up to `EXACT_ROWS` rows. Above, rows are projected to the leading principal components of a
random sample, and looked for within that sample: the memory is then that of the sample, whatever
the number of rows, and the time grows with them in proportion.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from selfview.distributed import current
from selfview.errors import FileFormatError
from selfview.rows.base import Rows
from selfview.saving.checkpoints import differences
from selfview.saving.tensor_file import read_state, write_state
from selfview.training.loop import Step

EXACT_ROWS = 20_000
EXACT_NUMBERS = 1 << 28  # entries that the exact search may hold at once: 1 GiB of float32
SAMPLE_ROWS = 65_536
SAMPLE_NUMBERS = 1 << 25  # entries from which the principal components are taken
DIMENSIONS = 64
BLOCK = 4096  # rows that are looked up at a time

Points = NDArray[np.float32]


class Neighbours:
    """The nearest rows of every row, from which a batch can draw; looked for when first needed.

    Parameters
    ----------
    rows : Rows
    take : callable
        From row numbers to rows as a network takes them.
    count : int
        How many to draw from.
    cosine : bool
        Compare directions, not positions.
    spreads : sequence of float
        Of the columns, by which they are divided before they are compared; () for not at all.
    about : mapping
        What tells these rows from others, that JSON can hold.
    folder : Path or None
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
        cosine: bool,
        spreads: Sequence[float] = (),
        about: Mapping[str, Any] | None = None,
        folder: Path | None = None,
        first: int | None = None,
    ) -> None:
        self.rows, self.take = rows, take
        self.n = rows.n if first is None else first
        self.count, self.cosine, self.spreads = min(count, rows.n - 1), cosine, spreads
        told = {"cosine": cosine, "shape": rows.shape, **(about or {})}
        self.about = json.loads(json.dumps(told))  # as it will be read
        self.path = None if folder is None else folder / self.FILE

    def draw(self, step: Step) -> Tensor:
        """For every row of the batch, one of its neighbours: (batch, *shape)."""
        near = self.numbers[step.rows]  # (batch, count)
        options = dict(generator=step.generator, device=step.generator.device)
        chance = step.share.draw(torch.rand, near.shape[:1], **options).cpu().numpy()
        chosen = (chance * self.count).astype(np.intp)
        return self.take(near[np.arange(len(near)), chosen].astype(np.intp))

    @cached_property
    def numbers(self) -> NDArray[np.int32]:
        """(n, count); found by one process for all that share a fit."""
        data = current().from_leader(lambda: self._found().tobytes())
        return np.frombuffer(data or b"", np.int32).reshape(self.n, self.count)

    def _found(self) -> NDArray[np.int32]:
        shape = (self.n, self.count)
        if self.path is None:
            return self._look()
        with suppress(FileFormatError):
            tensors, meta = read_state(self.path)
            kept: NDArray[np.int32] = tensors.get("numbers", torch.empty(0)).numpy()
            same = kept.shape == shape and kept.dtype == np.int32
            if same and not differences(meta, self.about):
                return kept.clip(0, self.rows.n - 1)
        found = self._look()
        write_state(self.path, {"numbers": torch.from_numpy(found)}, self.about)
        return found

    def _look(self) -> NDArray[np.int32]:
        return nearest(
            self.rows, self.count, cosine=self.cosine, spreads=self.spreads, first=self.n
        )


def nearest(
    rows: Rows,
    count: int,
    *,
    cosine: bool,
    spreads: Sequence[float] = (),
    first: int | None = None,
) -> NDArray[np.int32]:
    """Numbers of the `count` rows nearest to each row, nearest first, itself left out.

    Parameters
    ----------
    rows : Rows
    count : int
        At most `rows.n - 1` are returned.
    cosine : bool
        Compare directions, not positions.
    spreads : sequence of float
        Of the columns, which are divided by them; () for not at all.
    first : int, optional
        Look for those of so many of the first rows only.

    Returns
    -------
    ndarray (n, count) or (first, count)

    Examples
    --------
    >>> from selfview.rows.conversion import as_rows
    >>> nearest(as_rows(np.array([[0.0], [1.0], [5.0]])), 1, cosine=False).ravel().tolist()
    [1, 0, 1]
    """
    from sklearn.neighbors import NearestNeighbors  # takes a while, and not every fit needs it

    count = min(count, rows.n - 1)
    exact = rows.n <= EXACT_ROWS and rows.n * rows.n_features <= EXACT_NUMBERS
    sample = np.arange(rows.n)
    if not exact:
        sample = np.sort(np.random.default_rng(0).permutation(rows.n)[:SAMPLE_ROWS])
    points = _points(rows, cosine, spreads)
    if not exact:
        points = _projected(points, rows.n_features, sample)
    candidates = np.concatenate([points(part) for part in _blocks(sample)])
    search = NearestNeighbors(n_neighbors=count + 1, algorithm="brute")
    search.fit(candidates)
    asked = np.arange(rows.n if first is None else first)
    found = np.empty((len(asked), count), np.int32)
    for part in _blocks(asked):
        near = sample[search.kneighbors(points(part), return_distance=False)]
        found[part] = _without(near, part)
    return found


def _points(
    rows: Rows, cosine: bool, spreads: Sequence[float]
) -> Callable[[NDArray[np.intp]], Points]:
    """From row numbers to points whose distances are compared."""
    unit = torch.tensor(spreads or 1.0)

    def points(index: NDArray[np.intp]) -> Points:
        flat = rows.pick(index).flatten(1).cpu() / unit
        found: Points = (F.normalize(flat) if cosine else flat).numpy()
        return found

    return points


def _projected(
    points: Callable[[NDArray[np.intp]], Points],
    n_features: int,
    sample: NDArray[np.intp],
) -> Callable[[NDArray[np.intp]], Points]:
    """The same points, in the leading principal components of a sample."""
    if n_features <= DIMENSIONS:
        return points
    from sklearn.decomposition import PCA

    some = np.random.default_rng(0).permutation(sample)
    some = np.sort(some[: max(2 * DIMENSIONS, SAMPLE_NUMBERS // n_features)])
    pca = PCA(min(DIMENSIONS, len(some)), svd_solver="randomized", random_state=0)
    pca.fit(np.concatenate([points(part) for part in _blocks(some)]))
    return lambda index: pca.transform(points(index)).astype(np.float32)


def _without(near: NDArray[np.intp], own: NDArray[np.intp]) -> NDArray[np.intp]:
    """Each row of `near` without its own number: one fewer."""
    other = near != own[:, None]
    # A row that isn't among its own nearest (duplicates are, in its place) loses the farthest.
    other[other.all(axis=1), -1] = False
    left: NDArray[np.intp] = near[other].reshape(len(near), -1)
    return left


def _blocks(index: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return np.array_split(index, max(1, -(-len(index) // BLOCK)))
