"""Excel's .xlsx: one sheet, by default the first with a table, a row at a time."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from selfview.data.guard import MAX_DEFLATE, TOTAL_LIMIT, need, notify, reading, regular_file
from selfview.data.table_files import ROWS, TableBlock, as_text
from selfview.errors import FileFormatError, InputError
from selfview.tables.frames import objects_of

_FIRST = 20  # rows among which the table begins


class ExcelFile:
    """A sheet of an .xlsx file, by default the first that has two rows.

    The first row names columns unless it holds numbers. A first column without a name, as pandas
    writes its index, names the rows. Rows of a single cell above the table, a title for example,
    are left out.
    """

    categories: tuple[str, ...] = ()

    def __init__(
        self, source: Path, header: bool | None, _hints: Sequence[str], sheet: str | None = None
    ) -> None:
        self.path = regular_file(source)
        self.files: tuple[Path, ...] = (self.path,)
        _check_archive(self.path)
        names = self._names()
        self._sheet = self._first_table(names) if sheet is None else self._called(sheet, names)
        self.sheet: str | None = names[self._sheet]
        start = list(islice(self._rows(), _FIRST))
        if not start:
            raise FileFormatError(f"{self.path} holds no rows in its sheet {self.sheet!r}")
        self._titles = next((i for i, row in enumerate(start) if len(row) > 1), 0)
        if self._titles:
            notify(f"{self.path}: left out above the table: {as_text(start[0][0])[:40]!r}")
        first = start[self._titles]
        texts = any(isinstance(value, str) for value in first)
        self.header = texts if header is None else header
        self.columns = tuple(
            (as_text(first[i]).strip() or f"column {i + 1}") if self.header else str(i + 1)
            for i in range(len(first))
        )
        nameless = self.header and len(first) > 1 and not as_text(first[0]).strip()
        self.index: tuple[str, ...] = self.columns[:1] if nameless else ()

    def _names(self) -> list[str]:
        with self._book() as book:
            return [str(sheet.title) for sheet in book.worksheets]

    def _called(self, name: str, names: list[str]) -> int:
        """The number of the sheet of this name."""
        if name not in names:
            held = ", ".join(map(repr, names))
            raise InputError(f"{self.path} has no sheet {name!r}; name one with --sheet: {held}")
        return names.index(name)

    def _first_table(self, names: list[str]) -> int:
        """The number of the first sheet that has two rows, with a note if it isn't the only one."""
        for self._sheet, name in enumerate(names):
            if len(list(islice(self._rows(), 2))) == 2:
                if len(names) > 1:
                    others = ", ".join(repr(other) for other in names if other != name)
                    notify(
                        f"{self.path}: its sheet {name!r} is read, and not {others}; --sheet names "
                        "another"
                    )
                return self._sheet
        return 0

    @contextmanager
    def _book(self) -> Iterator[Any]:
        openpyxl = need("openpyxl")
        with reading(self.path, "an .xlsx file"):
            book = openpyxl.load_workbook(self.path, read_only=True, data_only=True)
            try:
                if not book.worksheets:
                    raise FileFormatError(f"{self.path} holds no sheet of cells")
                yield book
            finally:
                book.close()

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        """The values of each row that isn't empty; formulas as the values kept with them."""
        with self._book() as book:
            sheet = book.worksheets[self._sheet]
            sheet.reset_dimensions()  # what the file says of its size may be wrong
            for row in sheet.iter_rows(values_only=True):
                if any(value is not None for value in row):
                    yield _trimmed(row)

    def blocks(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        where = {c: self.columns.index(c) for c in columns}
        for part in self._parts():
            values = {c: objects_of([row[i] for _, row in part]) for c, i in where.items()}
            yield TableBlock(values, [f"row {number}" for number, _ in part], [])

    def _parts(self) -> Iterator[list[tuple[int, tuple[Any, ...]]]]:
        """Some numbered rows at a time, each as wide as the first."""
        rows = islice(self._rows(), self._titles + self.header, None)
        part: list[tuple[int, tuple[Any, ...]]] = []
        for number, row in enumerate(rows):
            if len(row) > len(self.columns):
                raise InputError(
                    f"{self.path}: row {number} has {len(row)} cells, the first row "
                    f"{len(self.columns)}; no row may be longer than that of the columns' names"
                )
            part.append((number, row + (None,) * (len(self.columns) - len(row))))
            if len(part) == ROWS:
                yield part
                part = []
        if part:
            yield part


def _trimmed(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row without empty cells at its end."""
    end = max(i for i, value in enumerate(row) if value is not None) + 1
    return row[:end]


def _check_archive(path: Path) -> None:
    """Raise for an archive whose members unpack to more than any table needs."""
    with reading(path, "an .xlsx file"), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        too_large = sum(member.file_size for member in members) > TOTAL_LIMIT
        if too_large or any(m.file_size > MAX_DEFLATE * m.compress_size + 1024 for m in members):
            raise FileFormatError(f"{path} declares more than it can hold")
