"""Matrix Market files as CSR.

scipy's own reader crashes the process on some damaged headers (a segmentation fault in 1.17), so
the format, which is small, is read here; numpy parses the numbers.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TextIO

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

from selfview.data.dataset import Array
from selfview.data.guard import check_allocation, reading, regular_file
from selfview.errors import FileFormatError

_FIELDS = {"real": 3, "double": 3, "integer": 3, "pattern": 2}  # columns of an entry
_SYMMETRIES = {"general": 0, "symmetric": 1, "skew-symmetric": -1}


def read_mtx(source: str | os.PathLike[str]) -> csr_matrix:
    """A Matrix Market file, coordinate or array, as CSR of float32."""
    path = regular_file(source)
    with reading(path, "a Matrix Market file"), path.open(encoding="utf-8") as stream:
        form, field, symmetry = _banner(path, stream)
        sizes = _sizes(path, stream, 3 if form == "coordinate" else 2)
        rows, columns = sizes[:2]
        if symmetry and rows != columns:
            raise FileFormatError(f"{path} is symmetric but of {rows} x {columns}")
        if form == "array":
            return _read_dense(path, stream, rows, columns, symmetry)
        return _read_entries(path, stream, sizes, _FIELDS[field], symmetry)


def _banner(path: Path, stream: TextIO) -> tuple[str, str, int]:
    words = stream.readline(1024).lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise FileFormatError(f"{path} is not a Matrix Market file: it lacks the first line")
    form, field, symmetry = words[2:]
    known = form in ("coordinate", "array") and field in _FIELDS and symmetry in _SYMMETRIES
    if not known or (form, field) == ("array", "pattern"):
        raise FileFormatError(f"{path}: matrices '{form} {field} {symmetry}' can't be used")
    return form, field, _SYMMETRIES[symmetry]


def _sizes(path: Path, stream: TextIO, count: int) -> tuple[int, ...]:
    line = stream.readline(4096)
    while line.startswith("%") or (line and not line.strip()):
        line = stream.readline(4096)
    words = line.split()
    if len(words) != count or not all(word.isascii() and word.isdigit() for word in words):
        raise FileFormatError(f"{path}: its size line is {line.strip()!r}")
    return tuple(map(int, words))


def _check_count(path: Path, rows: int, entries: int) -> None:
    # An entry takes two bytes of text at least, a row of the CSR matrix eight bytes of memory.
    if entries > path.stat().st_size:
        raise FileFormatError(f"{path} declares {entries:,} entries, more than it can hold")
    check_allocation(path, 8 * rows + 40 * entries)


def _values(path: Path, stream: TextIO, count: int, columns: int) -> Array:
    if count == 0:
        return np.empty((0, columns))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no data, which is an error of ours below
        values = np.loadtxt(stream, ndmin=2, comments="%", max_rows=count + 1)
    if values.shape != (count, columns):
        raise FileFormatError(
            f"{path} declares {count:,} entries of {columns} numbers, but holds {values.shape}"
        )
    return values


def _read_entries(
    path: Path, stream: TextIO, sizes: tuple[int, ...], width: int, symmetry: int
) -> csr_matrix:
    rows, columns, entries = sizes
    _check_count(path, rows, entries)
    values = _values(path, stream, entries, width)
    place = values[:, :2]
    if not (np.all(place == np.floor(place)) and np.all(place >= 1)) or (
        entries and np.any(place.max(axis=0) > (rows, columns))
    ):
        raise FileFormatError(f"{path} holds entries outside its {rows:,} x {columns:,} matrix")
    i, j = (place - 1).astype(np.int64).T
    data = values[:, 2] if width == 3 else np.ones(entries)
    if symmetry:
        off = i != j
        data = np.concatenate([data, symmetry * data[off]])
        i, j = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
    with np.errstate(over="ignore"):
        return csr_matrix(coo_matrix((data.astype(np.float32), (i, j)), shape=(rows, columns)))


def _read_dense(path: Path, stream: TextIO, rows: int, columns: int, symmetry: int) -> csr_matrix:
    if symmetry:
        raise FileFormatError(f"{path}: symmetric matrices are read in coordinate form only")
    _check_count(path, rows, rows * columns)
    values = _values(path, stream, rows * columns, 1)
    with np.errstate(over="ignore"):
        return csr_matrix(values.reshape(columns, rows).T, dtype=np.float32)
