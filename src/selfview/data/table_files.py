"""Delimited text and Parquet, a chunk of rows at a time; a row that can't be read gets a reason."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from selfview.data.guard import need, reading, regular_file
from selfview.errors import FileFormatError, InputError

TABLES = (".csv", ".tsv", ".parquet")
_ROWS = 4096
_FIRST = 200  # rows that tell what a comma in a number is
_BUFFER = 2**16  # bytes a column
_LARGEST = float(np.finfo(np.float32).max)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


@dataclass
class Chunk:
    """Some rows: the numbers of the good ones, texts of the side columns, reasons for the bad."""

    values: NDArray[np.float32]
    aside: dict[str, list[str]]
    bad: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Rows seen, good and bad."""
        return len(self.values) + len(self.bad)


class TableFile(Protocol):
    """A table on disk."""

    path: Path
    columns: tuple[str, ...]
    header: bool
    index: tuple[str, ...]  # columns that only number or name the rows, as pandas writes them

    def chunks(self, columns: Sequence[str], aside: Sequence[str]) -> Iterator[Chunk]:
        """The rows of these columns, with the texts of the columns aside."""


def open_table(path: Path, header: bool | None, hints: Sequence[str]) -> TableFile:
    """The table; `hints` are column names that tell a header line when `header` is None."""
    table: TableFile
    if path.suffix.lower() == ".parquet":
        table = ParquetFile(path)
    else:
        table = DelimitedFile(path, header, hints)
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
    """The first few of the columns, in words."""
    more = f" and {len(columns) - 8} more" if len(columns) > 8 else ""
    shown = (c if len(c) <= 40 else c[:40] + "..." for c in columns[:8])
    return "columns " + ", ".join(map(repr, shown)) + more


def check_words(path: Path, bad: Sequence[str], total: int) -> None:
    """A column that holds words in every row is not a mistake of the rows."""
    columns = {found[1] for reason in bad if (found := re.search(r"column ('.*?'): ", reason))}
    if len(bad) == total and len(columns) == 1:
        raise InputError(
            f"{path}: column {columns.pop()} holds no numbers. Say what it is with --label or --id "
            "(label=..., id=...), or take it out"
        )


class DelimitedFile:
    """A .csv or .tsv file; what stands between its fields is told from the first lines.

    Where that isn't a comma, a comma can be the decimal point, if the first rows say so. True and
    False are 1 and 0.
    """

    def __init__(self, source: Path, header: bool | None, hints: Sequence[str]) -> None:
        self.path = regular_file(source)
        with reading(self.path, "a table"):
            with self.path.open(encoding="utf-8-sig", newline="") as stream:
                lines = [stream.readline(2**24) for _ in range(3)]
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
        self.index = self.columns[:1] if nameless else ()

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
        with self.path.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream, delimiter=self._delimiter)
            blank = 0
            for row in rows:
                if not row:
                    blank += 1
                    continue
                if self._one:  # an empty line between others is a row whose only field is empty
                    yield from ((rows.line_num - i, [""]) for i in range(blank, 0, -1))
                blank = 0
                yield rows.line_num, row

    def chunks(self, columns: Sequence[str], aside: Sequence[str]) -> Iterator[Chunk]:
        where = [self.columns.index(c) for c in columns]
        sides = {c: self.columns.index(c) for c in aside}
        with reading(self.path, "a table"):
            rows = self._rows()
            if self.header:
                next(rows)
            for first in rows:
                yield self._chunk([first, *islice(rows, _ROWS - 1)], where, sides)

    def _chunk(
        self, rows: list[tuple[int, list[str]]], where: list[int], sides: dict[str, int]
    ) -> Chunk:
        width = len(self.columns)
        good = [row for _, row in rows if len(row) == width]
        bad: list[str] = []
        values = self._floats([[row[i] for i in where] for row in good], len(where))
        if values is None or len(good) < len(rows):
            reasons = [self._reason(line, row, where) for line, row in rows]
            good = [row for (_, row), reason in zip(rows, reasons, strict=True) if not reason]
            bad = [reason for reason in reasons if reason]
            values = self._floats([[row[i] for i in where] for row in good], len(where))
        assert values is not None  # each value was parsed by itself above
        texts = {c: [self._pointed(row[i]) for row in good] for c, i in sides.items()}
        return Chunk(values, texts, bad)

    def _reason(self, line: int, row: list[str], where: list[int]) -> str:
        if len(row) != len(self.columns):
            return f"line {line}: {len(row)} fields instead of {len(self.columns)}"
        for i in where:
            shown = row[i] if len(row[i]) <= 30 else row[i][:30] + "..."
            if not row[i].strip():
                return f"line {line}: column {self.columns[i]!r} is empty"
            number = self._number(row[i])
            if number is None:
                return f"line {line}: column {self.columns[i]!r}: {shown!r} is not a number"
            if not abs(number) <= _LARGEST:
                why = "too large for float32" if math.isfinite(number) else "not finite"
                return f"line {line}: column {self.columns[i]!r}: {shown!r} is {why}"
        return ""

    def _floats(self, rows: list[list[str]], width: int) -> NDArray[np.float32] | None:
        """All values as float32, or None if one isn't a finite number."""
        texts = list(chain.from_iterable(rows))
        try:
            flat = [float(v) for v in texts]
            if any("_" in v for v in texts):  # Python reads 1_000 as a number
                return None
        except ValueError:
            found = [self._number(v) for v in texts]
            flat = [math.nan if v is None else v for v in found]
        with np.errstate(over="ignore"):
            values = np.array(flat).astype(np.float32).reshape(len(rows), width)
        return values if np.isfinite(values).all() else None

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


