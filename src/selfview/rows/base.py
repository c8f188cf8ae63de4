"""`Rows`: one interface to everything that can be fitted.

It gives float32 tensors for the row numbers asked for. The data are never copied or made dense
whole. conversion.py makes `Rows` of what users pass.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from selfview.errors import InputError
from selfview.rows.on_disk import StoredArray, StoredCsr

CHUNK_BYTES = 1 << 25  # 32 MiB of float32 at a time when all rows are gone through
TEXT_LIKE_DENSITY = 0.1
DIFFERENT_SCALE = 30.0  # times the median standard deviation: a column of another scale

Index = NDArray[np.intp]


@dataclass(frozen=True)
class Summary:
    """What one pass over all rows tells about them."""

    mean_norm: float = 1.0  # mean Euclidean length of a row
    density: float = 1.0  # share of entries that are not zero
    negative: bool = False  # is any entry below zero?
    constant: bool = False  # are all rows equal?
    column_stds: tuple[float, ...] = ()  # standard deviations of the columns, if of different scale

    @property
    def text_like(self) -> bool:
        """Non-negative and mostly zeros, as tf-idf rows are."""
        return self.density <= TEXT_LIKE_DENSITY and not self.negative


class Rows(ABC):
    """`n` rows of one `shape`, as float32 tensors on demand."""

    n: int
    shape: tuple[int, ...]
    first: int = 0  # number of the first row, by which errors call it
    stored: StoredArray | StoredCsr | None = None  # where rows that stay on disk are read

    @abstractmethod
    def take(self, index: Index | slice) -> Tensor:
        """The rows of the given numbers: float32 (batch, *shape)."""

    def pick(self, index: Index) -> Tensor:
        """The same for rows from all over, as a sample is: on disk they are read one by one."""
        return self.take(index)

    @property
    def n_features(self) -> int:
        return int(np.prod(self.shape))

    @property
    def blocks(self) -> tuple[int, int]:
        """How many rows are read together, and how many are shuffled together."""
        return (1, self.n) if self.stored is None else (self.stored.block, self.stored.window)

    def chunks(self) -> Iterator[tuple[int, Tensor]]:
        """All rows in order, a bounded number at a time, each chunk with its first row's number."""
        size = max(1, CHUNK_BYTES // (4 * max(self.n_features, 1)))
        for start in range(0, self.n, size):
            yield start, self.take(slice(start, min(start + size, self.n)))

    def check(self) -> None:
        """Raise for the first entry that is not a finite float32, naming its row and column."""
        for start, x in self.chunks():
            self.check_chunk(start, x)

    def summary(self) -> Summary:
        """Check all entries and describe the rows, in one pass."""
        norms, nonzero, negative, constant = 0.0, 0, False, True
        first: Tensor | None = None
        moments: Tensor | float = 0.0
        for start, x in self.chunks():
            self.check_chunk(start, x)
            flat = x.flatten(1)
            first = flat[:1] if first is None else first
            wide = flat.double()
            norms += float(torch.linalg.vector_norm(wide, dim=1).sum())
            if len(self.shape) == 1:
                wide -= first  # so that the square of the mean can be taken off without loss
                moments = moments + torch.stack([wide.sum(0), wide.square_().sum(0)])
            nonzero += int(torch.count_nonzero(flat))
            negative = negative or bool((flat < 0).any())
            constant = constant and bool((flat == first).all())
        density = nonzero / (self.n * self.n_features)
        found = Summary(norms / self.n, density, negative, constant)
        if first is None or isinstance(moments, float) or found.text_like:
            return found
        return replace(found, column_stds=_different_scale(moments / self.n, first[0].double()))

    def check_chunk(self, start: int, x: Tensor) -> None:
        """Raise for the first entry of `x`, the rows from `start` on, that is not finite."""
        # A sum is finite only if all terms are; the exact search is for the failing case alone.
        if torch.isfinite(x.sum()) or (finite := torch.isfinite(x.flatten(1))).all():
            return
        row, column = torch.nonzero(~finite)[0].tolist()
        raise not_finite(float(x.flatten(1)[row, column]), self.first + start + row, column)


def _different_scale(moments: Tensor, first: Tensor) -> tuple[float, ...]:
    """The columns' standard deviations, if some column dwarfs most others; of a constant, its size.

    Pixels, tf-idf and spectra differ by less than tenfold; a table of years, prices and rates by
    thousands.
    """
    mean, square = moments
    std = (square - mean.square()).clamp_min(0).sqrt()
    vary = std > 1e-6 * (first + mean).abs()
    if not vary.any() or std[vary].max() <= DIFFERENT_SCALE * std[vary].median():
        return ()
    size = (first + mean).abs()
    size[size == 0] = 1.0
    return tuple(torch.where(vary, std, size).tolist())


def not_finite(value: float, row: int, column: int) -> InputError:
    what, cure = (
        ("NaN", "fill the gaps, for example with sklearn.impute.SimpleImputer")
        if np.isnan(value)
        else ("infinity (or a number too large for float32)", "rescale the column")
    )
    return InputError(
        f"X contains {what} at row {row}, column {column}. Remove such rows or {cure}."
    )
