"""JSON lines: an object a line, some lines at a time."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from selfview.data.guard import reading, regular_file
from selfview.data.table_files import ROWS, TableBlock, TableRows, vector_rows
from selfview.errors import FileFormatError
from selfview.tables.frames import objects_of

_MOST_FIELDS = 100_000
_NO_OBJECT = "is not an object with named fields"


class JsonLinesFile:
    """A .jsonl file, whose columns are the fields of all lines, in the order in which they come.

    A line may lack fields, which are gaps then. Fields of lists and objects hold no numbers.
    """

    header = True
    index: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    sheet: str | None = None

    def __init__(self, source: Path, _header: bool | None, _hints: Sequence[str]) -> None:
        self.path = regular_file(source)
        self.files: tuple[Path, ...] = (self.path,)
        fields: dict[str, None] = {}
        empty = True
        for _, record in records(self.path):
            empty = False
            fields |= dict.fromkeys(record or ())
            if len(fields) > _MOST_FIELDS:
                raise FileFormatError(f"{self.path} has more than {_MOST_FIELDS:,} fields")
        if empty:
            raise FileFormatError(f"{self.path} holds no lines")
        if not fields:
            raise FileFormatError(f"{self.path}: its first line {_NO_OBJECT}")
        self.columns = tuple(fields)

    def blocks(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        for places, found, bad in self._parts():
            values = {c: objects_of([record.get(c) for record in found]) for c in columns}
            yield TableBlock(values, places, bad)

    def vectors(self, column: str, size: int, aside: Sequence[str]) -> Iterator[TableRows]:
        """The lists of a field, each of `size` numbers, with the texts of the fields aside."""
        for places, found, bad in self._parts():
            values = [record.get(column) for record in found]
            beside = {c: [record.get(c) for record in found] for c in aside}
            rows = vector_rows(column, size, places, values, beside)
            yield TableRows(rows.X, rows.aside, bad + rows.bad)

    def vector_size(self, column: str) -> int:
        """The length of the first list in a field."""
        for _, record in records(self.path):
            value = (record or {}).get(column)
            if isinstance(value, list) and value:
                return len(value)
        raise FileFormatError(f"{self.path}: no line has a list of numbers in the field {column!r}")

    def _parts(self) -> Iterator[tuple[list[str], list[dict[str, Any]], list[str]]]:
        """Some lines at a time: places and objects of the good ones, reasons for the bad."""
        lines = records(self.path)
        while part := list(islice(lines, ROWS)):
            good = [(f"line {number}", record) for number, record in part if record is not None]
            bad = [f"line {number}: {_NO_OBJECT}" for number, record in part if record is None]
            yield [place for place, _ in good], [record for _, record in good], bad


def records(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The number and the object of each line that isn't empty; None for one that is no object."""
    with reading(path, "JSON lines"), path.open(encoding="utf-8-sig", errors="replace") as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    record = None
                yield number, record if isinstance(record, dict) else None


def holds_text(path: Path) -> bool:
    """Has the first object of a .jsonl file a text in its field "text"?"""
    found = (record for _, record in records(regular_file(path)) if record is not None)
    return isinstance(next(found, {}).get("text"), str)
