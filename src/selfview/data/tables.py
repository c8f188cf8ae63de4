"""Tables: .csv, .tsv, .parquet, .xlsx; columns of any kind; ids, labels and groups by name.

The rows of a large table are written to the cache once and mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from selfview.data import guard
from selfview.data.cache import Entry, cache_folder, cache_key, cached
from selfview.data.dataset import Array, Dataset, Options
from selfview.data.delimited import DelimitedFile
from selfview.data.excel import ExcelFile
from selfview.data.guard import notify, report_bad_rows
from selfview.data.labels import read_labels
from selfview.data.mixed import (
    NO_NUMBER,
    SAMPLE_CELLS,
    SAMPLE_ROWS,
    encoded_chunks,
    learn_table,
    looks_plain,
)
from selfview.data.npy import write_rows
from selfview.data.parquet import ParquetFile
from selfview.data.preparation import Preparation
from selfview.data.table_files import TableFile, TableRows
from selfview.errors import FileFormatError, InputError
from selfview.tables.columns import LeftOut, Number, Table
from selfview.tables.decisions import Decisions, decisions_of
from selfview.tables.encoding import Notes, TableEncoder

TABLES: dict[str, Callable[[Path, bool | None, Sequence[str]], TableFile]] = {
    ".csv": DelimitedFile,
    ".tsv": DelimitedFile,
    ".parquet": ParquetFile,
    ".xlsx": ExcelFile,
}
SIDES = ("label", "id", "groups")  # columns that are no features
_REMEDY = "; --numeric COLUMN takes such words for gaps, --categorical COLUMN all for categories"
RULES = 4  # raise it when the same file gives other rows: cached rows then no longer count


@dataclass(frozen=True, eq=False)
class TableFilePreparation(Preparation):
    """Columns of a table by name; a table without a header has columns 1, 2, 3 ...

    ``table`` is what is known of every column (`Table.to_json`). Without it ``columns`` are numbers
    in this order, of which nothing else is known. ``label``, ``id`` and ``groups`` are columns of
    the fit that are no features; new files may lack them.
    """

    columns: tuple[str, ...]
    header: bool
    label: str | None = None
    id: str | None = None
    groups: str | None = None
    table: dict[str, Any] | None = None

    kind: ClassVar[str] = "table"
    suffixes: ClassVar[str] = ".csv, .tsv, .parquet or .xlsx"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.feature_names),)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.columns if self.table is None else Table.from_json(self.table).features

    @property
    def decisions(self) -> Decisions | None:
        """What was decided about the columns; None if all are numbers as they are."""
        table = None if self.table is None else Table.from_json(self.table)
        if table is None or (table.as_is and table.used == table.columns):
            return None
        return decisions_of(table)

    def consistent(self) -> bool:
        names = self.columns
        if self.table is not None:
            known = [column.name for column in Table.from_json(self.table).columns]
            return known == list(names)
        return 0 < len(set(names)) == len(names)

    def read_files(self, path: Path, options: Options) -> Dataset:
        if path.suffix.lower() not in TABLES:
            raise InputError(f"{path}: this model was fitted on a table, give {self.suffixes}")
        file = open_table(path, self.header, ())
        _check_named(file, options)
        sides = {side: getattr(options, side) or getattr(self, side) for side in SIDES}
        known = (*self.columns, *sides.values(), *file.index)
        there = {side: column for side, column in sides.items() if column in file.columns}
        table = None if self.table is None else Table.from_json(self.table)
        used = self.columns if table is None else [column.name for column in table.used]
        notes = Notes(
            missing=tuple(c for c in used if c not in file.columns),
            extra=tuple(c for c in file.columns if c not in known),
        )
        if notes.missing and (table is None or len(notes.missing) == len(used)):
            extra = f" and has {first_columns(notes.extra)}" if notes.extra else ""
            raise InputError(
                f"{path} lacks {first_columns(notes.missing)}{extra}: the columns must be those "
                "the model was fitted on"
            )
        aside = _aside(there)
        if table is None:
            found = read_rows(file, used, aside)
        else:
            plain = table.as_is and not notes.missing
            found = (plain_rows(file, used, aside) if plain else None) or encoded_rows(
                file, table, aside, notes
            )
        return _dataset(file, self, there, found, notes, options.skip_bad)


def fit_table(path: Path, options: Options) -> Dataset:
    """The rows of a table: all columns but those of the ids, labels, groups and an index."""
    sides = {side: getattr(options, side) for side in SIDES}
    choice = options.choice
    file = open_table(path, options.header, [c for c in sides.values() if c] + choice.named)
    _check_named(file, options)
    columns = tuple(c for c in file.columns if c not in (*sides.values(), *file.index))
    if not columns:
        raise InputError(f"{path} has no columns left for the rows")
    try:
        choice.check(columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    sides["id"] = options.id or next((c for c in file.index if c not in sides.values()), None)
    notes, found = Notes(), None
    table = looks_plain(file, columns, choice)
    if table is not None:
        sides["id"] = sides["id"] or _first_id(table)
        found = plain_rows(file, [c.name for c in table.used], _aside(sides))
    if table is None or found is None:
        table = learn_table(file, columns, choice)
        sides["id"] = sides["id"] or _first_id(table)
        found = encoded_rows(file, table, _aside(sides), notes)
    elif len(found.X):
        table = _with_medians(table, found.X)
    how = TableFilePreparation(columns, file.header, **sides, table=table.to_json())
    return _dataset(file, how, sides, found, notes, options.skip_bad)


def _first_id(table: Table) -> str | None:
    """The first column that names the rows."""
    return next((c.name for c in table.columns if isinstance(c, LeftOut) and c.is_id), None)


def _with_medians(table: Table, X: Array) -> Table:
    """The table of plain numbers with medians of all rows, or of so many evenly spaced ones."""
    rows = max(1, min(SAMPLE_ROWS, SAMPLE_CELLS // X.shape[1]))
    medians = iter(np.median(X[:: -(-len(X) // rows)], axis=0).astype(np.float64).tolist())
    columns = (
        replace(c, centre=next(medians)) if isinstance(c, Number) else c for c in table.columns
    )
    return replace(table, columns=tuple(columns))


def _aside(sides: Mapping[str, str | None]) -> list[str]:
    return list(dict.fromkeys(column for column in sides.values() if column is not None))


def _check_named(table: TableFile, options: Options) -> None:
    for side in SIDES:
        if getattr(options, side) is not None:
            existing_column(table, getattr(options, side), side)


def _dataset(
    file: TableFile,
    how: TableFilePreparation,
    sides: Mapping[str, str | None],
    found: TableRows,
    notes: Notes,
    skip_bad: bool,
) -> Dataset:
    path = file.path
    label, row_id, groups = map(sides.get, SIDES)
    if found.total == 0:
        raise FileFormatError(f"{path} holds no rows")
    words = any(reason.endswith(NO_NUMBER) for reason in found.bad)
    messages = report_bad_rows(path, found.bad, found.total, skip_bad, _REMEDY * words)
    messages += tuple(notify(f"{path}: {line}") for line in notes.lines())
    y, classes = read_labels(found.aside[label]) if label else (None, ())
    return Dataset(
        name=path.name, X=found.X, y=y, classes=classes,
        ids=np.array(found.aside[row_id]) if row_id else None,
        groups=np.array([text.strip() for text in found.aside[groups]]) if groups else None,
        source=f"path {path}", preparation=how, skipped=tuple(found.bad), messages=messages,
    )  # fmt: skip


def open_table(path: Path, header: bool | None, hints: Sequence[str]) -> TableFile:
    """The table; with `header` None, a first line that holds one of the `hints` is a header."""
    table = TABLES[path.suffix.lower()](path, header, hints)
    doubles = sorted({c for c in table.columns if table.columns.count(c) > 1})
    if doubles:
        raise FileFormatError(f"{path} has more than one column called {', '.join(doubles[:5])}")
    return table


def existing_column(table: TableFile, column: str, option: str) -> str:
    """The column, if the table has it; else an error that says which it has."""
    if column in table.columns:
        return column
    lower = {c.lower(): c for c in table.columns}
    near = get_close_matches(column.lower(), lower, 1)
    meant = f"; did you mean {lower[near[0]]!r}?" if near else ""
    known = first_columns(table.columns)
    raise InputError(f"{table.path} has no column {column!r} for {option}, but {known}{meant}")


def first_columns(columns: Sequence[str]) -> str:
    """The names of the first few columns."""
    more = f" and {len(columns) - 8} more" if len(columns) > 8 else ""
    shown = (c if len(c) <= 40 else c[:40] + "..." for c in columns[:8])
    return "columns " + ", ".join(map(repr, shown)) + more


def read_rows(file: TableFile, columns: Sequence[str], aside: Sequence[str]) -> TableRows:
    """All rows of these columns as numbers, with the texts of the columns aside."""
    return _numbers(file, columns, aside, file.chunks(columns, aside))


def plain_rows(file: TableFile, columns: Sequence[str], aside: Sequence[str]) -> TableRows | None:
    """The same; None if a row has a gap or anything else that is no number."""

    def chunks() -> Iterator[TableRows]:
        for chunk in file.chunks(columns, aside):
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
    key = cache_key([file.path], RULES, tuple(columns), tuple(aside), file.header)
    return _collected(key, len(columns), chunks, aside)


def encoded_rows(file: TableFile, table: Table, aside: Sequence[str], notes: Notes) -> TableRows:
    """All rows as features of the table, with the texts of the columns aside."""
    key = cache_key(
        [file.path], RULES, repr(table), notes.missing, tuple(aside), file.header, file.columns
    )
    chunks = encoded_chunks(file, TableEncoder(table), aside, notes)
    return _collected(key, len(table.features), chunks, aside, notes)


def _collected(
    key: str,
    width: int,
    chunks: Iterator[TableRows],
    aside: Sequence[str],
    notes: Notes | None = None,
) -> TableRows:
    """The chunks as one; if they are large, mapped from the cache, where notes are kept too."""
    few: list[TableRows] = []
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
        return {"rows": {"aside": found.aside, "bad": found.bad}, "notes": notes.counts()}

    def load(entry: Entry) -> TableRows:
        notes.set_counts(entry.facts["notes"])
        return TableRows(entry.arrays["X"], **entry.facts["rows"])

    return cached("tables", key, write, load)


def _joined(X: Array, chunks: Sequence[TableRows], aside: Sequence[str]) -> TableRows:
    texts = {c: [v for chunk in chunks for v in chunk.aside[c]] for c in aside}
    return TableRows(X, texts, [reason for chunk in chunks for reason in chunk.bad])
