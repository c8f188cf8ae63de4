"""What a reader of tables is: columns by name, some rows at a time, a reason for each bad row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from selfview.data.dataset import Array
from selfview.errors import InputError

ROWS = 4096  # that are parsed at a time


@dataclass(frozen=True)
class TableRows:
    """The numbers of the good rows, texts of other columns beside them, reasons for the bad."""

    X: Array
    aside: dict[str, Array]  # arrays, as lists of texts take three times the memory
    bad: list[str]

    @property
    def total(self) -> int:
        """Rows read, good and bad."""
        return len(self.X) + len(self.bad)


@dataclass(frozen=True)
class TableBlock:
    """Rows of columns of any kind, as `selfview.tables.frames` keeps them.

    `places` says where each row is in the file, `bad` why rows are not among them.
    """

    values: dict[str, Array]
    places: list[str]
    bad: list[str]

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: Array) -> TableBlock:
        """Some of the rows; none of the bad ones."""
        values = {name: column[rows] for name, column in self.values.items()}
        return TableBlock(values, [self.places[i] for i in rows], [])


class TableFile(Protocol):
    """A table that was opened: its first lines or its schema are read, its rows are not."""

    path: Path
    files: tuple[Path, ...]  # that hold the rows
    columns: tuple[str, ...]
    header: bool  # are columns named in the file?
    sheet: str | None  # that is read, of a file that has sheets
    index: tuple[str, ...]  # columns that name rows, as pandas writes its index
    categories: tuple[str, ...]  # columns whose data type says that they hold categories

    def blocks(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        """The rows of these columns, whatever they hold."""


class JoinedTable:
    """Tables of the same columns as one: the rows of each part, in turn.

    Parameters
    ----------
    path : Path
        What messages name.
    parts : sequence of Path
    open_part : callable
        From a part to its table. Parts are opened one at a time.
    """

    def __init__(
        self, path: Path, parts: Sequence[Path], open_part: Callable[[Path], TableFile]
    ) -> None:
        first = open_part(parts[0])
        self.path, self.files, self._open = path, tuple(parts), open_part
        self.columns, self.header, self.index = first.columns, first.header, first.index
        self.categories, self.sheet = first.categories, first.sheet

    def blocks(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        for part in self.files:
            table = self._open(part)
            missing = [column for column in columns if column not in table.columns]
            if missing:
                raise InputError(f"{part} lacks the column {missing[0]!r} of {self.files[0]}")
            for block in table.blocks(columns):
                places = [f"{part.name} {place}" for place in block.places]
                yield TableBlock(block.values, places, [f"{part.name} {bad}" for bad in block.bad])


def vector_rows(
    column: str, size: int, places: list[str], values: list[Any], aside: dict[str, list[Any]]
) -> TableRows:
    """The lists of a column as rows of `size` numbers, with the texts of the columns aside."""
    found = [_vector(value, size) for value in values]
    good = [i for i, vector in enumerate(found) if not isinstance(vector, str)]
    bad = [f"{p}: {column!r} {v}" for p, v in zip(places, found, strict=True) if isinstance(v, str)]
    X = np.array([found[i] for i in good], np.float32).reshape(len(good), size)
    texts = {c: text_array(values[i] for i in good) for c, values in aside.items()}
    return TableRows(X, texts, bad)


def _vector(value: Any, size: int) -> Array | str:
    """The numbers of a list; what is wrong with it, if they are not `size` finite ones."""
    if not isinstance(value, list):
        return "is missing" if value is None else "is not a list"
    if len(value) != size:
        return f"has {len(value):,} numbers instead of {size:,}"
    if not all(type(number) in (int, float) for number in value):
        return "holds more than numbers"
    with np.errstate(over="ignore"):
        vector = np.array(value, np.float64).astype(np.float32)
    return vector if np.isfinite(vector).all() else "holds numbers that are not finite"


def text_array(values: Iterable[Any]) -> Array:
    """Values as a table would write them."""
    return np.array([as_text(value) for value in values], str)


def as_text(value: Any) -> str:
    """A value of an array or a Parquet file as a table would write it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)
