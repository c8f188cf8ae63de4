"""Tables: .csv, .tsv, .parquet, .xlsx; numbers in columns; ids, labels and groups by name.

The rows of a large table are written to the cache once and mapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from selfview.data import guard
from selfview.data.cache import cache_folder, cache_key, cached
from selfview.data.dataset import Array, Dataset, Options
from selfview.data.delimited import DelimitedFile
from selfview.data.excel import ExcelFile
from selfview.data.guard import report_bad_rows
from selfview.data.labels import read_labels
from selfview.data.npy import write_rows
from selfview.data.parquet import ParquetFile
from selfview.data.preparation import Preparation
from selfview.data.table_files import TableFile, TableRows
from selfview.errors import FileFormatError, InputError

TABLES: dict[str, Callable[[Path, bool | None, Sequence[str]], TableFile]] = {
    ".csv": DelimitedFile,
    ".tsv": DelimitedFile,
    ".parquet": ParquetFile,
    ".xlsx": ExcelFile,
}
SIDES = ("label", "id", "groups")  # columns that are no features
RULES = 3  # raise it when the same file gives other rows: cached rows then no longer count


@dataclass(frozen=True, eq=False)
class TablePreparation(Preparation):
    """Named columns in a fixed order; a table without a header has columns 1, 2, 3 ...

    ``label``, ``id`` and ``groups`` are columns of the fit that are no features; new files may
    lack them.
    """

    columns: tuple[str, ...]
    header: bool
    label: str | None = None
    id: str | None = None
    groups: str | None = None

    kind: ClassVar[str] = "table"
    suffixes: ClassVar[str] = ".csv, .tsv, .parquet or .xlsx"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.columns),)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.columns

    def consistent(self) -> bool:
        return 0 < len(set(self.columns)) == len(self.columns)

    def read_files(self, path: Path, options: Options) -> Dataset:
        if path.suffix.lower() not in TABLES:
            raise InputError(f"{path}: this model was fitted on a table, give {self.suffixes}")
        table = open_table(path, self.header, ())
        _check_named(table, options)
        sides = {side: getattr(options, side) or getattr(self, side) for side in SIDES}
        missing = [c for c in self.columns if c not in table.columns]
        known = (*self.columns, *sides.values(), *table.index)
        unknown = [c for c in table.columns if c not in known]
        wrong = [
            f"{what} {first_columns(columns)}"
            for what, columns in (("lacks", missing), ("has the unknown", unknown))
            if columns
        ]
        if wrong:
            raise InputError(
                f"{path} {' and '.join(wrong)}: the columns must be those the model was fitted on"
            )
        there = {side: column for side, column in sides.items() if column in table.columns}
        return _rows(table, self, there, options.skip_bad)


def fit_table(path: Path, options: Options) -> Dataset:
    """The rows of a table: all columns but those of the ids, labels, groups and an index."""
    sides = {side: getattr(options, side) for side in SIDES}
    table = open_table(path, options.header, [c for c in sides.values() if c is not None])
    _check_named(table, options)
    columns = tuple(c for c in table.columns if c not in (*sides.values(), *table.index))
    if not columns:
        raise InputError(f"{path} has no columns left for the rows")
    sides["id"] = options.id or next((c for c in table.index if c not in sides.values()), None)
    how = TablePreparation(columns, table.header, **sides)
    return _rows(table, how, sides, options.skip_bad)


def _check_named(table: TableFile, options: Options) -> None:
    for side in SIDES:
        if getattr(options, side) is not None:
            existing_column(table, getattr(options, side), side)


def _rows(
    table: TableFile, how: TablePreparation, sides: Mapping[str, str | None], skip_bad: bool
) -> Dataset:
    path = table.path
    label, row_id, groups = map(sides.get, SIDES)
    aside = list(dict.fromkeys(c for c in (label, row_id, groups) if c is not None))
    found = read_rows(table, how.columns, aside)
    if found.total == 0:
        raise FileFormatError(f"{path} holds no rows")
    _check_words(path, found.bad, found.total)
    messages = report_bad_rows(path, found.bad, found.total, skip_bad)
    y, classes = read_labels(found.aside[label]) if label else (None, ())
    return Dataset(
        name=path.name, X=found.X, y=y, classes=classes,
        ids=np.array(found.aside[row_id]) if row_id else None,
        groups=np.array([text.strip() for text in found.aside[groups]]) if groups else None,
        source=f"path {path}", preparation=how, skipped=tuple(found.bad), messages=messages,
    )  # fmt: skip


def _check_words(path: Path, bad: Sequence[str], total: int) -> None:
    """Raise InputError if one column holds no number in any row: it is no feature."""
    columns = {found[1] for reason in bad if (found := re.search(r"column ('.*?'): ", reason))}
    if len(bad) == total and len(columns) == 1:
        raise InputError(
            f"{path}: column {columns.pop()} holds no numbers. Say what it is with --label, --id "
            "or --groups (label=..., id=..., groups=...), or take it out"
        )


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


def read_rows(table: TableFile, columns: Sequence[str], aside: Sequence[str]) -> TableRows:
    """All rows of these columns, and the texts of the columns aside."""
    key = cache_key([table.path], RULES, tuple(columns), tuple(aside), table.header)
    chunks = iter(table.chunks(columns, aside))
    few: list[TableRows] = []
    if not (cache_folder() / "tables" / key).is_dir():
        size = 0
        for chunk in chunks:
            few.append(chunk)
            size += chunk.X.nbytes
            if size > guard.IN_MEMORY:
                break
        else:
            none = np.empty((0, len(columns)), np.float32)
            return _joined(np.concatenate([none, *(chunk.X for chunk in few)]), few, aside)

    def write(folder: Path) -> dict[str, Any]:
        rest: list[TableRows] = []

        def blocks() -> Iterator[Array]:
            for chunk in chain(few, chunks):
                rest.append(TableRows(np.empty(0), chunk.aside, chunk.bad))
                yield chunk.X

        write_rows(folder / "X.npy", (len(columns),), np.float32, blocks())
        found = _joined(np.empty(0), rest, aside)
        return {"aside": found.aside, "bad": found.bad}

    return cached("tables", key, write, lambda entry: TableRows(entry.arrays["X"], **entry.facts))


def _joined(X: Array, chunks: Sequence[TableRows], aside: Sequence[str]) -> TableRows:
    texts = {c: [v for chunk in chunks for v in chunk.aside[c]] for c in aside}
    return TableRows(X, texts, [reason for chunk in chunks for reason in chunk.bad])
