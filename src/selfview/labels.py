"""What is a label: the number of a class, or a measurement; and how a row says it has none.

Groups (speakers, donors, days) are no labels: they say what is not to be learned.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.errors import InputError

NONE = -1  # among numbers of classes; NaN among measurements
# Numbers with fractions are measurements above this many distinct values, or when more than a
# quarter of the rows are distinct: 0.5, 1.5, 2.5 over and over are still class names.
MANY_VALUES = 50


def missing(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows have no label: -1, NaN, None or an empty string."""
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels) | (labels == NONE))
    if labels.dtype.kind in "iu":
        return np.asarray(labels == NONE)
    if labels.dtype.kind in "US":
        return np.asarray(labels == labels.dtype.type())
    return np.array([_is_missing(value) for value in labels], dtype=bool)


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, str) and not value):
        return True
    try:
        return bool(value != value or value == NONE)  # NaN and NaT differ from themselves
    except (TypeError, ValueError):  # pandas.NA refuses to be true or false
        return True


def looks_continuous(values: NDArray[Any]) -> bool:
    """Whether labels are measurements, and not numbers or names of classes."""
    if values.ndim == 2:
        return True
    if values.dtype.kind != "f":
        return False
    finite = values[np.isfinite(values)]
    if np.all(finite == np.round(finite)):
        return False
    distinct = np.unique(finite).size
    return bool(distinct > MANY_VALUES or distinct > finite.size / 4)


def group_codes(groups: Any, n: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The groups of n rows, numbered in the order of their sorted names, and these names.

    Examples
    --------
    >>> group_codes(["theo", "ann", "theo"], 3)
    (array([1, 0, 1]), ('ann', 'theo'))
    """
    try:
        raw = np.asarray(groups)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"groups must name a group for each row: {error}") from error
    if raw.shape != (n,):
        raise InputError(f"groups must name a group for each of the {n} rows, got {raw.shape}")
    gap = missing(raw) & (raw.astype(str) != str(NONE))  # a day may be -1
    if gap.any():
        row = int(np.flatnonzero(gap)[0])
        raise InputError(f"groups must name a group for each row, but row {row} has {raw[row]!r}")
    names, codes = np.unique(raw.astype(str), return_inverse=True)
    return codes.reshape(-1).astype(np.int64), tuple(names.tolist())
