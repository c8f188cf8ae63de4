"""The .npy format: read without pickle, mapped if large, written and processed in blocks."""

import math
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from selfview.data import guard
from selfview.data.dataset import Array
from selfview.data.guard import reading, regular_file
from selfview.errors import FileFormatError


def read_npy(source: str | os.PathLike[str]) -> Array:
    """The array of a .npy file: in memory if small, else mapped read-only."""
    path = regular_file(source)
    with reading(path, "a .npy file"):
        with path.open("rb") as stream:
            shape, fortran, dtype = npy_header(path, stream)
            offset = stream.tell()
        nbytes = math.prod(shape) * dtype.itemsize
        if nbytes != path.stat().st_size - offset:
            raise FileFormatError(
                f"{path} declares {nbytes:,} bytes of values but holds "
                f"{path.stat().st_size - offset:,}: it is cut off or damaged"
            )
        if nbytes > guard.IN_MEMORY:
            return np.memmap(path, dtype, "r", offset, shape, order="F" if fortran else "C")
        return native(np.load(path, allow_pickle=False))


def npy_header(path: Path, stream: IO[bytes], text: bool = False) -> tuple[Any, bool, Any]:
    """Shape, whether columns are stored first, and type; only numbers, or also `text`."""
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


def native(array: Array) -> Array:
    """The array in native byte order; half and extended precision as float32 and float64."""
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        return array.astype(np.float32 if array.dtype.itemsize < 4 else np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def write_header(stream: IO[bytes], dtype: Any, shape: tuple[int, ...]) -> int:
    """Write a .npy header, whose length is the same for any number of rows; returns the length."""
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.tell()


def write_rows(path: Path, row_shape: tuple[int, ...], dtype: Any, blocks: Iterable[Array]) -> None:
    """Write blocks of rows to a .npy file as they come, however many there will be."""
    n = 0
    with path.open("wb") as stream:
        start = write_header(stream, dtype, (0, *row_shape))
        for block in blocks:
            stream.write(np.ascontiguousarray(block, dtype=dtype).tobytes())
            n += len(block)
        stream.seek(0)
        if write_header(stream, dtype, (n, *row_shape)) != start:
            raise OSError("the header grew")


def blocks_of(array: Array) -> Iterator[tuple[int, Array]]:
    """The array in blocks of rows, each with the number of its first row.

    The pages of a map are released after each block, so that they don't count as memory.
    """
    base: Any = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    mapped = isinstance(base, np.memmap) and base.mode != "c" and hasattr(mmap, "MADV_DONTNEED")
    step = max(1, guard.BLOCK // max(1, array[:1].nbytes))
    for start in range(0, len(array), step):
        yield start, np.array(array[start : start + step])
        if mapped:
            base._mmap.madvise(mmap.MADV_DONTNEED)
