"""Excel's .xlsx: the first sheet, a row at a time."""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from selfview.data.guard import MAX_DEFLATE, TOTAL_LIMIT, need, reading, regular_file
from selfview.data.table_files import ROWS, TableBlock, as_text
from selfview.errors import FileFormatError, InputError
from selfview.tables.frames import objects_of


class ExcelFile:
    """The first sheet of an .xlsx file; its first row names the columns unless it holds numbers."""

    index: tuple[str, ...] = ()

    def __init__(self, source: Path, header: bool | None, _hints: Sequence[str]) -> None:
        self.path = regular_file(source)
        _check_archive(self.path)
        first = next(self._rows(), ())
        if not first:
            raise FileFormatError(f"{self.path} holds no rows")
        texts = any(isinstance(value, str) for value in first)
        self.header = texts if header is None else header
        numbers = map(str, range(1, len(first) + 1))
        self.columns = tuple(map(as_text, first)) if self.header else tuple(numbers)

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        """The values of each row that isn't empty; formulas as the values kept with them."""
        openpyxl = need("openpyxl")
        with reading(self.path, "an .xlsx file"):
            book = openpyxl.load_workbook(self.path, read_only=True, data_only=True)
            try:
                if not book.worksheets:
                    raise FileFormatError(f"{self.path} holds no sheet of cells")
                sheet = book.worksheets[0]
                sheet.reset_dimensions()  # what the file says of its size may be wrong
                for row in sheet.iter_rows(values_only=True):
                    if any(value is not None for value in row):
                        yield _trimmed(row)
            finally:
                book.close()

    def blocks(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        where = {c: self.columns.index(c) for c in columns}
        for part in self._parts():
            values = {c: objects_of([row[i] for _, row in part]) for c, i in where.items()}
            yield TableBlock(values, [f"row {number}" for number, _ in part], [])

    def _parts(self) -> Iterator[list[tuple[int, tuple[Any, ...]]]]:
        """Some numbered rows at a time, each as wide as the first."""
        rows = self._rows()
        if self.header:
            next(rows, None)
        part: list[tuple[int, tuple[Any, ...]]] = []
        for number, row in enumerate(rows):
            if len(row) > len(self.columns):
                raise InputError(
                    f"{self.path}: row {number} has {len(row)} cells, the first row "
                    f"{len(self.columns)}"
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
