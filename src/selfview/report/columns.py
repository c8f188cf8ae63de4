"""What the map can be coloured by: labels, clusters, prototypes, and the data's own columns."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.data import Dataset
from selfview.data.tables import TableFilePreparation
from selfview.labels import looks_continuous
from selfview.tables.decoding import decoded

MOST_CATEGORIES = 2**16 - 1
BUDGET = 2_400_000  # bytes of a table's columns, before compression
PER_ROW = 80  # bytes, where there are so many rows that the budget would leave too few columns
_WHOLE_NUMBERS = 50  # a whole-numbered column of more distinct values is a quantity


@dataclass(frozen=True)
class Column:
    """A value for each row: a category (`codes` number its `names`) or a number (`values`).

    Numbers of a `date` are days since 1970. A column of the data stands in another `group` than
    what was found out about the rows.
    """

    name: str
    codes: NDArray[np.uint16] | None = None
    names: tuple[str, ...] = ()
    values: NDArray[np.float64] | None = None
    date: bool = False
    group: str = "Columns"


def columns_of(dataset: Dataset, clusters: Column, prototypes: NDArray[Any]) -> list[Column]:
    """The columns of rows, labels first; `clusters` and `prototypes` are those of the rows."""
    found = []
    if dataset.y is not None:
        found.append(label_column(np.asarray(dataset.y), dataset.classes))
    if dataset.groups is not None:
        found.append(category("group", np.asarray(dataset.groups)))
    found.append(clusters)
    found.append(category("prototype", prototypes))
    if dataset.test is not None:
        part = np.zeros(len(dataset), dtype=np.int64)
        part[dataset.test] = 1
        found.append(Column("split", part.astype(np.uint16), ("train", "test")))
    for name, values in dataset.further.items():
        array = np.asarray(values)
        if array.ndim == 1:  # colours and the like have several values a row
            taken = any(column.name == name for column in found)
            found.append(column_of(f"{name} (data)" if taken else str(name), array))
    return found


def table_columns(dataset: Dataset) -> tuple[list[Column], tuple[str, ...]]:
    """The columns of a mixed table as they were before they became features, and what is left out.

    Categories have their names, numbers their units. None of other rows.
    """
    how = dataset.preparation
    table = how.mixed if isinstance(how, TableFilePreparation) else None
    if table is None:
        return [], ()
    room = max(BUDGET, PER_ROW * len(dataset))
    found: list[Column] = []
    for column in _of_values(decoded(table, np.asarray(dataset.X))):
        room -= (4 if column.codes is None else 2) * len(dataset)
        if room < 0:
            few = f"{len(found):,} of the {len(table.used):,} columns are kept to colour by."
            return found, (few,)
        found.append(column)
    return found, ()


def _of_values(values: dict[str, NDArray[Any]]) -> Iterator[Column]:
    for name, own in values.items():
        if own.dtype.kind == "M":
            hours = own.astype("datetime64[h]").astype(np.int64)
            days = np.where(np.isnat(own), np.nan, hours / 24)
            yield Column(name, values=days, date=True, group="Data")
        elif own.dtype.kind == "f":
            yield Column(name, values=own, group="Data")
        else:
            yield replace(category(name, own), group="Data")


def category(name: str, values: NDArray[Any]) -> Column:
    """A column of categories, named as they are written, in their natural order."""
    unique, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(unique) <= MOST_CATEGORIES:
        return Column(name, codes.astype(np.uint16), tuple(str(value) for value in unique))
    common = np.argsort(-counts, kind="stable")[: MOST_CATEGORIES - 1]
    place = np.full(len(unique), MOST_CATEGORIES - 1, dtype=np.uint16)
    place[common] = np.arange(len(common))
    return Column(name, place[codes], (*(str(unique[i]) for i in common), "all others"))


def label_column(y: NDArray[Any], classes: tuple[str, ...]) -> Column:
    """The labels of rows: codes of these classes, names or measurements."""
    known = len(classes)
    if known and known <= MOST_CATEGORIES and np.issubdtype(y.dtype, np.integer):
        inside = (y >= 0) & (y < known)
        names = tuple(map(str, classes))
        if inside.all():
            return Column("label", y.astype(np.uint16), names)
        return Column("label", np.where(inside, y, known).astype(np.uint16), (*names, "none"))
    return column_of("label", y)


def column_of(name: str, values: NDArray[Any]) -> Column:
    """Numbers if the values are measurements or many whole numbers, else categories."""
    many = values.dtype.kind in "iuf" and len(np.unique(values)) > _WHOLE_NUMBERS
    if many or looks_continuous(values):
        return Column(name, values=values.astype(np.float64))
    return category(name, values)
