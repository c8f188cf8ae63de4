"""JSON: an object a line (.jsonl), or a list of objects (.json); some at a time."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from selfview.data.guard import reading, regular_file
from selfview.data.packed import LONGEST, lines_of, open_text
from selfview.data.table_files import ROWS, TableBlock, TableRows, vector_rows
from selfview.errors import FileFormatError
from selfview.tables.frames import objects_of

SUFFIXES = (".jsonl", ".json")
_MOST_FIELDS = 100_000
_PIECE = 2**20  # characters of a list that are read at a time
_NO_OBJECT = "is not an object with named fields"
_BETWEEN = re.compile(r"[\s,]*")


class JsonFile:
    """Objects of a .jsonl or .json file, whose columns are the fields of all, as they come.

    An object may lack fields, which are gaps then. Fields of lists and objects hold no numbers.
    """

    header = True
    index: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    sheet: str | None = None

    def __init__(self, source: Path, _header: bool | None, _hints: Sequence[str]) -> None:
        self.path = regular_file(source)
        self.files: tuple[Path, ...] = (self.path,)
        self._row = row_name(self.path)
        fields: dict[str, None] = {}
        empty = True
        for _, record in records(self.path):
            empty = False
            fields |= dict.fromkeys(record if isinstance(record, dict) else ())
            if len(fields) > _MOST_FIELDS:
                raise FileFormatError(f"{self.path} has more than {_MOST_FIELDS:,} fields")
        if empty:
            raise FileFormatError(f"{self.path} holds no {self._row}s")
        if not fields:
            raise FileFormatError(f"{self.path}: its first {self._row} {_NO_OBJECT}")
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
            value = record.get(column) if isinstance(record, dict) else None
            if isinstance(value, list) and value:
                return len(value)
        raise FileFormatError(
            f"{self.path}: no {self._row} has a list of numbers in the field {column!r}"
        )

    def _parts(self) -> Iterator[tuple[list[str], list[dict[str, Any]], list[str]]]:
        """Some objects at a time: places and fields of the good ones, reasons for the bad."""
        found = records(self.path)
        while part := list(islice(found, ROWS)):
            named = [(f"{self._row} {number}", record) for number, record in part]
            good = [(place, record) for place, record in named if isinstance(record, dict)]
            bad = [f"{place}: {why}" for place, why in named if isinstance(why, str)]
            yield [place for place, _ in good], [record for _, record in good], bad


def row_name(path: Path) -> str:
    """What a row of the file is called."""
    return "record" if path.suffix.lower() == ".json" else "line"


def records(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """The number and the object of each line or element; for one that is none, what it is."""
    with reading(path, "JSON"), open_text(path, "utf-8-sig", "replace") as stream:
        found = _elements(path, stream) if path.suffix.lower() == ".json" else _lines(path, stream)
        yield from found


def _lines(path: Path, stream: TextIO) -> Iterator[tuple[int, dict[str, Any] | str]]:
    for number, line in enumerate(lines_of(path, stream), 1):
        if line.strip():
            try:
                record = json.loads(line)
            except ValueError as error:
                record = f"is no JSON: {error}"
            except RecursionError:
                record = "is nested too deep"
            else:
                record = record if isinstance(record, dict) else _NO_OBJECT
            yield number, record


def _elements(path: Path, stream: TextIO) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """The elements of a list, or the lines of a file that has an object a line."""
    text = stream.read(_PIECE).lstrip()
    if not text.startswith("["):
        _check_lines(path, text)
        stream.seek(0)
        yield from _lines(path, stream)
        return
    decoder, number, at = json.JSONDecoder(), 0, 1
    while not text.startswith("]", at := _BETWEEN.match(text, at).end()):  # type: ignore[union-attr]
        wrong: object = "it is cut off"
        try:
            element, end = decoder.raw_decode(text, at)
            if end < len(text):  # else there may be more of it
                number, at = number + 1, end
                yield number, element if isinstance(element, dict) else _NO_OBJECT
                continue
        except ValueError as error:
            wrong = error
        rest = stream.read(max(_PIECE, len(text) - at))
        if not rest or len(text) - at > LONGEST:
            raise FileFormatError(f"{path}: record {number + 1} can't be read: {wrong}")
        text, at = text[at:] + rest, 0
    if (text[at + 1 :] + stream.read(_PIECE)).strip():
        raise FileFormatError(f"{path} holds more after its list of records")


def _check_lines(path: Path, start: str) -> None:
    """Raise FileFormatError unless the first of several lines is an object."""
    first, _, more = start.partition("\n")
    try:
        found = json.loads(first) if more.strip() else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FileFormatError(
            f"{path} is no list of records, [{{...}}, ...], as pandas writes it with "
            "to_json(orient='records')"
        )


def holds_text(path: Path) -> bool:
    """Has the first object of a file a text in its field "text"?"""
    found = (record for _, record in records(regular_file(path)) if isinstance(record, dict))
    return isinstance(next(found, {}).get("text"), str)
