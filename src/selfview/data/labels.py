"""Labels as files hold them: names of classes or measurements, with gaps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from selfview.data.collecting import collect
from selfview.data.dataset import Array
from selfview.data.guard import reading, regular_file, settle_bad_rows
from selfview.data.npz import npz_array, npz_names
from selfview.data.table_files import TABLES, check_words, named, open_table
from selfview.errors import FileFormatError, InputError
from selfview.labels import NONE, looks_continuous

_WRITTEN_OUT = re.compile(r"[+-]?\d{1,9}\.\d*(e[+-]?\d\d?)?", re.ASCII)  # 1.0, 1.200e+01


def read_labels(values: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    """What texts mean as labels: numbers of classes and their names, or measurements and no names.

    An empty text, "nan", and among numbers -1, say that a row has none: class -1, measurement NaN.
    """
    words = [value.strip() for value in values]
    words = ["" if word.lower() == "nan" else word for word in words]
    numbers = _numbers(words)
    if numbers is not None:
        if looks_continuous(numbers):
            return numbers, ()
        words = ["" if at == NONE else w for w, at in zip(words, numbers, strict=True)]
    return encode_labels(words)


def encode_labels(values: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    """Integers from 0 and the sorted names they stand for; numbers are sorted as numbers.

    If all are whole but written as fractions, as `numpy.savetxt` does, they are named as whole. An
    empty one is no label.
    """
    if all(_WRITTEN_OUT.fullmatch(v) and float(v).is_integer() for v in values if v):
        values = [v and str(int(float(v))) for v in values]
    names = sorted({v for v in values if v}, key=_natural)
    index = {name: i for i, name in enumerate(names)}
    return np.array([index.get(v, NONE) for v in values], dtype=np.int64), tuple(names)


def side_values(path: Path, column: str | None = None) -> Array:
    """A value for each row, from a file of its own: numbers, or texts as they are written.

    Parameters
    ----------
    path : Path
        An array, a table, or a text with a value on each line.
    column : str, optional
        Of a table; not needed if it has only one, or if all hold numbers.
    """
    kind = path.suffix.lower()
    if kind in TABLES:
        return _of_table(path, column)
    if column is not None:
        raise InputError(f"--label needs a table with named columns, and {path} has none")
    path = regular_file(path)
    if kind == ".npz":
        names = npz_names(path)
        if len(names) != 1:
            held = ", ".join(names) or "none"
            raise FileFormatError(f"{path} must hold one array, not {held}; save one as .npy")
        return npz_array(path, names[0], text=True)
    with reading(path, "a list of values"):
        if kind == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        if any("\0" in line for line in lines):
            raise ValueError("it is neither .npy, .npz, .csv, .tsv, .parquet nor text")
        return np.array(lines)


def as_labels(values: Array) -> Array:
    """The labels that `side_values` found, texts read as `read_labels` does."""
    return read_labels(values.tolist())[0] if values.dtype.kind == "U" else values


def _of_table(path: Path, column: str | None) -> Array:
    table = open_table(path, None, () if column is None else (column,))
    own = [c for c in table.columns if c not in table.index]
    if column is not None or len(own) == 1:
        at = own[0] if column is None else named(table, column, "label")
        found = collect(table, (), [at])
        settle_bad_rows(path, found.bad, found.total, skip_bad=False)
        return np.array(found.aside[at])
    found = collect(table, own, ())
    check_words(path, found.bad, found.total)
    settle_bad_rows(path, found.bad, found.total, skip_bad=False)
    return found.X


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
