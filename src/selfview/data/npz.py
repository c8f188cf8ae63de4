"""The .npz format: dense arrays and CSR matrices; large ones are unpacked once into the cache."""

from __future__ import annotations

import hashlib
import math
import os
import zipfile
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from selfview.data import guard
from selfview.data.archives import check_name
from selfview.data.cache import fingerprint
from selfview.data.dataset import Array, Rows
from selfview.data.guard import check_allocation, reading, regular_file
from selfview.data.mapped import BLOCK, blocks_of, blockwise, kept_array
from selfview.data.npy import native, npy_header
from selfview.errors import FileFormatError, InputError

_MAX_DEFLATE = 1032
_FLOATS = (np.dtype("f4"), np.dtype("f8"))


def npz_names(path: Path) -> list[str]:
    """The names of an .npz file's arrays."""
    with reading(path, "an .npz file"), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            check_name(path, name)
        return [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]


def npz_array(path: Path, name: str, *, text: bool = False, mapped: bool = False) -> Array:
    """One array of an .npz, its declared size compared with what the archive can yield.

    With `mapped`, a large one is unpacked into the cache once, and mapped from there.
    """
    where = f"{path} [{name}]"
    with reading(where, "an array"), zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name + ".npy")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FileFormatError(f"{where} is packed by a method numpy doesn't write")
        with archive.open(info) as stream:
            shape, _, dtype = npy_header(Path(where), stream, text)
            nbytes = math.prod(shape) * dtype.itemsize
            held = info.file_size - stream.tell()
        if nbytes != held or info.file_size > _MAX_DEFLATE * info.compress_size + 1024:
            raise FileFormatError(f"{where} declares {nbytes:,} bytes, which the file can't hold")
        if mapped and nbytes > guard.IN_MEMORY:
            return _unpacked(path, name, archive, info)
        check_allocation(where, nbytes)
        with archive.open(info) as stream:
            return native(np.lib.format.read_array(stream, allow_pickle=False))


def _unpacked(path: Path, name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    def write(stream: BinaryIO) -> None:
        with archive.open(info) as packed:  # which compares the checksum at the end
            while block := packed.read(BLOCK):
                stream.write(block)

    member = hashlib.sha256(name.encode()).hexdigest()[:16]
    return kept_array(f"{fingerprint([path])}-{member}", info.file_size, write)


def read_npz(
    source: str | os.PathLike[str], array: str | None = None, reserved: tuple[str | None, ...] = ()
) -> Rows:
    """The named array of an .npz file, or its only one; a CSR or CSC matrix as scipy writes it."""
    path = regular_file(source)
    names = npz_names(path)
    if array is None and {"data", "indices", "indptr", "shape"} <= set(names):
        return _read_sparse(path, names)
    candidates = [n for n in names if n not in reserved]
    if array is None and "X" in candidates:
        array = "X"
    if array is None and len(candidates) == 1:
        array = candidates[0]
    if array is None or array not in names:
        if not names:
            raise InputError(f"{path} holds no arrays")
        wanted = f"has no array {array!r}" if array else "holds several arrays"
        raise InputError(
            f"{path} {wanted}; name one with --array: {', '.join(names) or 'none there'}"
        )
    return npz_array(path, array, mapped=True)


def _read_sparse(path: Path, names: list[str]) -> csr_matrix:
    """A matrix of `scipy.sparse.save_npz`, or the arrays of an .h5ad's X, every index checked."""
    form = str(npz_array(path, "format", text=True).astype(str)) if "format" in names else "csr"
    form = form.removeprefix("b'").removesuffix("'")
    if form not in ("csr", "csc"):
        raise FileFormatError(f"{path} holds a sparse matrix of format {form!r}; save it as csr")
    shape = npz_array(path, "shape")
    data, indices, indptr = (
        npz_array(path, n, mapped=form == "csr") for n in ("data", "indices", "indptr")
    )
    with reading(path, "a sparse matrix"):
        size = (int(shape[0]), int(shape[1]))
        if min(size) < 0 or shape.shape != (2,) or data.ndim != 1:
            raise FileFormatError(f"{path} declares a sparse matrix of shape {shape.tolist()}")
        if isinstance(data, np.memmap) or isinstance(indices, np.memmap):
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
    return blockwise(array, "as", dtype, lambda block: block.astype(dtype))


def read_npz_arrays(source: str | os.PathLike[str], names: tuple[str, ...]) -> dict[str, Array]:
    """Several arrays of an .npz file, each checked."""
    path = regular_file(source)
    missing = [n for n in names if n not in npz_names(path)]
    if missing:
        raise FileFormatError(f"{path} has no array {', '.join(missing)}")
    return {name: npz_array(path, name) for name in names}
