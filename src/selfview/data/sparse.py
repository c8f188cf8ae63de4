"""CSR matrices out of their parts, which may be damaged or mapped: every index is checked."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from selfview.data import guard
from selfview.data.cache import cache_key, cached, map_blocks
from selfview.data.dataset import Array
from selfview.data.guard import reading
from selfview.data.npy import blocks_of, write_rows
from selfview.errors import FileFormatError

_FLOATS = (np.dtype("f4"), np.dtype("f8"))


def csr_of(
    path: Path, form: str, shape: Array, data: Array, indices: Array, indptr: Array
) -> csr_matrix:
    """The matrix of these parts; of a CSR matrix, mapped parts stay on disk."""
    if form not in ("csr", "csc"):
        raise FileFormatError(f"{path} holds a sparse matrix of format {form!r}; save it as csr")
    with reading(path, "a sparse matrix"):
        size = (int(shape[0]), int(shape[1]))
        if min(size) < 0 or shape.shape != (2,) or data.ndim != 1:
            raise FileFormatError(f"{path} declares a sparse matrix of shape {shape.tolist()}")
        if form == "csr" and (isinstance(data, np.memmap) or isinstance(indices, np.memmap)):
            return _mapped_csr(path, data, indices, indptr, size)
        matrix = (csr_matrix if form == "csr" else csc_matrix)((data, indices, indptr), shape=size)
        matrix.check_format(full_check=True)
        result = csr_matrix(matrix)
        result.sum_duplicates()
    return result if result.dtype.kind == "f" else result.astype(np.float32)


def _mapped_csr(
    path: Path, data: Array, indices: Array, indptr: Array, size: tuple[int, int]
) -> csr_matrix:
    """A matrix whose entries stay on disk, checked as scipy does but in blocks."""
    starts = np.array(indptr).astype(np.int64)
    entries = len(data)
    fit = starts.shape == (size[0] + 1,) and indices.shape == (entries,)
    if not fit or starts[0] != 0 or starts[-1] != entries or (np.diff(starts) < 0).any():
        raise FileFormatError(f"{path}: the parts of its sparse matrix don't fit together")
    for _, block in blocks_of(indices):
        if block.dtype.kind not in "iu" or block.min() < 0 or block.max() >= size[1]:
            raise FileFormatError(f"{path}: its sparse matrix has columns outside 0 .. {size[1]:,}")
    # scipy wants one type for both kinds of index, in this machine's byte order.
    wide = np.int64 if max(entries, size[1]) > np.iinfo(np.int32).max else np.int32
    matrix: Any = csr_matrix(size, dtype=np.float32)  # type: ignore[arg-type]
    matrix.data = _as_type(data, data.dtype if data.dtype in _FLOATS else np.dtype(np.float32))
    matrix.indices = _as_type(indices, np.dtype(wide))
    matrix.indptr = starts.astype(wide)
    return cast(csr_matrix, matrix)


def _as_type(array: Array, dtype: Any) -> Array:
    if not isinstance(array, np.memmap) or array.dtype == dtype:
        return array.astype(dtype, copy=False)
    return map_blocks(array, "type", dtype, lambda _, block: block)


def csr_columns(matrix: csr_matrix, order: Array) -> csr_matrix:
    """The columns of these numbers, in this order; of a matrix on disk, on disk too."""
    if not isinstance(matrix.data, np.memmap):
        return matrix[:, order]

    def write(folder: Path) -> None:
        write_csr(folder, matrix.dtype, lambda: (block[:, order] for block in row_blocks(matrix)))

    source: Any = matrix.data
    key = cache_key([Path(str(source.filename))], "columns", source.offset, order.tolist())
    parts = cached("columns", key, write, lambda entry: entry.arrays, 8 * matrix.nnz)
    return written_csr(Path(str(source.filename)), len(order), parts)


def row_blocks(matrix: csr_matrix) -> Iterator[csr_matrix]:
    """The matrix in blocks of rows."""
    step = max(1, guard.BLOCK * matrix.shape[0] // max(1, 16 * matrix.nnz))
    for start in range(0, matrix.shape[0], step):
        yield matrix[start : start + step]


def write_csr(folder: Path, dtype: Any, blocks: Callable[[], Iterator[Any]]) -> None:
    """Write blocks of rows into a folder as they come; they are asked for twice."""
    counts = [np.zeros(1, np.int64)]

    def values() -> Iterator[Array]:
        for block in blocks():
            counts.append(np.diff(block.indptr))
            yield block.data

    write_rows(folder / "data.npy", (), dtype, values())
    write_rows(folder / "indices.npy", (), np.int32, (block.indices for block in blocks()))
    np.save(folder / "indptr.npy", np.cumsum(np.concatenate(counts)), allow_pickle=False)


def written_csr(path: Path, columns: int, arrays: Mapping[str, Array]) -> csr_matrix:
    """The matrix that `write_csr` wrote; `path` is what an error names."""
    data, indices, indptr = (arrays[name] for name in ("data", "indices", "indptr"))
    return csr_of(path, "csr", np.array([len(indptr) - 1, columns]), data, indices, indptr)
