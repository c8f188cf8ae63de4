"""Delimited text, .csv and .tsv: its first lines tell delimiter, header and decimal commas."""

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.data.folders import kind_of
from selfview.data.guard import notify, reading, regular_file
from selfview.data.packed import LONGEST, lines_of, open_bytes, open_text
from selfview.data.table_files import ROWS, TableBlock
from selfview.errors import FileFormatError

_FIRST = 200  # rows that decide whether a comma is a decimal point
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


class DelimitedFile:
    """A .csv or .tsv file; its first lines decide the delimiter, the header and decimal commas.

    It may be packed by gzip. True and False are 1 and 0. A text that isn't UTF-8 is read as what
    Excel writes: UTF-16 by its mark, else Windows-1252.
    """

    categories: tuple[str, ...] = ()
    sheet: str | None = None

    def __init__(self, source: Path, header: bool | None, hints: Sequence[str]) -> None:
        self.path = regular_file(source)
        self.files: tuple[Path, ...] = (self.path,)
        with reading(self.path, "a table"):
            self._encoding = _encoding(self.path)
            with open_text(self.path, self._encoding) as stream:
                lines = [stream.readline(LONGEST) for _ in range(3)]
            self._delimiter = _delimiter(self.path, lines)
            self._comma, self._one = False, False
            start = [row for _, row in islice(self._rows(), _FIRST)]
        first, second = [*start, [], []][:2]
        if not first:
            raise FileFormatError(f"{self.path} holds no rows")
        self._comma = self._delimiter != "," and _decimal_commas(chain.from_iterable(start))
        self.header = self._has_header(first, second, hints) if header is None else header
        width = len(first)
        self._one = width == 1
        self.columns = tuple(
            (first[i].strip() or f"column {i + 1}") if self.header else str(i + 1)
            for i in range(width)
        )
        nameless = self.header and width > 1 and not first[0].strip()
        self.index = self.columns[:1] if nameless else ()  # as pandas writes it

    def _has_header(self, first: list[str], second: list[str], hints: Sequence[str]) -> bool:
        """Whether the first line names columns: a word above a number, or numbers in order."""
        if any(hint in (name.strip() for name in first) for hint in hints if not hint.isdigit()):
            return True
        words = [bool(v.strip()) and self._number(v) is None for v in first]
        if all(words[i] or not v.strip() for i, v in enumerate(first)):
            return True
        if any(w and self._number(v) is not None for w, v in zip(words, second, strict=False)):
            return True
        return _numbered(first, second)

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        with open_text(self.path, self._encoding) as stream:
            rows = csv.reader(lines_of(self.path, stream), delimiter=self._delimiter)
            blank = 0
            for row in rows:
                if not row:
                    blank += 1
                    continue
                if self._one:  # an empty line between others is a row whose only field is empty
                    yield from ((rows.line_num - i, [""]) for i in range(blank, 0, -1))
                blank = 0
                yield rows.line_num, row

    def blocks(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        where = {c: self.columns.index(c) for c in columns}
        with reading(self.path, "a table"):
            rows = self._rows()
            if self.header:
                next(rows)
            for first in rows:
                part = [first, *islice(rows, ROWS - 1)]
                whole = [(line, row) for line, row in part if len(row) == len(self.columns)]
                bad = [
                    f"line {line}: {len(row)} fields instead of {len(self.columns)}"
                    for line, row in part
                    if len(row) != len(self.columns)
                ]
                fields = list(zip(*(row for _, row in whole), strict=True))
                values = {c: self._texts(fields[i] if fields else ()) for c, i in where.items()}
                yield TableBlock(values, [f"line {line}" for line, _ in whole], bad)

    def _texts(self, fields: Sequence[str]) -> NDArray[Any]:
        texts = np.empty(len(fields), object)
        texts[:] = [self._pointed(field) for field in fields] if self._comma else fields
        return texts

    def _number(self, text: str) -> float | None:
        truth = {"true": 1.0, "false": 0.0}.get(text.strip().lower())
        if truth is not None:
            return truth
        text = self._pointed(text)
        return float(text) if _is_number(text) else None

    def _pointed(self, text: str) -> str:
        """The text with a decimal point, if it is a number with a decimal comma."""
        decimal = self._comma and _DECIMAL_COMMA.fullmatch(text.strip())
        return text.replace(",", ".") if decimal else text


def _encoding(path: Path) -> str:
    """UTF-8, unless the start of the file tells otherwise."""
    with open_bytes(path) as stream:
        start = stream.read(2**20)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        if b"\0" not in start:  # text
            notify(f"{path} is not UTF-8 text: read as Windows-1252")
            return "cp1252"
    return "utf-8-sig"


def _is_number(value: str) -> bool:
    try:
        float(value)
    except (ValueError, OverflowError):
        return False
    return "_" not in value


def _numbered(first: list[str], second: list[str]) -> bool:
    """Whether the first line counts the columns, or holds ascending numbers such as wavelengths.

    Eight or more values of a row don't ascend by chance.
    """
    if len(first) != len(second) or not all(map(_is_number, first)):
        return False
    names = [float(v) for v in first]
    counts = [[*range(start, start + len(names))] for start in (0, 1)]
    rising = (len(names) > 2 and names in counts) or (len(names) >= 8 and _ascend(names))
    return rising and not _ascend([float(v) for v in second if _is_number(v)])


def _ascend(numbers: list[float]) -> bool:
    return all(a < b for a, b in pairwise(numbers))


def _delimiter(path: Path, lines: list[str]) -> str:
    """Tab for a .tsv; else the character that splits the first lines into equally many fields.

    Another one takes precedence over a comma if all commas are decimal points.
    """
    if kind_of(path).startswith(".tsv"):
        return "\t"
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines if line.strip()]
    widths = {d: {line.count(d) for line in bare} for d in (",", ";", "\t", "|")}
    fitting = [d for d, counts in widths.items() if len(counts) == 1 and counts != {0}]
    if not fitting:  # a line is of another length, which is reported later
        return max(widths, key=lambda d: bare[0].count(d)) if bare else ","
    for other in fitting:
        fields = [f.strip() for line in bare for f in line.split(other) if "," in f]
        if other != "," and all(map(_DECIMAL_COMMA.fullmatch, fields)):
            return other
    return fitting[0]


def _decimal_commas(fields: Iterable[str]) -> bool:
    """Whether commas in numbers are decimal points, not thousands separators."""
    numbers = [field.strip() for field in fields]
    commas = [n for n in numbers if _DECIMAL_COMMA.fullmatch(n)]
    points = any("." in n and _is_number(n) for n in numbers)
    return not points and any(not re.search(r",\d{3}$", n) for n in commas)
