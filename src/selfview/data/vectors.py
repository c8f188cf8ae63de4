"""Vectors in a column of lists, as sentence embeddings are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from selfview.data.cache import cache_key
from selfview.data.dataset import Dataset, Options
from selfview.data.feather import FeatherFile
from selfview.data.json_lines import JsonFile
from selfview.data.parquet import ParquetFile
from selfview.data.preparation import Preparation
from selfview.data.table_rows import RULES, SIDES, aside_of, collected, table_dataset
from selfview.data.tables import existing_column
from selfview.errors import InputError

FILES: dict[str, type[ParquetFile | FeatherFile | JsonFile]] = {
    ".parquet": ParquetFile,
    ".feather": FeatherFile,
    ".jsonl": JsonFile,
    ".json": JsonFile,
}
SUFFIXES = tuple(FILES)
_MOST = 2**20  # numbers of a vector


@dataclass(frozen=True, eq=False)
class VectorPreparation(Preparation):
    """The vectors of a column, each of ``size`` numbers, as they are.

    ``label``, ``id`` and ``groups`` are columns of the fit; new files may lack them.
    """

    vector: str
    size: int
    label: str | None = None
    id: str | None = None
    groups: str | None = None

    kind: ClassVar[str] = "vector"
    suffixes: ClassVar[str] = ".parquet or .jsonl"
    images: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)

    def consistent(self) -> bool:
        return self.size <= _MOST

    def read_files(self, path: Path, options: Options) -> Dataset:
        if path.suffix.lower() not in SUFFIXES:
            raise InputError(f"{path}: this model was fitted on vectors, give {self.suffixes}")
        asked = {side: getattr(options, side) for side in SIDES}
        kept = {side: getattr(self, side) for side in SIDES}
        return _dataset(path, self, asked, kept, options.skip_bad)


def fit_vectors(path: Path, options: Options) -> Dataset:
    """The rows of a column of lists, all as long as the first."""
    assert options.vector is not None
    asked = {side: getattr(options, side) for side in SIDES}
    file = _opened(path)
    size = file.vector_size(existing_column(file, options.vector, "vector"))
    if size > _MOST:
        raise InputError(f"{path}: a vector must have at most {_MOST:,} numbers, got {size:,}")
    how = VectorPreparation(options.vector, size, **asked)
    return _dataset(path, how, asked, asked, options.skip_bad)


def _opened(path: Path) -> ParquetFile | FeatherFile | JsonFile:
    return FILES[path.suffix.lower()](path, None, ())


def _dataset(
    path: Path,
    how: VectorPreparation,
    asked: Mapping[str, str | None],
    kept: Mapping[str, str | None],
    skip_bad: bool,
) -> Dataset:
    """The vectors of a file; columns that are `asked` for must be there, those `kept` may be."""
    file = _opened(path)
    existing_column(file, how.vector, "vector")
    for side, column in asked.items():
        if column is not None:
            existing_column(file, column, side)
    sides = {side: asked[side] or kept[side] for side in SIDES}
    sides = {side: column for side, column in sides.items() if column in file.columns}
    aside = aside_of(sides)
    key = cache_key([file.path], RULES, how.vector, how.size, tuple(aside))
    found = collected(file.path, key, how.size, file.vectors(how.vector, how.size, aside), aside)
    return table_dataset(path, how, sides, found, (), skip_bad)
