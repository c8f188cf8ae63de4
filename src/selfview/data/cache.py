"""The cache folder: rows larger than memory and prepared datasets, each written once and whole."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from selfview.data.dataset import Array
from selfview.data.guard import logger
from selfview.data.npy import blocks_of, read_npy, write_rows
from selfview.errors import InputError, SelfViewError

T = TypeVar("T")
_DAY = 86_400  # seconds
# What reading a damaged entry may raise; the entry is then made again.
DAMAGE = (
    *(SelfViewError, OSError, ValueError, KeyError, TypeError),
    *(IndexError, AttributeError, RecursionError, ArithmeticError, MemoryError),
)


class CacheError(InputError):
    """The cache folder can't be written to."""


def cache_folder() -> Path:
    """Where downloads and prepared rows are kept; SELFVIEW_CACHE names another place."""
    if chosen := os.environ.get("SELFVIEW_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "selfview"


def fingerprint(files: Iterable[Path], *facts: object) -> str:
    """A key that changes when a file is replaced or a fact differs.

    Files are compared by name, size and time, not by content.
    """
    digest = hashlib.sha256(repr(facts).encode() if facts else b"")
    for file in files:
        found = file.stat()
        digest.update(f"{file.resolve()}|{found.st_size}|{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def cached(
    kind: str, key: str, write: Callable[[Path], None], load: Callable[[Path], T], nbytes: int = 0
) -> T:
    """What `load` reads from an entry of the cache, which `write` fills unless it is there.

    An entry is a folder, written under another name and renamed when it is whole. Where another
    process was faster, its entry stays.

    Parameters
    ----------
    kind, key : str
        The folder of the cache, and the entry's name in it.
    write, load : callables of the entry's folder
    nbytes : int, default 0
        Bytes that the entry will take, compared with the room on the disk.
    """
    parent = cache_folder() / kind
    final = parent / key
    if final.is_dir():
        try:
            return load(final)
        except DAMAGE as error:
            logger.info("making the damaged %s again: %s", final, error)
            shutil.rmtree(final, ignore_errors=True)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for left in parent.glob(".making-*"):  # by a process that was killed
            if time.time() - left.stat().st_mtime > _DAY:
                shutil.rmtree(left, ignore_errors=True)
        _check_room(parent, nbytes)
        making = Path(tempfile.mkdtemp(prefix=".making-", dir=parent))
        try:
            write(making)
            if not final.is_dir():
                making.rename(final)
        except OSError:
            if not final.is_dir():
                raise
        finally:
            shutil.rmtree(making, ignore_errors=True)
    except OSError as error:
        raise CacheError(
            f"can't keep rows in the cache folder {parent}: {error.strerror or error}; set "
            "SELFVIEW_CACHE to a folder with room"
        ) from error
    return load(final)


def _check_room(folder: Path, nbytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if nbytes > free:
        raise CacheError(
            f"{nbytes / 2**30:,.1f} GiB of rows are to be kept in {folder}, which has room for "
            f"{free / 2**30:,.1f} GiB; set SELFVIEW_CACHE to a folder with room"
        )


def cached_array(key: str, nbytes: int, write: Callable[[Path], None]) -> Array:
    """The .npy file of the cache under this key, which `write` makes; mapped if large."""
    return cached(
        "mapped", key, lambda f: write(f / "X.npy"), lambda f: read_npy(f / "X.npy"), nbytes
    )


def map_blocks(rows: Any, what: str, dtype: Any, change: Callable[[int, Array], Array]) -> Array:
    """`change(first row, block)` of each block of a mapped array, as a mapped file of the cache.

    `what` names the change; with the array's file it decides the entry.
    """
    kind = np.dtype(dtype)

    def write(path: Path) -> None:
        with np.errstate(over="ignore"):  # beyond float32: infinite, reported later
            changed = (change(start, block) for start, block in blocks_of(rows))
            write_rows(path, tuple(rows.shape[1:]), kind, changed)

    key = fingerprint([Path(str(rows.filename))], what, kind.str, rows.shape)
    return cached_array(key, rows.size * kind.itemsize, write)
