"""Rows of a table as they come: in memory while they are few, else in a file of the cache."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from selfview.data import guard
from selfview.data.cache import DAMAGE, cache_folder, fingerprint, made_beside, working_folder
from selfview.data.dataset import Array
from selfview.data.guard import logger
from selfview.data.mapped import no_room, write_header
from selfview.data.npy import read_npy
from selfview.data.table_files import Chunk, TableFile

_FOLDER = "tables"
_RULES = (
    2  # to be raised when the same file gives other rows: what is in the cache no longer counts
)


@dataclass(frozen=True)
class Collected:
    """The good rows of a table, the texts beside them, and what is wrong with the others."""

    X: Array
    aside: dict[str, list[str]]
    bad: tuple[str, ...]

    @property
    def total(self) -> int:
        """Rows seen, good and bad."""
        return len(self.X) + len(self.bad)


def collect(table: TableFile, columns: Sequence[str], aside: Sequence[str]) -> Collected:
    """All rows of these columns. Those of a large table go to the cache, and are found there."""
    wanted = json.dumps([_RULES, list(columns), list(aside), table.header])
    key = f"{fingerprint([table.path])}-{hashlib.sha256(wanted.encode()).hexdigest()[:16]}"
    kept = cache_folder() / _FOLDER / key
    if kept.is_dir():
        try:
            return _load(kept)
        except DAMAGE as error:
            logger.info("reading %s again, the cache %s is damaged: %s", table.path, kept, error)
            shutil.rmtree(kept, ignore_errors=True)
    few: list[Chunk] = []
    chunks = iter(table.chunks(columns, aside))
    for chunk in chunks:
        few.append(chunk)
        if sum(c.values.nbytes for c in few) > guard.IN_MEMORY:
            return _spill(kept, few, chunks, aside)
    none = np.empty((0, len(columns)), np.float32)
    return _joined(np.concatenate([none, *(chunk.values for chunk in few)]), few, aside)


def _joined(X: Array, chunks: Sequence[Chunk], aside: Sequence[str]) -> Collected:
    texts = {c: [v for chunk in chunks for v in chunk.aside[c]] for c in aside}
    return Collected(X, texts, tuple(reason for chunk in chunks for reason in chunk.bad))


def _spill(kept: Path, few: list[Chunk], more: Iterable[Chunk], aside: Sequence[str]) -> Collected:
    folder = working_folder(_FOLDER)
    try:
        with made_beside(folder / kept.name) as temporary:
            rest = _write(temporary / "X.npy", few, more)
            found = _joined(np.empty(0), rest, aside)
            facts = {"aside": found.aside, "bad": found.bad}
            (temporary / "rest.json").write_text(json.dumps(facts), encoding="utf-8")
        return _load(kept)
    except OSError as error:
        raise no_room(folder, error) from error


def _write(path: Path, few: list[Chunk], more: Iterable[Chunk]) -> list[Chunk]:
    """Write the numbers of all chunks; what is left of the chunks is their texts and reasons."""
    width = few[0].values.shape[1]
    none: NDArray[np.float32] = np.empty((0, width), np.float32)
    rest: list[Chunk] = []
    n = 0
    with path.open("wb") as stream:
        start = write_header(stream, np.float32, (0, width))
        for chunk in _emptied(few, more):
            stream.write(chunk.values.tobytes())
            n += len(chunk.values)
            rest.append(Chunk(none, chunk.aside, chunk.bad))
        stream.seek(0)
        if write_header(stream, np.float32, (n, width)) != start:
            raise OSError("the header grew")
    return rest


def _emptied(few: list[Chunk], more: Iterable[Chunk]) -> Iterable[Chunk]:
    while few:
        yield few.pop(0)
    yield from more


def _load(folder: Path) -> Collected:
    facts = json.loads((folder / "rest.json").read_text(encoding="utf-8"))
    X = read_npy(folder / "X.npy")
    aside = {str(c): [str(v) for v in values] for c, values in facts["aside"].items()}
    if any(len(values) != len(X) for values in aside.values()):
        raise ValueError("its parts don't belong together")
    return Collected(X, aside, tuple(str(reason) for reason in facts["bad"]))
