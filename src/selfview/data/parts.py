"""Parts: files of a glob or a folder, .parquet, .npy, .npz or .h5ad, that hold one set of rows.

The first part decides how rows are made, and the others are read by its preparation. All go into
one entry of the cache, a block at a time and in the order of their names, and are read from there.
"""

from __future__ import annotations

import glob
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from selfview.data.cache import Entry, cache_key, cached
from selfview.data.dataset import Array, Dataset, Options
from selfview.data.labels import encode_labels
from selfview.data.npy import blocks_of, write_rows
from selfview.data.preparation import Preparation
from selfview.data.sparse import row_blocks, write_csr, written_csr
from selfview.errors import InputError

SUFFIXES = (".parquet", ".npy", ".npz", ".h5ad")
BESIDE = ("labels", "ids", "groups")  # texts of every row, where parts have them


def is_glob(source: str | os.PathLike[str]) -> bool:
    """Is this a pattern of names, and no name of a file?"""
    return any(sign in str(source) for sign in "*?[") and not os.path.exists(source)


def parts_of(source: str | os.PathLike[str]) -> list[Path]:
    """The files of a glob, or of a folder that holds parts alone, sorted by name; else none."""
    if is_glob(source):
        found = sorted(Path(name) for name in glob.glob(str(source)))
        if not found:
            raise InputError(f"{source}: no file has a name of this form")
        kinds = {path.suffix.lower() for path in found}
        if len(kinds) > 1 or not kinds <= set(SUFFIXES):
            raise InputError(
                f"{source}: parts must be all {', all '.join(SUFFIXES[:-1])} or all "
                f"{SUFFIXES[-1]} files, got {', '.join(sorted(kinds))}"
            )
        return found
    if not isinstance(source, str | os.PathLike) or not str(source) or not os.path.isdir(source):
        return []
    path = Path(source)
    if path.suffix.lower() == ".zarr":
        return []
    found = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    kinds = {file.suffix.lower() for file in found}
    return found if len(kinds) == 1 and kinds <= set(SUFFIXES) else []


def join_parts(
    source: object,
    parts: list[Path],
    options: Options,
    how: Preparation | None,
    read: Callable[[Path, Preparation | None], Dataset],
) -> Dataset:
    """The rows of all `parts`, mapped if they are many.

    Parameters
    ----------
    source : path
        What the user named.
    parts : list of Path
    options : Options
    how : Preparation or None
        By which rows are made; None: by that of the first part.
    read : callable
        From a part, and a preparation or None, to its rows.
    """
    first = read(parts[0], how)
    how = first.preparation if how is None else how
    dense = isinstance(first.X, np.ndarray)

    def make(folder: Path) -> dict[str, Any]:
        beside: dict[str, dict[Path, Array]] = {name: {} for name in BESIDE}
        skipped: dict[Path, list[str]] = {}

        def blocks() -> Iterator[Any]:
            for part in parts:
                dataset = read(part, how)
                _check_alike(part, dataset, parts[0], first)
                skipped[part] = [f"{part.name}: {reason}" for reason in dataset.skipped]
                for name, values in _texts(dataset).items():
                    beside[name][part] = values
                if isinstance(dataset.X, np.ndarray):
                    yield from (block for _, block in blocks_of(dataset.X))
                else:
                    yield from row_blocks(dataset.X)

        if dense:
            write_rows(folder / "X.npy", tuple(first.X.shape[1:]), np.float32, blocks())
        else:
            write_csr(folder, np.float32, blocks)
        for name, found in beside.items():
            if len(found) == len(parts):
                np.save(folder / f"{name}.npy", np.concatenate(list(found.values())))
        return {"skipped": [reason for part in parts for reason in skipped[part]]}

    def load(entry: Entry) -> Dataset:
        y: Array | None = None
        classes: tuple[str, ...] = ()
        if "labels" in entry.arrays:
            y, classes = encode_labels(entry.arrays["labels"].tolist())
        return replace(
            first,
            name=Path(str(source)).name,
            X=entry.arrays["X"]
            if dense
            else written_csr(Path(str(source)), first.X.shape[1], entry.arrays),
            y=y,
            classes=classes,
            ids=entry.arrays.get("ids"),
            groups=entry.arrays.get("groups"),
            further={},
            coordinates=None,
            snippets=None,
            source=str(source),
            preparation=how,
            skipped=tuple(entry.facts["skipped"]),
        )

    key = cache_key(parts, "parts", repr(options), _fingerprint(how))
    return cached("parts", key, make, load, sum(part.stat().st_size for part in parts))


def _check_alike(part: Path, dataset: Dataset, first_part: Path, first: Dataset) -> None:
    """Raise InputError unless the rows of a part are of the first part's form."""
    if dataset.shape != first.shape:
        raise InputError(f"{part} has rows of shape {dataset.shape}, {first_part} of {first.shape}")
    if isinstance(dataset.X, np.ndarray) != isinstance(first.X, np.ndarray):
        kinds = ("sparse", "dense") if isinstance(first.X, np.ndarray) else ("dense", "sparse")
        raise InputError(f"{part} holds {kinds[0]} rows, {first_part} {kinds[1]} ones")


def _texts(dataset: Dataset) -> dict[str, Array]:
    """Labels, row names and groups of a part, as texts."""
    found = {"ids": dataset.ids, "groups": dataset.groups}
    if dataset.y is not None:
        names = np.array([*dataset.classes, ""])  # a row without a label has the code -1
        found["labels"] = names[dataset.y] if dataset.classes else dataset.y
    return {name: np.asarray(v).astype(str) for name, v in found.items() if v is not None}


def _fingerprint(how: Preparation | None) -> int:
    """A number that differs between preparations."""
    total = zlib.crc32(type(how).__name__.encode())
    for each in () if how is None else fields(how):
        value = getattr(how, each.name)
        data = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        total = zlib.crc32(data, total)
    return total
