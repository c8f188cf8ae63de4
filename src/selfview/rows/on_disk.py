"""Arrays and sparse matrices that stay on disk: rows are read from the file, a block at a time.

A memory map is only the way to say where the rows lie. They are read by plain reads, because pages
of a map that were touched count as this process's memory, and a file that is cut short meanwhile
would end the process instead of raising an error.

At most `BUFFER_BYTES` of blocks are kept. An epoch shuffles whole blocks, and then the rows of as
many blocks as the buffer holds (`training.loop.batches`); so each block is read once an epoch,
and every batch mixes rows from all over the file.
"""

import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import FileIO
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from selfview.errors import FileFormatError

BLOCK_BYTES = 1 << 20  # read at once: a disk then reads at its full speed
BUFFER_BYTES = 256 << 20  # of blocks kept, and shuffled together
_COMPARED = 16  # rows of a file and its map

Array = NDArray[Any]
Index = NDArray[np.intp]
B = TypeVar("B")


@dataclass(frozen=True)
class Span:
    """Where an array lies in a file."""

    path: str
    identity: tuple[int, int]  # device and inode: the file that was mapped, not one of its name
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        return int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize

    def read(self, ranges: Iterable[tuple[int, int]]) -> list[Array]:
        """The rows of each range, each as an array of its own."""
        with self._opened() as file:
            return [self._read(file, *each) for each in ranges]

    def rows(self, index: Index) -> Array:
        """Single rows from all over, read in the order of their places."""
        wanted, back = np.unique(index, return_inverse=True)
        rows = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        parts = rows.view(np.uint8).reshape(len(wanted), self.row_bytes)
        places = (self.offset + wanted.astype(np.int64) * self.row_bytes).tolist()
        with self._opened() as file:
            number = file.fileno()
            if hasattr(os, "posix_fadvise"):  # a disk then reads many of them at once
                for place in places:
                    os.posix_fadvise(number, place, self.row_bytes, os.POSIX_FADV_WILLNEED)
            for place, part in zip(places, parts, strict=True):
                file.seek(place)
                self._fill(file, memoryview(part.data))
        return rows[back]

    @contextmanager
    def _opened(self) -> Iterator[FileIO]:
        try:
            with open(self.path, "rb", buffering=0) as file:
                facts = os.fstat(file.fileno())
                if (facts.st_dev, facts.st_ino) != self.identity:
                    raise FileFormatError(f"{self.path} was replaced while its rows were in use")
                yield file
        except OSError as error:
            reason = error.strerror or error
            raise FileFormatError(f"{self.path} can't be read any more: {reason}") from error

    def _read(self, file: FileIO, start: int, stop: int) -> Array:
        rows = np.empty((stop - start, *self.shape[1:]), self.dtype)
        file.seek(self.offset + start * self.row_bytes)
        self._fill(file, memoryview(rows.view(np.uint8).reshape(-1).data))
        return rows

    def _fill(self, file: FileIO, left: memoryview) -> None:
        while left:
            done = file.readinto(left)
            if not done:
                raise FileFormatError(f"{self.path} was cut short while its rows were in use")
            left = left[done:]


def span_of(array: Array) -> Span | None:
    """Where a memory-mapped array lies in its file, or None if it can't be read from there.

    It can't if the array is in memory, if its rows are not one after another, if the map is a
    private copy, or if the file is no longer there.
    """
    mapped: Any = array
    while isinstance(mapped, np.ndarray) and not isinstance(mapped, np.memmap):
        mapped = mapped.base
    if not isinstance(mapped, np.memmap) or not array.flags.c_contiguous or not array.size:
        return None
    if mapped.filename is None or getattr(mapped, "mode", "c") == "c":
        return None
    start = _address(np.frombuffer(mapped._mmap, np.uint8))  # type: ignore[attr-defined]
    offset = mapped.offset - mapped.offset % mmap.ALLOCATIONGRANULARITY
    offset += _address(array) - start
    try:
        facts = os.stat(mapped.filename)
    except OSError:
        return None
    if facts.st_size < offset + array.nbytes:
        return None
    identity = (facts.st_dev, facts.st_ino)
    span = Span(os.path.abspath(mapped.filename), identity, offset, array.dtype, array.shape)
    return span if _holds(span, array, mapped) else None


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _holds(span: Span, array: Array, mapped: Any) -> bool:
    """Whether the file holds what the map shows: it may have been replaced under its name."""
    for row in np.unique(np.linspace(0, len(array) - 1, _COMPARED).astype(np.intp)).tolist():
        try:
            (found,) = span.read([(row, row + 1)])
        except FileFormatError:
            return False
        if found.tobytes() != array[row].tobytes():
            return False
        if hasattr(mmap, "MADV_DONTNEED"):  # up to 2 MiB around a row that was looked at
            mapped._mmap.madvise(mmap.MADV_DONTNEED)
    return True


