"""The .npy format: in memory if small, else mapped; never pickled, sizes checked first."""

from __future__ import annotations

import math
import os
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
    """Native byte order; half and extended precision as float32 and float64."""
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        return array.astype(np.float32 if array.dtype.itemsize < 4 else np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
