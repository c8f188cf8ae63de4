"""Feather (Arrow IPC), a record batch at a time, none of which unpacks to more than it can hold."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfview.data.guard import MAX_DEFLATE, MEMBER_LIMIT, check_allocation, need
from selfview.data.parquet import ArrowFile
from selfview.data.table_files import ROWS
from selfview.errors import FileFormatError

_MAGIC = b"ARROW1"
_BLOCK = 24  # bytes by which the footer says where a message is


class FeatherFile(ArrowFile):
    """A Feather file of version 2, read a record batch at a time."""

    kind = "Feather"

    def _opened(self) -> Any:
        if not _checked_rows(self.path):
            raise FileFormatError(f"{self.path} holds no rows")
        with self._reader() as reader:
            return reader.schema

    def _reader(self, **options: Any) -> Any:
        ipc = need("pyarrow.ipc")
        return ipc.open_file(str(self.path), options=ipc.IpcReadOptions(**options))

    def _read(self, columns: list[str]) -> Iterator[Any]:
        fields = [self.columns.index(column) for column in columns]
        with self._reader(included_fields=fields) as reader:
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                batch.validate(full=True)  # what a damaged file says of itself is not trusted
                for start in range(0, batch.num_rows, ROWS):
                    yield batch.slice(start, ROWS).select(columns)


@dataclass(frozen=True)
class _Flatbuffer:
    """Tables of fields, each of which may be missing, in a buffer of bytes."""

    data: bytes

    def number(self, form: str, place: int) -> int:
        return int(struct.unpack_from(form, self.data, place)[0])

    def followed(self, place: int) -> int:
        """The place to which an offset leads."""
        return place + self.number("<I", place)

    def field(self, table: int, index: int) -> int:
        """The place of a field; 0 if it is missing."""
        layout = table - self.number("<i", table)
        known = 4 + 2 * index < self.number("<H", layout)
        offset = self.number("<H", layout + 4 + 2 * index) if known else 0
        return table + offset if offset else 0

    def items(self, table: int, index: int, size: int) -> list[int]:
        """The places of the items of a vector."""
        if not (place := self.field(table, index)):
            return []
        vector = self.followed(place)
        count = min(self.number("<I", vector), len(self.data) // size)
        return [vector + 4 + size * i for i in range(count)]


def _checked_rows(path: Path) -> int:
    """The number of rows; FileFormatError if a message unpacks to more than it can hold.

    pyarrow allots what a message declares, and unpacks it whole.
    """
    rows = 0
    ipc = need("pyarrow.ipc")
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 10))
        length, magic = struct.unpack("<i6s", file.read(10))
        if magic != _MAGIC or not 0 < length <= size - 10:
            raise FileFormatError(f"{path} is no Feather file of version 2, or is cut off")
        file.seek(size - 10 - length)
        footer = _Flatbuffer(file.read(length))
        root = footer.followed(0)
        blocks = [*footer.items(root, 2, _BLOCK), *footer.items(root, 3, _BLOCK)]
        for block in blocks:
            file.seek(footer.number("<q", block))
            rows += _message_rows(path, ipc.read_message(file))
    return rows


def _message_rows(path: Path, message: Any) -> int:
    """The number of rows of a record batch; 0 of a dictionary."""
    flat, body = _Flatbuffer(message.metadata.to_pybytes()), message.body
    batch = flat.followed(flat.field(flat.followed(0), 2))
    if message.type == "dictionary":
        batch = flat.followed(flat.field(batch, 1))
    rows = flat.number("<q", flat.field(batch, 0)) if flat.field(batch, 0) else 0
    unpacked = 0
    if flat.field(batch, 3):  # packed: each buffer begins with its length
        for place in flat.items(batch, 2, 16):
            start, length = struct.unpack_from("<qq", flat.data, place)
            unpacked += max(0, struct.unpack_from("<q", body, start)[0]) if length else 0
    check_allocation(path, unpacked)
    most = max(MEMBER_LIMIT, MAX_DEFLATE * body.size)
    if unpacked > most or not 0 <= rows <= 8 * most:  # a row takes a bit at least
        raise FileFormatError(f"{path} declares more than it can hold")
    return 0 if message.type == "dictionary" else rows
