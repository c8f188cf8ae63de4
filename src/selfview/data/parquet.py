"""Parquet, a batch of a row group at a time."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from selfview.data.guard import need, reading, regular_file
from selfview.data.table_files import ROWS, TableBlock, TableRows, vector_rows
from selfview.errors import FileFormatError, InputError
from selfview.tables.frames import columns_of, declared_categories

_BUFFER = 2**16  # bytes a column


class ParquetFile:
    """A Parquet file, read a row group's batch at a time."""

    header = True
    sheet: str | None = None

    def __init__(self, source: Path, _header: bool | None, _hints: Sequence[str]) -> None:
        parquet = need("pyarrow.parquet")
        self.path = regular_file(source)
        self.files: tuple[Path, ...] = (self.path,)
        with reading(self.path, "Parquet"):
            # With a buffer, pages are read as they are needed, not a row group whole.
            self._file = parquet.ParquetFile(self.path, buffer_size=_BUFFER, pre_buffer=False)
            self.columns = tuple(str(c) for c in self._file.schema_arrow.names)
            schema = self._file.schema_arrow
            self.index, declared = _of_pandas(schema.metadata)
            self.categories = (*declared_categories(schema.empty_table()), *declared)
            if self._file.metadata.num_rows == 0:
                raise FileFormatError(f"{self.path} holds no rows")

    def blocks(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        for places, batch in self._batches(columns):
            yield TableBlock(columns_of(batch), places, [])

    def _batches(self, columns: Iterable[str]) -> Iterator[tuple[list[str], Any]]:
        """Batches of rows, each with the places of its rows."""
        start = 0
        with reading(self.path, "Parquet"):
            for batch in self._file.iter_batches(ROWS, columns=list(columns)):
                yield [f"row {start + i}" for i in range(batch.num_rows)], batch
                start += batch.num_rows
        need("pyarrow").default_memory_pool().release_unused()

    def vectors(self, column: str, size: int, aside: Sequence[str]) -> Iterator[TableRows]:
        """The lists of a column, each of `size` numbers, with the texts of the columns aside."""
        self._expect_lists(column)
        for places, batch in self._batches(dict.fromkeys((column, *aside))):
            values, *texts = (batch.column(c).to_pylist() for c in (column, *aside))
            beside = dict(zip(aside, texts, strict=True))
            yield vector_rows(column, size, places, values, beside)

    def vector_size(self, column: str) -> int:
        """The length of the first list in a column."""
        self._expect_lists(column)
        for _, batch in self._batches([column]):
            for value in batch.column(column).to_pylist():
                if value:
                    return len(value)
        raise FileFormatError(f"{self.path}: {column!r} holds no vectors")

    def _expect_lists(self, column: str) -> None:
        types, kind = need("pyarrow.types"), self._file.schema_arrow.field(column).type
        lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if not lists or not _is_numeric(kind.value_type):
            raise InputError(f"{self.path}: {column!r} must hold lists of numbers, got {kind}")


def _is_numeric(kind: Any) -> bool:
    types = need("pyarrow.types")
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        or types.is_decimal(kind)
    )  # fmt: skip


def _of_pandas(metadata: dict[bytes, bytes] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that pandas wrote as its index, and those that were categories."""
    try:
        kept = json.loads((metadata or {}).get(b"pandas", b"{}"))
        index = tuple(c for c in kept.get("index_columns", ()) if isinstance(c, str))
        columns = [c for c in kept.get("columns", ()) if c["pandas_type"] == "categorical"]
        return index, tuple(str(c["name"]) for c in columns)
    except (ValueError, AttributeError, TypeError, KeyError):
        return (), ()
