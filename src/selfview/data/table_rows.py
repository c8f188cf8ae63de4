"""All rows of a table; those of a large one are written to the cache once and mapped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import chain
from pathlib import Path

import numpy as np

from selfview.data import guard
from selfview.data.cache import cache_folder, cached, fingerprint
from selfview.data.dataset import Array
from selfview.data.npy import read_npy, write_rows
from selfview.data.table_files import DelimitedFile, ParquetFile, TableFile, TableRows
from selfview.errors import FileFormatError, InputError

TABLES = (".csv", ".tsv", ".parquet")
RULES = 3  # raise it when the same file gives other rows: cached rows then no longer count


def open_table(path: Path, header: bool | None, hints: Sequence[str]) -> TableFile:
    """The table; with `header` None, a first line that holds one of the `hints` is a header."""
    parquet = path.suffix.lower() == ".parquet"
    table: TableFile = ParquetFile(path) if parquet else DelimitedFile(path, header, hints)
    doubles = sorted({c for c in table.columns if table.columns.count(c) > 1})
    if doubles:
        raise FileFormatError(f"{path} has more than one column called {', '.join(doubles[:5])}")
    return table


def named(table: TableFile, column: str, option: str) -> str:
    """The column, if the table has it; else an error that says which it has."""
    if column in table.columns:
        return column
    lower = {c.lower(): c for c in table.columns}
    near = get_close_matches(column.lower(), lower, 1)
    meant = f"; did you mean {lower[near[0]]!r}?" if near else ""
    raise InputError(
        f"{table.path} has no column {column!r} for {option}, but {some(table.columns)}{meant}"
    )


def some(columns: Sequence[str]) -> str:
    """The names of the first few columns."""
    more = f" and {len(columns) - 8} more" if len(columns) > 8 else ""
    shown = (c if len(c) <= 40 else c[:40] + "..." for c in columns[:8])
    return "columns " + ", ".join(map(repr, shown)) + more


def read_rows(table: TableFile, columns: Sequence[str], aside: Sequence[str]) -> TableRows:
    """All rows of these columns, and the texts of the columns aside."""
    key = fingerprint([table.path], RULES, tuple(columns), tuple(aside), table.header)
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

    def write(folder: Path) -> None:
        rest: list[TableRows] = []

        def blocks() -> Iterator[Array]:
            for chunk in chain(few, chunks):
                rest.append(TableRows(np.empty(0), chunk.aside, chunk.bad))
                yield chunk.X

        write_rows(folder / "X.npy", (len(columns),), np.float32, blocks())
        found = _joined(np.empty(0), rest, aside)
        facts = {"aside": found.aside, "bad": found.bad}
        (folder / "rest.json").write_text(json.dumps(facts), encoding="utf-8")

    return cached("tables", key, write, _load)


def _joined(X: Array, chunks: Sequence[TableRows], aside: Sequence[str]) -> TableRows:
    texts = {c: [v for chunk in chunks for v in chunk.aside[c]] for c in aside}
    return TableRows(X, texts, [reason for chunk in chunks for reason in chunk.bad])


def _load(folder: Path) -> TableRows:
    facts = json.loads((folder / "rest.json").read_text(encoding="utf-8"))
    X = read_npy(folder / "X.npy")
    aside = {str(c): [str(v) for v in values] for c, values in facts["aside"].items()}
    if any(len(values) != len(X) for values in aside.values()):
        raise ValueError("its parts don't belong together")
    return TableRows(X, aside, [str(reason) for reason in facts["bad"]])
