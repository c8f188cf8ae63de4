"""Rows of arrays, tensors, sparse matrices and Datasets; memory maps are read from their files."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from selfview.errors import InputError
from selfview.rows import base
from selfview.rows.base import Index, Rows, Summary, not_finite
from selfview.rows.on_disk import StoredArray, StoredCsr, stored_array, stored_csr


class ArrayRows(Rows):
    """Rows of an ndarray or a memory map, which is read from its file."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.stored: StoredArray | None = stored_array(array)
        self.n = array.shape[0]
        self.shape = array.shape[1:]

    def take(self, index: Index | slice) -> Tensor:
        return self._tensor(self.array[index] if self.stored is None else self.stored[index], index)

    def pick(self, index: Index) -> Tensor:
        return self.take(index) if self.stored is None else self._tensor(self.stored.pick(index))

    @staticmethod
    def _tensor(rows: NDArray[Any], index: Index | slice | None = None) -> Tensor:
        # A number beyond float32 becomes infinity here and is named by the check.
        with np.errstate(over="ignore"):
            if isinstance(index, slice):  # a view of the caller's memory: never hand that out
                return torch.from_numpy(np.array(rows, dtype=np.float32, order="C"))
            return torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32))


class TensorRows(Rows):
    """Rows of a tensor, on whatever device it is."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor.detach()
        self.n = tensor.shape[0]
        self.shape = tuple(tensor.shape[1:])

    def take(self, index: Index | slice) -> Tensor:
        at = index if isinstance(index, slice) else torch.from_numpy(index)
        rows = self.tensor[at].to(torch.float32)
        return rows.clone() if isinstance(index, slice) else rows


class SparseRows(Rows):
    """Rows of a sparse matrix, in memory or mapped; only those asked for are made dense."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = sp.csr_array(matrix)
        self.stored: StoredCsr | None = stored_csr(self.matrix)
        self.n = self.matrix.shape[0]
        self.shape = (self.matrix.shape[1],)

    def _part(self, index: Index | slice) -> Any:
        return self.matrix[index] if self.stored is None else self.stored[index]

    def _parts(self) -> Iterator[tuple[int, Any]]:
        """All rows in order, a bounded number of entries at a time."""
        size = max(1, int(self.n * base.CHUNK_BYTES / (12 * max(self.matrix.nnz, 1))))
        for start in range(0, self.n, size):
            yield start, self._part(slice(start, start + size))

    def take(self, index: Index | slice) -> Tensor:
        return self._tensor(self._part(index))

    def pick(self, index: Index) -> Tensor:
        return self.take(index) if self.stored is None else self._tensor(self.stored.pick(index))

    @staticmethod
    def _tensor(part: Any) -> Tensor:
        with np.errstate(over="ignore"):
            return torch.from_numpy(part.astype(np.float32).toarray())

    def check(self) -> None:
        for start, part in self._parts():
            self._check_part(start, part)

    @staticmethod
    def _check_part(start: int, part: Any) -> None:
        with np.errstate(over="ignore"):
            data = part.data.astype(np.float32)
        if np.isfinite(data.sum(dtype=np.float64)):
            return
        at = int(np.flatnonzero(~np.isfinite(data))[0])
        row = int(np.searchsorted(part.indptr, at, side="right")) - 1
        raise not_finite(float(data[at]), start + row, int(part.indices[at]))

    def summary(self) -> Summary:
        norms, nonzero, negative, constant = 0.0, 0, False, True
        first = self._part(slice(0, 1)).toarray().ravel()
        for start, part in self._parts():
            self._check_part(start, part)
            nonzero += int(np.count_nonzero(part.data))
            negative = negative or bool((part.data < 0).any())
            part = part.astype(np.float64)
            norms += float(np.sqrt(part.multiply(part).sum(axis=1)).sum())
            # The largest and smallest of a column also count the entries that are not stored.
            constant = constant and all(
                np.array_equal(extreme(axis=0).toarray().ravel(), first)
                for extreme in (part.max, part.min)
            )
        density = nonzero / (self.n * self.n_features)
        return Summary(norms / self.n, float(density), negative, constant)


class DatasetRows(Rows):
    """Items of a map-style torch Dataset; of an item that is a tuple, only the first part."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.n = len(dataset)
        self.shape = tuple(self._item(0).shape) if self.n else ()

    def _item(self, i: int) -> Tensor:
        item = self.dataset[i]
        # Labels of a supervised Dataset come second: they are dropped here and never seen.
        item = item[0] if isinstance(item, tuple | list) else item
        try:
            return torch.as_tensor(item).detach().to(torch.float32)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                f"item {i} of the Dataset is a {type(item).__name__}, not a tensor or an array of "
                "numbers"
            ) from error

    def take(self, index: Index | slice) -> Tensor:
        numbers = range(self.n)[index] if isinstance(index, slice) else index.tolist()
        items = [self._item(i) for i in numbers]
        for i, item in zip(numbers, items, strict=True):
            if tuple(item.shape) != self.shape:
                raise InputError(
                    f"item {i} of the Dataset has shape {tuple(item.shape)}, item 0 has "
                    f"{self.shape}: all items must have one shape"
                )
        return torch.stack(items)


class RowRange(Rows):
    """Consecutive rows of others, from `start` up to `stop`; errors name their numbers there."""

    def __init__(self, rows: Rows, start: int, stop: int) -> None:
        self.rows, self.first = rows, start
        self.n, self.shape = stop - start, rows.shape

    def take(self, index: Index | slice) -> Tensor:
        if isinstance(index, slice):
            start, stop, _ = index.indices(self.n)
            return self.rows.take(slice(self.first + start, self.first + stop))
        return self.rows.take(index + self.first)
