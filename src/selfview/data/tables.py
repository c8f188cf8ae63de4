"""Tables of files: columns of any kind; ids, labels and groups by name.

The rows of a large table are written to the cache once and mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from selfview.data.dataset import Array, Dataset, Options
from selfview.data.delimited import DelimitedFile
from selfview.data.excel import ExcelFile
from selfview.data.feather import FeatherFile
from selfview.data.folders import kind_of
from selfview.data.json_lines import JsonFile
from selfview.data.mixed import SAMPLE_CELLS, SAMPLE_ROWS, learn_table, looks_plain
from selfview.data.parquet import ParquetFile
from selfview.data.preparation import Preparation
from selfview.data.table_files import JoinedTable, TableFile
from selfview.data.table_rows import (
    SIDES,
    aside_of,
    encoded_rows,
    plain_rows,
    read_rows,
    table_dataset,
)
from selfview.errors import FileFormatError, InputError
from selfview.tables.columns import LeftOut, Number, Table
from selfview.tables.decisions import Decisions, decisions_of
from selfview.tables.encoding import Notes

TABLES: dict[str, Callable[[Path, bool | None, Sequence[str]], TableFile]] = {
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz"), DelimitedFile),
    ".parquet": ParquetFile,
    ".feather": FeatherFile,
    ".xlsx": ExcelFile,
    **dict.fromkeys((".jsonl", ".json"), JsonFile),
}


@dataclass(frozen=True, eq=False)
class TableFilePreparation(Preparation):
    """Columns of a table by name; a table without a header has columns 1, 2, 3 ...

    ``table`` is what is known of every column (`Table.to_json`). Without it ``columns`` are numbers
    in this order, of which nothing else is known. ``label``, ``id`` and ``groups`` are columns of
    the fit that are no features; new files may lack them. ``sheet`` is that of a workbook, if one
    was named.
    """

    columns: tuple[str, ...]
    header: bool
    label: str | None = None
    id: str | None = None
    groups: str | None = None
    table: dict[str, Any] | None = None
    sheet: str | None = None

    kind: ClassVar[str] = "table"
    suffixes: ClassVar[str] = ", ".join(TABLES)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.feature_names),)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.columns if self.table is None else Table.from_json(self.table).features

    @property
    def mixed(self) -> Table | None:
        """The columns, if they are encoded; None if all are numbers as they are."""
        table = None if self.table is None else Table.from_json(self.table)
        return None if table is None or table.as_is else table

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
        if kind_of(path) not in TABLES:
            raise InputError(f"{path}: this model was fitted on a table, give {self.suffixes}")
        file = open_table(path, self.header, (), options.sheet or self.sheet)
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
        aside = aside_of(there)
        if table is None:
            found = read_rows(file, used, aside)
        else:
            plain = table.as_is and not notes.missing
            found = (plain_rows(file, used, aside) if plain else None) or encoded_rows(
                file, table, aside, notes
            )
        return table_dataset(path, self, there, found, notes.lines(), options.skip_bad)


def fit_table(path: Path, options: Options, parts: Sequence[Path] = ()) -> Dataset:
    """The rows of a table: all columns but those of the ids, labels, groups and an index.

    With `parts`, the table is all of them, and `path` is what messages name.
    """
    file, columns, sides = _opened(path, options, parts)
    choice = replace(options.choice, declared=file.categories)
    try:
        choice.check(columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    notes, found = Notes(), None
    table = looks_plain(file, columns, choice)
    if table is not None:
        sides["id"] = sides["id"] or _first_id(table)
        found = plain_rows(file, [c.name for c in table.used], aside_of(sides))
    if table is None or found is None:
        table = learn_table(file, columns, choice)
        sides["id"] = sides["id"] or _first_id(table)
        found = encoded_rows(file, table, aside_of(sides), notes)
    elif len(found.X):
        table = _with_medians(table, found.X)
    how = TableFilePreparation(
        columns, file.header, **sides, table=table.to_json(), sheet=options.sheet
    )
    return table_dataset(path, how, sides, found, notes.lines(), options.skip_bad)


def numbers_of_table(path: Path, options: Options) -> TableFilePreparation:
    """The preparation of a table of numbers, of which nothing is learned."""
    file, columns, sides = _opened(path, options)
    named: dict[str, Any] = dict(sides)
    return TableFilePreparation(columns, file.header, **named, sheet=options.sheet)


def _opened(
    path: Path, options: Options, parts: Sequence[Path] = ()
) -> tuple[TableFile, tuple[str, ...], dict[str, str | None]]:
    """A table, its columns of features, and those of labels, ids and groups."""
    sides = {side: getattr(options, side) for side in SIDES}
    hints = [*(c for c in sides.values() if c is not None), *options.choice.named]
    opened = partial(open_table, header=options.header, hints=hints, sheet=options.sheet)
    file = JoinedTable(path, parts, opened) if parts else opened(path)
    _check_named(file, options)
    columns = tuple(c for c in file.columns if c not in (*sides.values(), *file.index))
    if not columns:
        raise InputError(f"{path} has no columns left for the rows")
    sides["id"] = options.id or next((c for c in file.index if c not in sides.values()), None)
    return file, columns, sides


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


def _check_named(table: TableFile, options: Options) -> None:
    for side in SIDES:
        if getattr(options, side) is not None:
            existing_column(table, getattr(options, side), side)


def open_table(
    path: Path, header: bool | None, hints: Sequence[str], sheet: str | None = None
) -> TableFile:
    """The table; with `header` None, a first line that holds one of the `hints` is a header.

    `sheet` is that of an .xlsx file; other tables have none.
    """
    kind = kind_of(path)
    table = (
        ExcelFile(path, header, hints, sheet)
        if kind == ".xlsx"
        else TABLES[kind](path, header, hints)
    )
    doubles = sorted({c for c in table.columns if table.columns.count(c) > 1})
    if doubles:
        raise FileFormatError(f"{path} has more than one column called {', '.join(doubles[:5])}")
    return table


def existing_column(table: TableFile, column: str, option: str) -> str:
    """The column, if the table has it; else an error that says which it has."""
    if column in table.columns:
        return column
    known = first_columns(table.columns) + did_you_mean(column, table.columns)
    raise InputError(f"{table.path} has no column {column!r} for {option}, but {known}")


def did_you_mean(column: str, known: Sequence[str]) -> str:
    """The column that was likely meant, in words; nothing if none is alike."""
    lower = {c.lower(): c for c in known}
    near = get_close_matches(column.lower(), lower, 1)
    return f"; did you mean {lower[near[0]]!r}?" if near else ""


def first_columns(columns: Sequence[str]) -> str:
    """The names of the first few columns."""
    more = f" and {len(columns) - 8} more" if len(columns) > 8 else ""
    shown = (c if len(c) <= 40 else c[:40] + "..." for c in columns[:8])
    return "columns " + ", ".join(map(repr, shown)) + more
