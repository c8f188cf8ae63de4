"""Arrays larger than memory: written to the cache once, mapped, and gone through in blocks."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from selfview.data.cache import fingerprint, working_folder
from selfview.data.dataset import Array
from selfview.data.guard import logger
from selfview.data.npy import read_npy
from selfview.errors import InputError, SelfViewError

BLOCK = 2**24  # bytes


def write_header(stream: BinaryIO, dtype: Any, shape: tuple[int, ...]) -> int:
    """The header of a .npy file; it is of one length for any number of rows."""
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.tell()


def kept_array(key: str, nbytes: int, write: Callable[[BinaryIO], None]) -> Array:
    """The .npy of the cache under this key, written now unless it is there; mapped if large."""
    folder = working_folder("mapped")
    final = folder / f"{key}.npy"
    if final.is_file():
        try:
            return read_npy(final)
        except SelfViewError as error:
            logger.info("writing the damaged %s anew: %s", final, error)
    check_room(folder, nbytes)
    handle, name = tempfile.mkstemp(prefix=".making-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
        os.replace(name, final)
    except OSError as error:
        raise no_room(folder, error) from error
    finally:
        Path(name).unlink(missing_ok=True)
    return read_npy(final)


def check_room(folder: Path, nbytes: int) -> None:
    """Refuse a declared size that the disk of the cache can't hold, before it is written."""
    free = shutil.disk_usage(folder).free
    if nbytes > free:
        raise InputError(
            f"{nbytes / 2**30:,.1f} GiB of rows are to be kept in {folder}, which has room for "
            f"{free / 2**30:,.1f} GiB; set SELFVIEW_CACHE to a folder with room"
        )


def no_room(folder: Path, error: OSError) -> InputError:
    """The error for a cache that can't be written."""
    return InputError(
        f"can't keep rows in {folder}: {error.strerror or error}; set SELFVIEW_CACHE to a folder "
        "with room"
    )


def blocks_of(array: Array) -> Iterator[tuple[int, Array]]:
    """The array in blocks of rows, each with its first row's number.

    The pages of a map that is gone through are given back, so that they don't count as memory.
    """
    step = max(1, BLOCK // max(1, array[:1].nbytes))
    for start in range(0, len(array), step):
        yield start, np.array(array[start : start + step])
        forget(array)


def forget(array: Array) -> None:
    """Give back the pages of a read-only map; they are read again when they are needed."""
    base: Any = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    if isinstance(base, np.memmap) and base.mode == "r" and hasattr(mmap, "MADV_DONTNEED"):
        base._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def blockwise(rows: Any, what: str, dtype: Any, change: Callable[[Array], Array]) -> Array:
    """`change` of a mapped array, block by block, as a mapped file of the cache."""
    shape = tuple(int(d) for d in rows.shape)
    kind = np.dtype(dtype)
    facts = f"{what}-{kind.name}-{'x'.join(map(str, shape))}"

    def write(stream: BinaryIO) -> None:
        write_header(stream, kind, shape)
        for _, block in blocks_of(rows):
            with np.errstate(over="ignore"):  # beyond float32: infinite, named later
                stream.write(np.ascontiguousarray(change(block), dtype=kind).tobytes())

    key = f"{fingerprint([Path(str(rows.filename))])}-{facts}"
    return kept_array(key, rows.size * kind.itemsize, write)


def chosen_rows(rows: Any, good: Array) -> Array:
    """The mapped rows that are good, as a mapped file of the cache."""
    count = int(good.sum())

    def write(stream: BinaryIO) -> None:
        write_header(stream, rows.dtype, (count, *rows.shape[1:]))
        for start, block in blocks_of(rows):
            stream.write(block[good[start : start + len(block)]].tobytes())

    name = fingerprint([Path(str(rows.filename))])
    return kept_array(f"{name}-finite-{count}", count * rows[:1].nbytes, write)
