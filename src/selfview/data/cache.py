"""Prepared rows on disk: written once and whole, checked when read, never fatal."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from selfview.data.dataset import Array, Dataset
from selfview.data.guard import logger, reading
from selfview.data.npy import read_npy
from selfview.data.preparation import load_preparation
from selfview.errors import InputError, SelfViewError

_DAY = 86_400  # seconds
_SUMMED = 256 * 2**20  # larger files are checked by size alone, so that loading stays instant


def cache_folder() -> Path:
    """Where downloads and prepared rows are kept; SELFVIEW_CACHE names another place."""
    chosen = os.environ.get("SELFVIEW_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "selfview"


def working_folder(name: str) -> Path:
    """A folder of the cache that can be written to; what a killed process left there is removed."""
    folder = cache_folder() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(".making-*"):
            if time.time() - left.stat().st_mtime > _DAY:
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()
    except OSError as error:
        raise InputError(
            f"can't write to the cache folder {folder}: {error.strerror}; set SELFVIEW_CACHE to "
            "another one"
        ) from error
    return folder


@contextmanager
def made_beside(final: Path) -> Iterator[Path]:
    """A folder to write to, which becomes `final` at the end.

    Where another process was faster, its folder stays: what both make is the same.
    """
    folder = Path(tempfile.mkdtemp(prefix=".making-", dir=final.parent))
    try:
        yield folder
        try:
            folder.rename(final)
        except OSError:
            if not final.is_dir():
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fingerprint(files: Iterable[Path]) -> str:
    """Changes when a file is replaced: names, sizes and times, not contents."""
    digest = hashlib.sha256()
    for file in files:
        facts = file.stat()
        digest.update(f"{file.resolve()}|{facts.st_size}|{facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def remembered(
    name: str, version: int, files: Iterable[Path], make: Callable[[], Dataset]
) -> Dataset:
    """The dataset from the cache, or made now and kept there."""
    folder = cache_folder() / "prepared" / f"{name}-v{version}-{fingerprint(files)}"
    if folder.is_dir():
        try:
            return _load(folder)
        except DAMAGE as error:
            logger.info("rebuilding the damaged cache %s: %s", folder, error)
            shutil.rmtree(folder, ignore_errors=True)
    dataset = make()
    try:
        _store(folder, dataset)
    except (OSError, InputError) as error:
        logger.info("could not keep %s in the cache: %s", name, error)
        return dataset
    return _load(folder)


# What a damaged file of the cache may raise; it is then made again.
DAMAGE = (
    *(SelfViewError, OSError, ValueError, KeyError, TypeError),
    *(IndexError, AttributeError, RecursionError, ArithmeticError, MemoryError),
)
_ARRAYS = ("y", "train", "test", "coordinates", "ids", "snippets")
_PLAIN = ("classes", "shape", "epsilon", "source", "skipped", "messages")


def _store(folder: Path, dataset: Dataset) -> None:
    with made_beside(working_folder("prepared") / folder.name) as temporary:
        for name, array in _arrays_of(dataset).items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        if dataset.preparation is not None:
            dataset.preparation.save(temporary)
        facts: dict[str, Any] = {key: getattr(dataset, key) for key in _PLAIN}
        facts["X_shape"] = [int(d) for d in dataset.X.shape]
        facts["files"] = {file.name: _summary(file) for file in sorted(temporary.iterdir())}
        (temporary / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


def _arrays_of(dataset: Dataset) -> dict[str, Array]:
    arrays = {key: getattr(dataset, key) for key in _ARRAYS}
    arrays |= {f"further-{key}": value for key, value in dataset.further.items()}
    if isinstance(dataset.X, np.ndarray):
        arrays["X"] = dataset.X
    else:
        matrix: Any = dataset.X
        arrays |= {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    return {key: value for key, value in arrays.items() if value is not None}


def _summary(file: Path) -> list[int]:
    size = file.stat().st_size
    total = 0
    if size <= _SUMMED:
        with file.open("rb") as stream:
            while block := stream.read(2**20):
                total = zlib.crc32(block, total)
    return [size, total]


def _load(folder: Path) -> Dataset:
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    for name, summary in facts["files"].items():
        if _summary(folder / name) != summary:
            raise ValueError(f"{name} has changed")
    arrays: dict[str, Any] = {file.stem: read_any(file) for file in folder.glob("*.npy")}
    if "X" in arrays:
        X: Any = arrays.pop("X")
    else:
        parts = tuple(arrays.pop(key) for key in ("data", "indices", "indptr"))
        X = csr_matrix(parts, shape=tuple(facts["X_shape"]))
        X.check_format(full_check=True)  # scipy trusts every index, and would write anywhere
    further = {
        k.removeprefix("further-"): arrays.pop(k) for k in list(arrays) if k[:8] == "further-"
    }
    plain: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k in _PLAIN for v in [facts[k]]
    }
    preparation = load_preparation(folder) if (folder / "preparation.json").exists() else None
    return Dataset(name="", X=X, further=further, preparation=preparation, **plain, **arrays)


def read_any(file: Path) -> Array:
    """An array of the cache; texts (row names) are read too."""
    with reading(file, "a file of the cache"):
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    return read_npy(file) if array.dtype.kind in "biuf" and array.size else np.array(array)
