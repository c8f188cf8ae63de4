"""What pyarrow reads, a batch of rows at a time: Parquet here, Feather beside it."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from selfview.data.guard import need, reading, regular_file
from selfview.data.table_files import ROWS, TableBlock, TableRows, vector_rows
from selfview.errors import FileFormatError, InputError
from selfview.tables.frames import columns_of, declared_categories

_BUFFER = 2**16  # bytes a column


class ArrowFile(ABC):
    """A file of columns that pyarrow reads, some rows at a time."""

    header = True
    sheet: str | None = None

    def __init__(self, source: Path, _header: bool | None, _hints: Sequence[str]) -> None:
        self.path = regular_file(source)
        self.files: tuple[Path, ...] = (self.path,)
        need("pyarrow")
        with reading(self.path, self.kind):
            self._schema = self._opened()
            self.columns = tuple(str(name) for name in self._schema.names)
            self.index, declared = _of_pandas(self._schema.metadata)
            self.categories = (*declared_categories(self._schema.empty_table()), *declared)

    @property
    @abstractmethod
    def kind(self) -> str:
        """What the format is called."""

    @abstractmethod
    def _opened(self) -> Any:
        """The file's schema; an error if it holds no rows."""

    @abstractmethod
    def _read(self, columns: list[str]) -> Iterator[Any]:
        """Record batches of these columns."""

    def blocks(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        for places, batch in self._batches(columns):
            yield TableBlock(columns_of(batch), places, [])

    def _batches(self, columns: Iterable[str]) -> Iterator[tuple[list[str], Any]]:
        """Batches of rows, each with the places of its rows."""
        start = 0
        with reading(self.path, self.kind):
            for batch in self._read(list(columns)):
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
        types, kind = need("pyarrow.types"), self._schema.field(column).type
        lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if not lists or not _is_numeric(kind.value_type):
            raise InputError(f"{self.path}: {column!r} must hold lists of numbers, got {kind}")


class ParquetFile(ArrowFile):
    """A Parquet file, read a row group's batch at a time."""

    kind = "Parquet"

    def _opened(self) -> Any:
        # With a buffer, pages are read as they are needed, not a row group whole.
        self._file = need("pyarrow.parquet").ParquetFile(
            self.path, buffer_size=_BUFFER, pre_buffer=False
        )
        if self._file.metadata.num_rows == 0:
            raise FileFormatError(f"{self.path} holds no rows")
        return self._file.schema_arrow

    def _read(self, columns: list[str]) -> Iterator[Any]:
        yield from self._file.iter_batches(ROWS, columns=columns)


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