class ParquetFile:
    """A Parquet file, read a row group's batch at a time."""

    header = True

    def __init__(self, source: Path) -> None:
        parquet = need("pyarrow.parquet")
        self.path = regular_file(source)
        with reading(self.path, "Parquet"):
            # With a buffer, pages are read as they are needed, not a row group whole.
            self._file = parquet.ParquetFile(self.path, buffer_size=_BUFFER, pre_buffer=False)
            self.columns = tuple(str(c) for c in self._file.schema_arrow.names)
            self.index = _pandas_index(self._file.schema_arrow.metadata)
            if self._file.metadata.num_rows == 0:
                raise FileFormatError(f"{self.path} holds no rows")

    def chunks(self, columns: Sequence[str], aside: Sequence[str]) -> Iterator[Chunk]:
        schema = self._file.schema_arrow
        wrong = [c for c in columns if not _is_numeric(schema.field(c).type)]
        if wrong:
            raise InputError(
                f"{self.path}: {', '.join(map(repr, wrong[:5]))} holds no numbers; "
                "name it as --label or --id, or leave it out of the file"
            )
        start = 0
        with reading(self.path, "Parquet"):
            wanted = list(dict.fromkeys((*columns, *aside)))
            for batch in self._file.iter_batches(_ROWS, columns=wanted):
                yield self._chunk(batch, columns, aside, start)
                start += batch.num_rows
        need("pyarrow").default_memory_pool().release_unused()

    def _chunk(self, batch: Any, columns: Sequence[str], aside: Sequence[str], start: int) -> Chunk:
        values = np.empty((batch.num_rows, len(columns)), dtype=np.float32)
        for i, column in enumerate(columns):
            array = batch.column(column)
            with np.errstate(over="ignore"):  # beyond float32: infinite, named below
                values[:, i] = array.cast("float64").to_numpy(zero_copy_only=False)
        finite = np.isfinite(values)
        good = np.array([bool(row.all()) for row in finite])
        bad = [
            f"row {start + i}: {columns[int(np.argmin(finite[i]))]!r} is missing or not finite"
            for i in np.flatnonzero(~good)
        ]
        texts = {
            c: [as_text(v) for v, ok in zip(batch.column(c).to_pylist(), good, strict=True) if ok]
            for c in aside
        }
        return Chunk(values[good], texts, bad)


def _is_numeric(kind: Any) -> bool:
    types = need("pyarrow.types")
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        or types.is_decimal(kind)
    )  # fmt: skip


def _is_number(value: str) -> bool:
    try:
        float(value)
    except (ValueError, OverflowError):
        return False
    return "_" not in value


def _numbered(first: list[str], second: list[str]) -> bool:
    """Whether the first line counts columns, or gives them ascending numbers as wavelengths are.

    Eight or more values of a row don't ascend by chance.
    """
    if len(first) != len(second) or not all(map(_is_number, first)):
        return False
    names = [float(v) for v in first]
    counted = len(names) > 2 and names in (
        [*range(len(names))],
        [*range(1, len(names) + 1)],
    )
    rising = len(names) >= 8 and _ascend(names)
    numbers = [float(v) for v in second if _is_number(v)]
    return (counted or rising) and not _ascend(numbers)


def _ascend(numbers: list[float]) -> bool:
    return all(a < b for a, b in pairwise(numbers))


def _pandas_index(metadata: dict[bytes, bytes] | None) -> tuple[str, ...]:
    try:
        kept = json.loads((metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    except (ValueError, AttributeError):
        return ()
    return tuple(c for c in kept if isinstance(c, str)) if isinstance(kept, list) else ()


def as_text(value: Any) -> str:
    """A value of an array or a Parquet file as a table would write it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def _delimiter(path: Path, lines: list[str]) -> str:
    """Tab for a .tsv; else what splits the first lines into equally many fields.

    Where a comma does, and something else too, it is that if commas are only decimal points.
    """
    if path.suffix.lower() == ".tsv":
        return "\t"
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines if line.strip()]
    widths = {d: {line.count(d) for line in bare} for d in (",", ";", "\t", "|")}
    fitting = [d for d, counts in widths.items() if len(counts) == 1 and counts != {0}]
    if not fitting:  # a line is of another length, which will be told
        return max(widths, key=lambda d: bare[0].count(d)) if bare else ","
    for other in fitting:
        fields = [f.strip() for line in bare for f in line.split(other) if "," in f]
        if other != "," and all(map(_DECIMAL_COMMA.fullmatch, fields)):
            return other
    return fitting[0]


def _decimal_commas(fields: Iterable[str]) -> bool:
    """Whether commas in numbers are decimal points, and not between thousands."""
    numbers = [field.strip() for field in fields]
    commas = [n for n in numbers if _DECIMAL_COMMA.fullmatch(n)]
    points = any("." in n and _is_number(n) for n in numbers)
    return not points and any(not re.search(r",\d{3}$", n) for n in commas)
