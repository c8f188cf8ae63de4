"""Arrays and matrices of .npz, Matrix Market and IDX files; every declared size is checked."""

import gzip
import math
import os
import shutil
import struct
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

from selfview.data import guard
from selfview.data.cache import cache_key, cached_array
from selfview.data.dataset import Array, Rows
from selfview.data.guard import MAX_DEFLATE, check_allocation, check_name, reading, regular_file
from selfview.data.npy import native, npy_header
from selfview.data.sparse import csr_of
from selfview.errors import FileFormatError, InputError

_FIELDS = {"real": 3, "double": 3, "integer": 3, "pattern": 2}  # numbers of an .mtx entry
_SYMMETRIES = {"general": 0, "symmetric": 1, "skew-symmetric": -1}
_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def npz_names(path: Path) -> list[str]:
    """The names of an .npz file's arrays."""
    with reading(path, "an .npz file"), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            check_name(path, name)
        return [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]


def npz_array(path: Path, name: str, *, text: bool = False, mapped: bool = False) -> Array:
    """One array of an .npz file, its declared size compared with what the archive can hold.

    With `mapped`, a large array is unpacked into the cache once and mapped from there.
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
        if nbytes != held or info.file_size > MAX_DEFLATE * info.compress_size + 1024:
            raise FileFormatError(f"{where} declares {nbytes:,} bytes, which the file can't hold")
        if mapped and nbytes > guard.IN_MEMORY:

            def unpack(target: Path) -> None:
                with archive.open(info) as packed, target.open("wb") as out:
                    shutil.copyfileobj(packed, out, guard.BLOCK)  # compares the checksum

            return cached_array(cache_key([path], name), info.file_size, unpack)
        check_allocation(where, nbytes)
        with archive.open(info) as stream:
            return native(np.lib.format.read_array(stream, allow_pickle=False))


def npz_arrays(source: str | os.PathLike[str], names: tuple[str, ...]) -> list[Array]:
    """Several arrays of an .npz file."""
    path = regular_file(source)
    missing = [n for n in names if n not in npz_names(path)]
    if missing:
        raise FileFormatError(f"{path} has no array {', '.join(missing)}")
    return [npz_array(path, name) for name in names]


def read_npz(path: Path, array: str | None = None, aside: tuple[str | None, ...] = ()) -> Rows:
    """The named array of an .npz file, or its only one; a CSR or CSC matrix as scipy writes it.

    Arrays named in `aside` hold labels or row names.
    """
    names = npz_names(path)
    if array is None and {"data", "indices", "indptr", "shape"} <= set(names):
        return _read_sparse(path, names)
    name = chosen_array(path, dict.fromkeys(names, 2), array, aside)
    return npz_array(path, name, mapped=True)


def chosen_array(
    path: Path, axes: Mapping[str, int], array: str | None, aside: tuple[str | None, ...]
) -> str:
    """The array that holds the rows: the one asked for, or X, or the only one of two axes or more.

    `axes` tells the number of axes of each array of the file.
    """
    if array in axes:
        return str(array)
    candidates = [name for name, count in axes.items() if count > 1 and name not in aside]
    if array is None and "X" in candidates:
        return "X"
    if array is None and len(candidates) == 1:
        return candidates[0]
    if not axes:
        raise InputError(f"{path} holds no arrays")
    several = "holds several arrays" if candidates else "holds no array of two axes"
    wanted = several if array is None else f"has no array {array!r}"
    names = ", ".join(list(axes)[:20]) + (f" and {len(axes) - 20} more" if len(axes) > 20 else "")
    raise InputError(f"{path} {wanted}; name one with --array: {names}")


def _read_sparse(path: Path, names: list[str]) -> csr_matrix:
    """A matrix of `scipy.sparse.save_npz`, or the arrays of an .h5ad's X."""
    form = str(npz_array(path, "format", text=True).astype(str)) if "format" in names else "csr"
    form = form.removeprefix("b'").removesuffix("'")
    parts = (npz_array(path, n, mapped=form == "csr") for n in ("data", "indices", "indptr"))
    return csr_of(path, form, npz_array(path, "shape"), *parts)


