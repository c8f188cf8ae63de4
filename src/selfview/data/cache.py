"""The cache folder: rows larger than memory and prepared datasets, each written once and whole."""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from selfview.data.dataset import Array
from selfview.data.guard import logger, reading
from selfview.data.npy import blocks_of, read_npy, write_rows
from selfview.errors import InputError, SelfViewError

T = TypeVar("T")
_DAY = 86_400  # seconds
_FACTS = "facts.json"
_SUMMED = 256 * 2**20  # larger files are checked by size alone, so that loading stays instant
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


def cache_key(files: Iterable[Path], *facts: object) -> str:
    """A key that changes when a file is replaced or a fact differs.

    Files are compared by name, size and time, not by content.
    """
    digest = hashlib.sha256(repr(facts).encode() if facts else b"")
    for file in files:
        found = file.stat()
        digest.update(f"{file.resolve()}|{found.st_size}|{found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Entry:
    """What an entry of the cache holds: arrays by name, mapped if large, and JSON values."""

    folder: Path
    arrays: dict[str, Array]
    facts: Any


def cached(
    kind: str, key: str, make: Callable[[Path], Any], load: Callable[[Entry], T], nbytes: int = 0
) -> T:
    """What `load` makes of the entry `key` in the cache's folder `kind`, made unless it is there.

    `make` writes .npy files into a folder and returns what JSON can hold. The folder is renamed
    when it is whole; where another process was faster, its entry stays. A damaged entry is made
    again. `nbytes`, which the entry will take, are compared with the room on the disk.
    """
    parent = cache_folder() / kind
    final = parent / key
    if final.is_dir():
        try:
            return load(_opened(final))
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
            facts = make(making)
            files = {file.name: _size_and_crc(file) for file in sorted(making.iterdir())}
            text = json.dumps({"facts": facts, "files": files})
            (making / _FACTS).write_text(text, encoding="utf-8")
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
    return load(_opened(final))


def _opened(folder: Path) -> Entry:
    """The entry, its files compared with what was written."""
    content = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    for name, written in content["files"].items():
        if _size_and_crc(folder / name) != written:
            raise ValueError(f"{name} has changed")
    arrays = {file.stem: _array(file) for file in sorted(folder.glob("*.npy"))}
    return Entry(folder, arrays, content["facts"])


def _array(file: Path) -> Array:
    """An array of the cache; texts (row names) are read too."""
    with reading(file, "a file of the cache"):
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    return read_npy(file) if array.dtype.kind in "biuf" and array.size else np.array(array)


def _size_and_crc(file: Path) -> list[int]:
    size = file.stat().st_size
    total = 0
    if size <= _SUMMED:
        with file.open("rb") as stream:
            while block := stream.read(2**20):
                total = zlib.crc32(block, total)
    return [size, total]


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
        "mapped", key, lambda f: write(f / "X.npy"), lambda entry: entry.arrays["X"], nbytes
    )


def map_blocks(rows: Any, what: object, dtype: Any, change: Callable[[int, Array], Array]) -> Array:
    """`change(first row, block)` of each block of a mapped array, as a mapped file of the cache.

    `what` names the change; with the array's file it decides the entry.
    """
    kind = np.dtype(dtype)

    def write(path: Path) -> None:
        with np.errstate(over="ignore"):  # beyond float32: infinite, reported later
            changed = (change(start, block) for start, block in blocks_of(rows))
            write_rows(path, tuple(rows.shape[1:]), kind, changed)

    key = cache_key([Path(str(rows.filename))], what, kind.str, rows.shape, rows.offset)
    return cached_array(key, rows.size * kind.itemsize, write)
