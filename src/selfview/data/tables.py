"""Tables: .csv, .tsv and .parquet, numbers in columns, with an id and a label column by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from selfview.data.dataset import Dataset, Options
from selfview.data.guard import report_bad_rows
from selfview.data.labels import read_labels
from selfview.data.preparation import Preparation
from selfview.data.table_files import TableFile
from selfview.data.table_rows import TABLES, named, open_table, read_rows, some
from selfview.errors import FileFormatError, InputError


@dataclass(frozen=True, eq=False)
class TablePreparation(Preparation):
    """Named columns in a fixed order; a table without a header has columns 1, 2, 3 ...

    ``label`` and ``id`` are columns of the fit that are no features; new files may lack them.
    """

    columns: tuple[str, ...]
    header: bool
    label: str | None = None
    id: str | None = None

    kind: ClassVar[str] = "table"
    suffixes: ClassVar[str] = ".csv, .tsv or .parquet"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.columns),)

    def consistent(self) -> bool:
        return 0 < len(set(self.columns)) == len(self.columns)

    def read_files(self, path: Path, options: Options) -> Dataset:
        if path.suffix.lower() not in TABLES:
            raise InputError(f"{path}: this model was fitted on a table, give {self.suffixes}")
        header = None if path.suffix.lower() == ".parquet" else self.header
        table = open_table(path, header, ())
        _check_named(table, options)
        label, row_id = options.label or self.label, options.id or self.id
        missing = [c for c in self.columns if c not in table.columns]
        known = (*self.columns, label, row_id, *table.index)
        unknown = [c for c in table.columns if c not in known]
        wrong = [
            f"{what} {some(columns)}"
            for what, columns in (("lacks", missing), ("has the unknown", unknown))
            if columns
        ]
        if wrong:
            raise InputError(
                f"{path} {' and '.join(wrong)}: the columns must be those the model was fitted on"
            )
        label = label if label in table.columns else None
        row_id = row_id if row_id in table.columns else None
        return _rows(table, self, label, row_id, options.skip_bad)


def fit_table(path: Path, options: Options) -> Dataset:
    """The rows of a table: all columns but those of the ids, the labels and an index."""
    hints = [c for c in (options.label, options.id) if c is not None]
    table = open_table(path, options.header, hints)
    _check_named(table, options)
    aside = (options.label, options.id, *table.index)
    columns = tuple(c for c in table.columns if c not in aside)
    if not columns:
        raise InputError(f"{path} has no columns left for the rows")
    row_id = options.id or next((c for c in table.index if c != options.label), None)
    how = TablePreparation(columns, table.header, options.label, row_id)
    return _rows(table, how, options.label, row_id, options.skip_bad)


def _check_named(table: TableFile, options: Options) -> None:
    for option, column in (("label", options.label), ("id", options.id)):
        if column is not None:
            named(table, column, option)


def _rows(
    table: TableFile, how: TablePreparation, label: str | None, row_id: str | None, skip_bad: bool
) -> Dataset:
    path = table.path
    aside = [c for c in (label, row_id) if c is not None]
    found = read_rows(table, how.columns, aside)
    if found.total == 0:
        raise FileFormatError(f"{path} holds no rows")
    _check_words(path, found.bad, found.total)
    messages = report_bad_rows(path, found.bad, found.total, skip_bad)
    y, classes = read_labels(found.aside[label]) if label else (None, ())
    return Dataset(
        name=path.name, X=found.X, y=y, classes=classes,
        ids=np.array(found.aside[row_id]) if row_id else None,
        source=f"path {path}", preparation=how, skipped=tuple(found.bad), messages=messages,
    )  # fmt: skip


def _check_words(path: Path, bad: Sequence[str], total: int) -> None:
    """Raise InputError if one column holds no number in any row: it is no feature."""
    columns = {found[1] for reason in bad if (found := re.search(r"column ('.*?'): ", reason))}
    if len(bad) == total and len(columns) == 1:
        raise InputError(
            f"{path}: column {columns.pop()} holds no numbers. Say what it is with --label or --id "
            "(label=..., id=...), or take it out"
        )