def read_mtx(source: str | os.PathLike[str]) -> csr_matrix:
    """A Matrix Market file, coordinate or array, as CSR of float32.

    scipy's own reader crashes the process on some damaged files (scipy 1.17: a NUL byte in a number
    is a segmentation fault), so the format is read here; numpy parses the numbers.
    """
    path = regular_file(source)
    with reading(path, "a Matrix Market file"), path.open(encoding="utf-8") as stream:
        words = stream.readline(1024).lower().split()
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise FileFormatError(f"{path} is not a Matrix Market file: it lacks the first line")
        form, field, kind = words[2:]
        known = form in ("coordinate", "array") and field in _FIELDS and kind in _SYMMETRIES
        if not known or (form, field) == ("array", "pattern"):
            raise FileFormatError(f"{path}: matrices '{form} {field} {kind}' can't be used")
        rows, columns, *rest = _mtx_size(path, stream, 3 if form == "coordinate" else 2)
        symmetry = _SYMMETRIES[kind]
        if symmetry and form == "array":
            raise FileFormatError(f"{path}: symmetric matrices are read in coordinate form only")
        if symmetry and rows != columns:
            raise FileFormatError(f"{path} is symmetric but of {rows} x {columns}")
        entries = rest[0] if rest else rows * columns
        values = _mtx_values(path, stream, rows, entries, _FIELDS[field] if rest else 1)
        with np.errstate(over="ignore"):  # beyond float32: infinite, reported later
            if not rest:
                return csr_matrix(values.reshape(columns, rows).T, dtype=np.float32)
            place = values[:, :2]
            if not (np.all(place == np.floor(place)) and np.all(place >= 1)) or (
                entries and np.any(place.max(axis=0) > (rows, columns))
            ):
                raise FileFormatError(
                    f"{path} holds entries outside its {rows:,} x {columns:,} matrix"
                )
            i, j = (place - 1).astype(np.int64).T
            data = values[:, 2] if values.shape[1] == 3 else np.ones(entries)
            if symmetry:
                off = i != j
                data = np.concatenate([data, symmetry * data[off]])
                i, j = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
            return csr_matrix(coo_matrix((data.astype(np.float32), (i, j)), shape=(rows, columns)))


def _mtx_size(path: Path, stream: TextIO, count: int) -> tuple[int, ...]:
    line = stream.readline(4096)
    while line.startswith("%") or (line and not line.strip()):
        line = stream.readline(4096)
    words = line.split()
    if len(words) != count or not all(word.isascii() and word.isdigit() for word in words):
        raise FileFormatError(f"{path}: its size line is {line.strip()!r}")
    return tuple(map(int, words))


def _mtx_values(path: Path, stream: TextIO, rows: int, count: int, width: int) -> Array:
    # An entry takes two bytes of text at least, a row of the CSR matrix eight bytes of memory.
    if count > path.stat().st_size:
        raise FileFormatError(f"{path} declares {count:,} entries, more than it can hold")
    check_allocation(path, 8 * rows + 40 * count)
    if count == 0:
        return np.empty((0, width))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no data, which is an error of ours below
        values = np.loadtxt(stream, ndmin=2, comments="%", max_rows=count + 1)
    if values.shape != (count, width):
        raise FileFormatError(
            f"{path} declares {count:,} entries of {width} numbers, but holds {values.shape}"
        )
    return values


def read_idx(path: str | os.PathLike[str], *, transposed: bool = False) -> Array:
    """The array of an IDX file (MNIST's format), plain or gzipped.

    Parameters
    ----------
    path : path
        ``*-ubyte`` or ``*-ubyte.gz``; gzip is recognised by content, not by name.
    transposed : bool, default False
        Swap the last two axes: E-MNIST stores its images column by column.
    """
    path = regular_file(path)
    with reading(path, "an IDX file"), path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        array = _parse_idx(path, stream, path.stat().st_size * (MAX_DEFLATE if packed else 1))
    return np.ascontiguousarray(np.swapaxes(array, -1, -2)) if transposed else array


def _parse_idx(path: Path, stream: BinaryIO, limit: int) -> Array:
    head = stream.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _IDX_TYPES or not 1 <= head[3] <= 8:
        raise FileFormatError(
            f"{path} is not an IDX file: it starts with {head.hex() or 'nothing'}"
        )
    dtype = np.dtype(_IDX_TYPES[head[2]])
    axes = stream.read(4 * head[3])
    if len(axes) < 4 * head[3]:
        raise FileFormatError(f"{path} ends within its IDX header")
    shape = struct.unpack(f">{head[3]}I", axes)
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > limit:
        raise FileFormatError(
            f"{path} declares {shape} values, more than a file of its size can hold"
        )
    check_allocation(path, nbytes)
    body = stream.read(nbytes)
    if len(body) != nbytes or stream.read(1):
        raise FileFormatError(
            f"{path} declares {nbytes:,} bytes of values but holds "
            f"{'fewer' if len(body) < nbytes else 'more'}: it is cut off or damaged"
        )
    return np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
