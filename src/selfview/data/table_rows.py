"""Rows of tables: joined from blocks, mapped from the cache if they are large."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from selfview.data import guard
from selfview.data.cache import Entry, cache_folder, cache_key, cached
from selfview.data.dataset import Array, Dataset
from selfview.data.guard import REMEDY, notify, report_bad_rows
from selfview.data.labels import read_labels
from selfview.data.mixed import NO_NUMBER, encoded_chunks, number_chunks
from selfview.data.npy import write_rows
from selfview.data.preparation import Preparation
from selfview.data.table_files import TableFile, TableRows
from selfview.errors import FileFormatError
from selfview.tables.columns import Table
from selfview.tables.encoding import Notes, TableEncoder

SIDES = ("label", "id", "groups")  # columns that are no features
RULES = 7  # raise it when the same file gives other rows: cached rows then no longer count
_MANY_BAD = 1_000_000  # rows that can't be read, each of which has its reason
_WORDS = "; --numeric COLUMN takes such words for gaps, --categorical COLUMN all for categories"


def read_rows(file: TableFile, columns: Sequence[str], aside: Sequence[str]) -> TableRows:
    """All rows of these columns as numbers, with the texts of the columns aside."""
    return _numbers(file, columns, aside, number_chunks(file, columns, aside))


def plain_rows(file: TableFile, columns: Sequence[str], aside: Sequence[str]) -> TableRows | None:
    """The same; None if a row has a gap or anything else that is no number."""

    def chunks() -> Iterator[TableRows]:
        for chunk in number_chunks(file, columns, aside):
            if chunk.bad:
                raise _NotPlainError
            yield chunk

    try:
        return _numbers(file, columns, aside, chunks())
    except _NotPlainError:
        return None


class _NotPlainError(Exception):
    """A table isn't one of numbers alone."""


def _numbers(
    file: TableFile, columns: Sequence[str], aside: Sequence[str], chunks: Iterator[TableRows]
) -> TableRows:
    key = cache_key(file.files, RULES, tuple(columns), tuple(aside), file.header, file.sheet)
    return collected(file.path, key, len(columns), chunks, aside)


def encoded_rows(file: TableFile, table: Table, aside: Sequence[str], notes: Notes) -> TableRows:
    """All rows as features of the table, with the texts of the columns aside."""
    key = cache_key(
        file.files, RULES, repr(table), notes.missing, tuple(aside), file.header, file.columns,
        file.sheet,
    )  # fmt: skip
    chunks = encoded_chunks(file, TableEncoder(table), aside, notes)
    return collected(file.path, key, len(table.features), chunks, aside, notes)


def _mostly_good(path: Path, chunks: Iterator[TableRows]) -> Iterator[TableRows]:
    """The chunks; FileFormatError once reasons for bad rows would fill the memory."""
    good = bad = 0
    for chunk in chunks:
        good, bad = good + len(chunk.X), bad + len(chunk.bad)
        if bad > max(_MANY_BAD, good):
            raise FileFormatError(
                f"{path}: {bad:,} of its first {good + bad:,} rows can't be read: {chunk.bad[0]}"
            )
        yield chunk


def collected(
    path: Path,
    key: str,
    width: int,
    chunks: Iterator[TableRows],
    aside: Sequence[str],
    notes: Notes | None = None,
) -> TableRows:
    """The chunks as one; if they are large, mapped from the cache, where notes are kept too."""
    few: list[TableRows] = []
    chunks = _mostly_good(path, chunks)
    notes = Notes() if notes is None else notes
    if not (cache_folder() / "tables" / key).is_dir():
        size = 0
        for chunk in chunks:
            few.append(chunk)
            size += chunk.X.nbytes
            if size > guard.IN_MEMORY:
                break
        else:
            none = np.empty((0, width), np.float32)
            return _joined(np.concatenate([none, *(chunk.X for chunk in few)]), few, aside)

    def write(folder: Path) -> dict[str, Any]:
        rest: list[TableRows] = []

        def blocks() -> Iterator[Array]:
            for chunk in chain(few, chunks):
                rest.append(TableRows(np.empty(0), chunk.aside, chunk.bad))
                yield chunk.X

        write_rows(folder / "X.npy", (width,), np.float32, blocks())
        found = _joined(np.empty(0), rest, aside)
        for i, texts in enumerate(found.aside.values()):
            np.save(folder / f"aside{i}.npy", texts)
        return {"bad": found.bad, "notes": notes.counts()}

    def load(entry: Entry) -> TableRows:
        notes.set_counts(entry.facts["notes"])
        texts = {c: entry.arrays[f"aside{i}"] for i, c in enumerate(aside)}
        return TableRows(entry.arrays["X"], texts, entry.facts["bad"])

    return cached("tables", key, write, load)


def _joined(X: Array, chunks: Sequence[TableRows], aside: Sequence[str]) -> TableRows:
    none = np.empty(0, str)
    texts = {c: np.concatenate([none, *(chunk.aside[c] for chunk in chunks)]) for c in aside}
    return TableRows(X, texts, [reason for chunk in chunks for reason in chunk.bad])


def aside_of(sides: Mapping[str, str | None]) -> list[str]:
    """The columns of labels, ids and groups, each once."""
    return list(dict.fromkeys(column for column in sides.values() if column is not None))


def table_dataset(
    path: Path,
    how: Preparation,
    sides: Mapping[str, str | None],
    found: TableRows,
    notes: Sequence[str],
    skip_bad: bool,
) -> Dataset:
    """The dataset of rows that were read; bad ones and notes are reported."""
    label, row_id, groups = map(sides.get, SIDES)
    if found.total == 0:
        raise FileFormatError(f"{path} holds no rows")
    words = any(reason.endswith(NO_NUMBER) for reason in found.bad)
    messages = report_bad_rows(path, found.bad, found.total, skip_bad, REMEDY + _WORDS * words)
    messages += tuple(notify(f"{path}: {line}") for line in notes)
    y, classes = read_labels(found.aside[label].tolist()) if label else (None, ())
    return Dataset(
        name=path.name, X=found.X, y=y, classes=classes,
        ids=found.aside[row_id] if row_id else None,
        groups=np.char.strip(found.aside[groups]) if groups else None,
        source=f"path {path}", preparation=how, skipped=tuple(found.bad), messages=messages,
    )  # fmt: skip
