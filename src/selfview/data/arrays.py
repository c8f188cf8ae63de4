"""Array files: .npy (mapped), .npz (dense or CSR), .mtx; never pickled, sizes checked first."""

from __future__ import annotations

import math
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from selfview.data.dataset import Array, Dataset, Rows
from selfview.data.guard import (
    IN_MEMORY,
    check_allocation,
    reading,
    regular_file,
    settle_bad_rows,
)
from selfview.data.matrix_market import read_mtx
from selfview.data.preparation import Options, Preparation
from selfview.errors import FileFormatError, InputError

SUFFIXES = (".npy", ".npz", ".mtx")
_MAX_DEFLATE = 1032


@dataclass(frozen=True, eq=False)
class ArrayPreparation(Preparation):
    """Rows taken as they are; only their shape is settled."""

    row_shape: tuple[int, ...]

    kind: ClassVar[str] = "array"
    suffixes: ClassVar[str] = ".npy, .npz or .mtx"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.row_shape

    def _read_files(self, path: Path, _options: Options) -> Dataset:
        raise InputError(f"{path}: this model was fitted on an array, give {self.suffixes}")


def fit_array(path: Path, options: Options) -> Dataset:
    """Rows of an array file."""
    return read_array_file(path, options)


def read_array_file(path: Path, options: Options) -> Dataset:
    """Rows of an array file, with ``label`` and ``id`` from arrays of that name in an .npz."""
    suffix = path.suffix.lower()
    if suffix != ".npz":
        rows = read_npy(path) if suffix == ".npy" else read_mtx(path)
        if options.array or options.label or options.id:
            raise InputError(f"{path} has no named arrays: array, label and id need an .npz file")
        return dataset_of_array(path, rows, options)
    path = regular_file(path)
    named = _npz_names(path)
    rows = read_npz(path, options.array, reserved=(options.label, options.id))
    sides = {}
    for option, name in (("label", options.label), ("id", options.id)):
        if name is not None:
            if name not in named:
                raise InputError(
                    f"{path} has no array {name!r} for {option}, but {', '.join(named)}"
                )
            sides[option] = _npz_array(path, name, text=True)
            if sides[option].shape != (rows.shape[0],):
                raise InputError(
                    f"{path}: {name!r} has shape {sides[option].shape}, not a value a row"
                )
    return dataset_of_array(path, rows, options, sides.get("label"), sides.get("id"))


def dataset_of_array(
    path: Path, rows: Rows, options: Options, labels: Array | None = None, ids: Array | None = None
) -> Dataset:
    """A `Dataset` of rows as they are; images get their channel axis and bytes are scaled."""
    from selfview.data.folders import encode_labels
    from selfview.data.images import ImagePreparation, as_images

    if rows.ndim not in (2, 3, 4):
        raise InputError(f"{path} has {rows.ndim} axes; rows need 2, images 3 or 4")
    if 0 in rows.shape:
        raise InputError(f"{path} is empty: its shape is {rows.shape}")
    rows = as_images(rows) if rows.ndim > 2 else rows
    if not isinstance(rows, np.memmap):
        with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, a bad row
            rows = rows.astype(np.float32, copy=False)
    rows, kept, bad, messages = _finite(path, rows, options.skip_bad)
    shape = tuple(int(d) for d in rows.shape[1:])
    preparation: Preparation = (
        ImagePreparation(*shape) if len(shape) == 3 else ArrayPreparation(shape)
    )
    y, classes = (None, ()) if labels is None else encode_labels([str(v) for v in labels[kept]])
    return Dataset(
        name=path.name, X=rows, y=y, classes=classes, ids=None if ids is None else ids[kept],
        source=f"path {path}", preparation=preparation, skipped=bad, messages=messages,
    )  # fmt: skip


def _finite(
    path: Path, rows: Rows, skip_bad: bool
) -> tuple[Rows, Any, tuple[str, ...], tuple[str, ...]]:
    """Rows without NaN or infinity. A mapped array isn't scanned: that would read it whole."""
    values = rows if isinstance(rows, np.ndarray) else rows.data
    if isinstance(rows, np.memmap) or not np.issubdtype(values.dtype, np.floating):
        return rows, slice(None), (), ()
    if isinstance(rows, np.ndarray):
        good: Array = np.isfinite(rows).reshape(len(rows), -1).all(axis=1)  # type: ignore[assignment]
    else:
        wrong = np.flatnonzero(~np.isfinite(rows.data))
        good = np.ones(rows.shape[0], dtype=bool)
        good[np.searchsorted(rows.indptr, wrong, side="right") - 1] = False
    if good.all():
        return rows, slice(None), (), ()
    bad = tuple(f"row {i} holds NaN or infinity" for i in np.flatnonzero(~good))
    messages = settle_bad_rows(path, bad, rows.shape[0], skip_bad)
    return rows[good], good, bad, messages