class _Stored(Generic[B]):
    """Rows on disk, of which the blocks used last are kept; indexed by a slice or row numbers."""

    def __init__(self, n: int, nbytes: int) -> None:
        each = max(1, nbytes / n)
        self.n = n
        self.block = max(1, int(BLOCK_BYTES / each))  # rows read at once
        self.window = max(1, int(BUFFER_BYTES / each))  # rows kept
        self._kept = lru_cache(max(1, self.window // self.block))(self._block)

    def _read(self, ranges: list[tuple[int, int]]) -> list[B]:
        """The rows of each range."""
        raise NotImplementedError

    def _rows(self, part: B) -> Any:
        """Rows that were read, as they are handed out."""
        raise NotImplementedError

    def _gathered(self, places: list[tuple[B, int]]) -> Any:
        """The rows of these blocks and places in them."""
        raise NotImplementedError

    def _block(self, number: int) -> B:
        start = number * self.block
        return self._read([(start, min(self.n, start + self.block))])[0]

    @property
    def fits(self) -> bool:
        """Do all rows fit into what is kept?"""
        return self.n <= self.window

    def __getitem__(self, index: Index | slice) -> Any:
        if isinstance(index, slice):
            start, stop, _ = index.indices(self.n)
            return self._rows(self._read([(start, max(start, stop))])[0])
        return self._gathered(self._places(index))

    def pick(self, index: Index) -> Any:
        """Rows from all over, without changing which blocks are kept."""
        return self._gathered(self._places(index, scattered=not self.fits))

    def _places(self, index: Index, scattered: bool = False) -> list[tuple[B, int]]:
        """For each row number, a block and the row's place in it."""
        numbers = index // self.block
        needed = np.unique(numbers).tolist()
        if scattered or len(needed) * self.block > max(self.window, self.block):
            # More blocks than are kept, or ones that will not be used again: rows one by one.
            rows, back = np.unique(index, return_inverse=True)
            found = self._read([(row, row + 1) for row in rows.tolist()])
            return [(found[i], 0) for i in back.tolist()]
        held = {number: self._kept(number) for number in needed}
        places = zip(numbers.tolist(), (index % self.block).tolist(), strict=True)
        return [(held[number], row) for number, row in places]


class StoredArray(_Stored[Array]):
    """An array on disk."""

    def __init__(self, span: Span) -> None:
        super().__init__(span.shape[0], span.shape[0] * span.row_bytes)
        self._span = span

    def _read(self, ranges: list[tuple[int, int]]) -> list[Array]:
        return self._span.read(ranges)

    def _rows(self, part: Array) -> Array:
        return part

    def pick(self, index: Index) -> Array:
        rows: Array = self[index] if self.fits else self._span.rows(index)
        return rows

    def _gathered(self, places: list[tuple[Array, int]]) -> Array:
        rows = np.empty((len(places), *self._span.shape[1:]), self._span.dtype)
        for i, (block, row) in enumerate(places):
            rows[i] = block[row]
        return rows


Csr = tuple[Array, Array, Array]  # data, indices and indptr of some rows


class StoredCsr(_Stored[Csr]):
    """The rows of a CSR matrix on disk; only where each row starts is in memory."""

    def __init__(self, data: Span, indices: Span, indptr: Array, columns: int) -> None:
        each = data.dtype.itemsize + indices.dtype.itemsize
        super().__init__(len(indptr) - 1, int(indptr[-1]) * each)
        self._data, self._indices, self._columns = data, indices, columns
        self._indptr = np.array(indptr, dtype=np.int64)

    def _read(self, ranges: list[tuple[int, int]]) -> list[Csr]:
        places = [(int(self._indptr[a]), int(self._indptr[b])) for a, b in ranges]
        starts = [self._indptr[a : b + 1] - self._indptr[a] for a, b in ranges]
        parts = self._data.read(places), self._indices.read(places)
        return list(zip(*parts, starts, strict=True))

    def _rows(self, part: Csr) -> sp.csr_array:
        matrix = sp.csr_array(part, shape=(len(part[2]) - 1, self._columns))
        matrix.sum_duplicates()
        return matrix

    def _gathered(self, places: list[tuple[Csr, int]]) -> sp.csr_array:
        rows = [
            (data[indptr[row] : indptr[row + 1]], indices[indptr[row] : indptr[row + 1]])
            for (data, indices, indptr), row in places
        ]
        data, indices = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        return self._rows((data, indices, np.cumsum([0, *(len(row[0]) for row in rows)])))


def stored_array(array: Array) -> StoredArray | None:
    """The array as rows on disk, if it is memory-mapped."""
    span = span_of(array)
    return None if span is None else StoredArray(span)


def stored_csr(matrix: Any) -> StoredCsr | None:
    """The CSR matrix as rows on disk, if its arrays are memory-mapped."""
    data, indices = span_of(matrix.data), span_of(matrix.indices)
    if data is None or indices is None:
        return None
    return StoredCsr(data, indices, matrix.indptr, int(matrix.shape[1]))
