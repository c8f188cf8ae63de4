"""Features of a table back to the values of its columns, to be looked at."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from selfview.tables.columns import (
    Boolean,
    Category,
    Column,
    Date,
    Frequency,
    Measured,
    Table,
)
from selfview.tables.encoding import CLIP
from selfview.tables.frames import Values

Floats = NDArray[np.float64]

GAP, RARE, NEW = "(missing)", "(rare)", "(new)"
_DIGITS = 6  # of a number in float32, about
_MOST = CLIP * (1 - 1e-7)  # of a clipped number in float32


def decoded(table: Table, X: Values) -> dict[str, Values]:
    """The values of each column that is learned from: texts, numbers or dates, NaN for a gap.

    Numbers have six digits, those far out fewer; times are whole hours. Values that share a
    feature are the same here: rare ones are "(rare)", and of many-valued columns it is the share
    of the rows.
    """
    found, at = {}, 0
    for column in table.used:
        width = len(column.features)
        part = np.asarray(X[:, at : at + width], np.float64)
        found[column.name] = _values(column, part, table.as_is)
        at += width
    return found


def _values(column: Column, part: Floats, as_is: bool) -> Values:
    if isinstance(column, Category):
        return _category(column, part)
    gaps = part[:, -1] > 0.5 if column.gaps else np.zeros(len(part), bool)
    if isinstance(column, Boolean):
        return np.where(gaps, GAP, np.where(part[:, 0] > 0.5, "true", "false"))
    values = part[:, 0]
    if isinstance(column, Measured) and not as_is:
        values = column.centre + column.scale * _unclipped(values)
        values = values.round(_DIGITS - math.ceil(math.log10(column.scale)))
    if isinstance(column, Frequency):
        values = np.exp(values)
    if isinstance(column, Date):
        unit = "h" if "day" in column.cycles else "D"
        moments = (values * (24 if unit == "h" else 1)).round().astype(f"datetime64[{unit}]")
        return np.where(gaps, np.datetime64("NaT"), moments)
    return np.where(gaps, np.nan, values)


def _category(column: Category, part: Floats) -> Values:
    names = np.array([*column.values, *[RARE] * bool(column.rare), *[GAP] * column.gaps])
    return np.where(part.any(axis=1), names[part.argmax(axis=1)], NEW)


def _unclipped(y: Floats) -> Floats:
    """The number whose `smooth_clip` this is."""
    y = np.clip(y, -_MOST, _MOST)
    return np.asarray(y / np.sqrt(1 - np.square(y / CLIP)))