def read_npy(source: str | os.PathLike[str]) -> Array:
    """The array of a .npy file: in memory if small, else mapped read-only."""
    path = regular_file(source)
    with reading(path, "a .npy file"):
        with path.open("rb") as stream:
            shape, fortran, dtype = _npy_header(path, stream)
            offset = stream.tell()
        nbytes = math.prod(shape) * dtype.itemsize
        if nbytes != path.stat().st_size - offset:
            raise FileFormatError(
                f"{path} declares {nbytes:,} bytes of values but holds "
                f"{path.stat().st_size - offset:,}: it is cut off or damaged"
            )
        if nbytes > IN_MEMORY:
            return np.memmap(path, dtype, "r", offset, shape, order="F" if fortran else "C")
        return _native(np.load(path, allow_pickle=False))


def _npy_header(path: Path, stream: IO[bytes], text: bool = False) -> tuple[Any, bool, Any]:
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read is None:
        raise FileFormatError(f"{path} is of .npy version {version}, 1.0 and 2.0 are read")
    shape, fortran, dtype = read(stream)
    if dtype.hasobject:
        raise FileFormatError(f"{path} holds pickled objects, which are never loaded")
    if dtype.kind not in ("biufUS" if text else "biuf") or dtype.itemsize == 0:
        raise FileFormatError(f"{path} holds values of type {dtype}, not numbers")
    return shape, fortran, dtype


def _native(array: Array) -> Array:
    """Native byte order; half and extended precision as float32 and float64."""
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        return array.astype(np.float32 if array.dtype.itemsize < 4 else np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _npz_names(path: Path) -> list[str]:
    with reading(path, "an .npz file"), zipfile.ZipFile(path) as archive:
        return [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]


def _npz_array(path: Path, name: str, *, text: bool = False) -> Array:
    """One array of an .npz, its declared size compared with what the archive can yield."""
    where = f"{path} [{name}]"
    with reading(where, "an array"), zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name + ".npy")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FileFormatError(f"{where} is packed by a method numpy doesn't write")
        with archive.open(info) as stream:
            shape, _, dtype = _npy_header(Path(where), stream, text)
            nbytes = math.prod(shape) * dtype.itemsize
            held = info.file_size - stream.tell()
        if nbytes != held or info.file_size > _MAX_DEFLATE * info.compress_size + 1024:
            raise FileFormatError(f"{where} declares {nbytes:,} bytes, which the file can't hold")
        check_allocation(where, nbytes)
        with archive.open(info) as stream:
            return _native(np.lib.format.read_array(stream, allow_pickle=False))


def read_npz(
    source: str | os.PathLike[str], array: str | None = None, reserved: tuple[str | None, ...] = ()
) -> Rows:
    """The named array of an .npz file, or its only one; a CSR or CSC matrix as scipy writes it."""
    path = regular_file(source)
    names = _npz_names(path)
    if array is None and {"data", "indices", "indptr", "shape"} <= set(names):
        return _read_sparse(path, names)
    candidates = [n for n in names if n not in reserved]
    if array is None and "X" in candidates:
        array = "X"
    if array is None and len(candidates) == 1:
        array = candidates[0]
    if array is None or array not in names:
        wanted = f"has no array {array!r}" if array else "holds several arrays"
        raise InputError(
            f"{path} {wanted}; name one with --array: {', '.join(names) or 'none there'}"
        )
    return _npz_array(path, array)


def _read_sparse(path: Path, names: list[str]) -> csr_matrix:
    """A matrix of `scipy.sparse.save_npz`, or the arrays of an .h5ad's X, every index checked."""
    data, indices, indptr, shape = (
        _npz_array(path, n) for n in ("data", "indices", "indptr", "shape")
    )
    form = str(_npz_array(path, "format", text=True).astype(str)) if "format" in names else "csr"
    form = form.removeprefix("b'").removesuffix("'")
    if form not in ("csr", "csc"):
        raise FileFormatError(f"{path} holds a sparse matrix of format {form!r}; save it as csr")
    with reading(path, "a sparse matrix"):
        size = (int(shape[0]), int(shape[1]))
        if min(size) < 0 or shape.shape != (2,) or data.ndim != 1:
            raise FileFormatError(f"{path} declares a sparse matrix of shape {shape.tolist()}")
        matrix = (csr_matrix if form == "csr" else csc_matrix)((data, indices, indptr), shape=size)
        matrix.check_format(full_check=True)
        result = csr_matrix(matrix)
        result.sum_duplicates()
    return result if result.dtype.kind == "f" else result.astype(np.float32)


def read_npz_arrays(source: str | os.PathLike[str], names: tuple[str, ...]) -> dict[str, Array]:
    """Several arrays of an .npz file, each checked."""
    path = regular_file(source)
    missing = [n for n in names if n not in _npz_names(path)]
    if missing:
        raise FileFormatError(f"{path} has no array {', '.join(missing)}")
    return {name: _npz_array(path, name) for name in names}
