"""Labels in files: names of classes or measurements, some of them missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from selfview.data.array_files import npz_array, npz_names
from selfview.data.dataset import Array
from selfview.data.guard import reading, regular_file, report_bad_rows
from selfview.data.table_rows import TABLES, named, open_table, read_rows
from selfview.errors import FileFormatError, InputError
from selfview.labels import NONE, looks_continuous

_GAPS = ("na", "n/a", "none", "null")
_WRITTEN_OUT = re.compile(r"[+-]?\d{1,9}\.\d*(e[+-]?\d\d?)?", re.ASCII)  # 1.0, 1.200e+01


def read_labels(values: Sequence[str]) -> tuple[Array | None, tuple[str, ...]]:
    """Labels out of texts: class codes and names of classes, or measurements and no names.

    A row has no label if its text is empty or "nan"; among numbers also if it is NA or null, or -1
    beside two or more classes that aren't negative. Such a row gets the code -1 or the measurement
    NaN. If no row has a label, the result is None and no names.
    """
    words = [value.strip() for value in values]
    words = ["" if word.lower() == "nan" else word for word in words]
    numbers = _numbers(["" if word.lower() in _GAPS else word for word in words])
    if numbers is not None and not np.isnan(numbers).all():
        if looks_continuous(numbers):
            return numbers, ()
        classes = {*numbers[~np.isnan(numbers)].tolist()} - {NONE}
        none_is_none = len(classes) > 1 and min(classes) >= 0
        gap = np.isnan(numbers) | ((numbers == NONE) & none_is_none)
        words = ["" if none else word for word, none in zip(words, gap, strict=True)]
    return encode_labels(words) if any(words) else (None, ())


def encode_labels(values: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    """Class codes from 0 and the sorted names of the classes; numbers are sorted as numbers.

    Whole numbers written as fractions (1.0, 2.0, as `numpy.savetxt` does) are named 1, 2. An empty
    text is no label.
    """
    if all(_WRITTEN_OUT.fullmatch(v) and float(v).is_integer() for v in values if v):
        values = [v and str(int(float(v))) for v in values]
    names = sorted({v for v in values if v}, key=_natural)
    index = {name: i for i, name in enumerate(names)}
    return np.array([index.get(v, NONE) for v in values], dtype=np.int64), tuple(names)


def side_values(path: Path, column: str | None = None) -> Array:
    """A value for each row out of a file: numbers, or texts without blanks around them.

    Parameters
    ----------
    path : Path
        An array, a table, or a text file with a value on each line.
    column : str or None, default None
        The column of a table; not needed if it has only one, or if all hold numbers.
    """
    kind = path.suffix.lower()
    if kind in TABLES:
        return _of_table(path, column)
    if column is not None:
        raise InputError(f"{path} has no named columns, and so no {column!r}")
    if kind == ".gz":
        raise InputError(f"{path} is packed: unpack it first")
    path = regular_file(path)
    if kind == ".npz":
        names = npz_names(path)
        if len(names) != 1:
            held = ", ".join(names) or "none"
            raise FileFormatError(f"{path} must hold one array, not {held}; save one as .npy")
        return npz_array(path, names[0], text=True)
    with reading(path, "a list of values"):
        if kind == ".npy":
            with path.open("rb") as stream:
                array = np.load(stream, allow_pickle=False)
            if not isinstance(array, np.ndarray):
                raise ValueError("it is not a .npy file")
            return array
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        if any("\0" in line for line in lines):
            raise ValueError("it is neither .npy, .npz, .csv, .tsv, .parquet nor text")
        return np.array([line.strip() for line in lines])


def labels_of_file(path: Path, column: str | None = None) -> tuple[Array, tuple[str, ...]]:
    """The labels in a file of labels, and the names of the classes; see `read_labels`."""
    values = side_values(path, column)
    if values.dtype.kind != "U":
        return values, ()
    labels, names = read_labels(values.tolist())
    if labels is None:
        raise InputError(f"{path} holds no labels")
    return labels, names


def as_measurements(labels: Array, names: Sequence[str]) -> Array:
    """Class codes turned into measurements: the numbers that the names of the classes are."""
    if not names:
        return labels
    numbers = _numbers(names)
    if numbers is None:
        raise InputError(f"labels such as {names[-1]!r} are no measurements")
    return np.where(labels == NONE, np.nan, numbers[labels])


def _of_table(path: Path, column: str | None) -> Array:
    table = open_table(path, None, () if column is None else (column,))
    own = [c for c in table.columns if c not in table.index]
    if column is not None:
        own = [named(table, column, "label")]
    found = read_rows(table, (), own)
    report_bad_rows(path, found.bad, found.total, skip_bad=False)
    if len(own) == 1:
        return np.array([text.strip() for text in found.aside[own[0]]])
    numbers = []
    for name in own:
        numbers.append(_numbers([text.strip() for text in found.aside[name]]))
        if numbers[-1] is None:
            raise InputError(
                f"{path}: column {name!r} holds no numbers; if it holds the labels, name it with "
                "--label"
            )
    return np.column_stack(numbers)  # type: ignore[arg-type]


def _numbers(words: Sequence[str]) -> NDArray[np.float64] | None:
    try:
        return np.array([float(word or "nan") for word in words])
    except (ValueError, OverflowError):
        return None


def _natural(name: str) -> tuple[int, float, str]:
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)
