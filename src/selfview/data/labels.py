"""Labels out of texts: names of classes or measurements, some of them missing."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from selfview.data.dataset import Array
from selfview.errors import InputError
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
    numbers = as_numbers(["" if word.lower() in _GAPS else word for word in words])
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


def as_measurements(labels: Array, names: Sequence[str]) -> Array:
    """Class codes turned into measurements: the numbers that the names of the classes are."""
    if not names:
        return labels
    numbers = as_numbers(names)
    if numbers is None:
        raise InputError(f"labels such as {names[-1]!r} are no measurements")
    return np.where(labels == NONE, np.nan, numbers[labels])


def as_numbers(words: Sequence[str]) -> NDArray[np.float64] | None:
    """The words as numbers, empty ones as NaN; None if one is no number."""
    try:
        return np.array([float(word or "nan") for word in words])
    except (ValueError, OverflowError):
        return None


def _natural(name: str) -> tuple[int, float, str]:
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)
