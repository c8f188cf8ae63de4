"""Vectors in a column of lists, as sentence embeddings are kept: .parquet and .jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from selfview.data.cache import cache_key
from selfview.data.dataset import Dataset, Options
from selfview.data.guard import reading, regular_file
from selfview.data.parquet import ParquetFile
from selfview.data.preparation import Preparation
from selfview.data.table_files import ROWS, TableRows, vector_rows
from selfview.data.table_rows import RULES, SIDES, aside_of, collected, table_dataset
from selfview.data.tables import did_you_mean, existing_column
from selfview.errors import FileFormatError, InputError

SUFFIXES = (".parquet", ".jsonl")
_MOST = 2**20  # numbers of a vector
_FIELDS = 100  # of lines that are remembered, to be named in an error


@dataclass(frozen=True, eq=False)
class VectorPreparation(Preparation):
    """The vectors of a column, each of ``size`` numbers, as they are.

    ``label``, ``id`` and ``groups`` are columns of the fit; new files may lack them.
    """

    vector: str
    size: int
    label: str | None = None
    id: str | None = None
    groups: str | None = None

    kind: ClassVar[str] = "vector"
    suffixes: ClassVar[str] = ".parquet or .jsonl"
    images: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    def consistent(self) -> bool:
        return self.size <= _MOST

    def read_files(self, path: Path, options: Options) -> Dataset:
        if path.suffix.lower() not in SUFFIXES:
            raise InputError(f"{path}: this model was fitted on vectors, give {self.suffixes}")
        asked = {side: getattr(options, side) for side in SIDES}
        kept = {side: getattr(self, side) for side in SIDES}
        return _dataset(path, self, asked, kept, options.skip_bad)


def fit_vectors(path: Path, options: Options) -> Dataset:
    """The rows of a column of lists, all as long as the first."""
    assert options.vector is not None
    asked = {side: getattr(options, side) for side in SIDES}
    size = (
        _Lines(path).vector_size(options.vector)
        if _is_jsonl(path)
        else _parquet_size(path, options.vector)
    )
    if size > _MOST:
        raise InputError(f"{path}: a vector must have at most {_MOST:,} numbers, got {size:,}")
    how = VectorPreparation(options.vector, size, **asked)
    return _dataset(path, how, asked, asked, options.skip_bad)


def _is_jsonl(path: Path) -> bool:
    return path.suffix.lower() == ".jsonl"


def _parquet_size(path: Path, column: str) -> int:
    file = ParquetFile(path, None, ())
    return file.vector_size(existing_column(file, column, "vector"))


def _dataset(
    path: Path,
    how: VectorPreparation,
    asked: Mapping[str, str | None],
    kept: Mapping[str, str | None],
    skip_bad: bool,
) -> Dataset:
    """The vectors of a file; columns that are `asked` for must be there, those `kept` may be."""
    sides = {side: asked[side] or kept[side] for side in SIDES}
    file: ParquetFile | _Lines
    if _is_jsonl(path):
        file = _Lines(path)
    else:
        file = ParquetFile(path, None, ())
        existing_column(file, how.vector, "vector")
        for side, column in asked.items():
            if column is not None:
                existing_column(file, column, side)
        sides = {side: column for side, column in sides.items() if column in file.columns}
    aside = aside_of(sides)
    key = cache_key([file.path], RULES, how.vector, how.size, tuple(aside))
    found = collected(key, how.size, file.vectors(how.vector, how.size, aside), aside)
    if _is_jsonl(path):
        sides = {s: c for s, c in sides.items() if c is not None and any(found.aside[c])}
        absent = [c for s, c in asked.items() if c is not None and s not in sides]
        if absent:
            raise InputError(f"{path}: no line has a field {absent[0]!r}")
    return table_dataset(path, how, sides, found, (), skip_bad)


class _Lines:
    """A .jsonl file, an object a line."""

    def __init__(self, path: Path) -> None:
        self.path = regular_file(path)

    def vector_size(self, field: str) -> int:
        fields: dict[str, None] = {}
        for _, record in self._records():
            if isinstance(record, dict) and isinstance(record.get(field), list) and record[field]:
                return len(record[field])
            if isinstance(record, dict) and len(fields) < _FIELDS:
                fields |= dict.fromkeys(str(key)[:40] for key in record)
        meant = did_you_mean(field, list(fields))
        known = f"; its fields are {', '.join(map(repr, [*fields][:8]))}" if fields else ""
        raise FileFormatError(
            f"{self.path}: no line has a list of numbers in the field {field!r}{known}{meant}"
        )

    def vectors(self, field: str, size: int, aside: Sequence[str]) -> Iterator[TableRows]:
        part: list[tuple[int, Any]] = []
        for line in self._records():
            part.append(line)
            if len(part) == ROWS:
                yield _chunk(part, field, size, aside)
                part = []
        if part:
            yield _chunk(part, field, size, aside)

    def _records(self) -> Iterator[tuple[int, Any]]:
        """Line numbers and objects; None for a line that is none."""
        with (
            reading(self.path, "JSON lines"),
            self.path.open(encoding="utf-8-sig", errors="replace") as stream,
        ):
            for number, line in enumerate(stream, 1):
                if line.strip():
                    try:
                        yield number, json.loads(line)
                    except (ValueError, RecursionError):
                        yield number, None


def _chunk(part: list[tuple[int, Any]], field: str, size: int, aside: Sequence[str]) -> TableRows:
    records = [(f"line {number}", record) for number, record in part if isinstance(record, dict)]
    bad = [
        f"line {n}: is not an object with named fields" for n, r in part if not isinstance(r, dict)
    ]
    values = [record.get(field) for _, record in records]
    beside = {column: [record.get(column) for _, record in records] for column in aside}
    rows = vector_rows(field, size, [place for place, _ in records], values, beside)
    return replace(rows, bad=[*bad, *rows.bad])
