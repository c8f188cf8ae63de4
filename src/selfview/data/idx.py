"""IDX files (MNIST's format), plain or gzipped, checked before anything is allocated."""

from __future__ import annotations

import gzip
import math
import os
import struct
from pathlib import Path
from typing import BinaryIO

import numpy as np

from selfview.data.dataset import Array
from selfview.data.guard import check_allocation, reading, regular_file
from selfview.errors import FileFormatError

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_GZIP = b"\x1f\x8b"
_MAX_DEFLATE = 1032  # deflate can't expand further than this


def read_idx(path: str | os.PathLike[str], *, transposed: bool = False) -> Array:
    """The array of an IDX file.

    Parameters
    ----------
    path : path
        ``*-ubyte`` or ``*-ubyte.gz``; gzip is told by content, not by name.
    transposed : bool
        Swap the last two axes: E-MNIST stores its images column by column.
    """
    path = regular_file(path)
    with reading(path, "an IDX file"), path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        size = path.stat().st_size
        if packed:
            with gzip.GzipFile(fileobj=raw) as stream:
                array = _parse(path, stream, size * _MAX_DEFLATE)  # type: ignore[arg-type]
        else:
            array = _parse(path, raw, size)
    return np.ascontiguousarray(np.swapaxes(array, -1, -2)) if transposed else array


def _parse(path: Path, stream: BinaryIO, limit: int) -> Array:
    head = stream.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _TYPES or not 1 <= head[3] <= 8:
        raise FileFormatError(
            f"{path} is not an IDX file: it starts with {head.hex() or 'nothing'}"
        )
    dtype = np.dtype(_TYPES[head[2]])
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
    array = np.frombuffer(body, dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)
