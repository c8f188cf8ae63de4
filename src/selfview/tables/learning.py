"""What each column of a table is: number, truth value, category, date, id, constant or text."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from selfview.errors import InputError
from selfview.tables.columns import (
    CYCLES,
    ID,
    Boolean,
    Category,
    Column,
    Date,
    Frequency,
    LeftOut,
    Number,
    Table,
)
from selfview.tables.frames import Columns, Values
from selfview.tables.parsing import (
    COMPACT,
    MONTHS,
    TIMES,
    are_truth_words,
    as_days,
    as_numbers,
    as_texts,
    date_form,
)

MOST_VALUES = 50  # that are one-hot
RARE = 0.01  # share of the rows below which a value is rare
FEWEST = 10  # rows of a value that is worth a feature, if there are more than MOST_VALUES values
COVERED = 0.5  # share of the rows that frequent values make up, or one-hot tells too little
DIFFERENT = 0.95  # share of different texts from which on they are names of rows
TEXT_WORDS = 4.0  # words in a value, on average, from which on it is a text
WORDS = 0.05  # share of words among few different values, above which all are categories
TEN_TIMES = math.log(10)  # as frequent, at least, is a value that is 1 apart
COUNTED = 20  # rows from which on numbers that go up by one are a count of them
LOOKED_AT = 1000  # values that tell how dates are written
_ID_NAME = re.compile(r"(^|[_\W])(id|uuid|guid|index|key|number|nr)$|(?<=[a-z])I[dD]$", re.ASCII)


@dataclass(frozen=True)
class Choice:
    """What the user says about columns; None leaves it to the values."""

    columns: Sequence[str] | None = None
    drop: Sequence[str] | None = None
    categorical: Sequence[str] | None = None
    numeric: Sequence[str] | None = None
    declared: Sequence[str] = ()  # by the data type: categories also where they are numbers

    @property
    def named(self) -> list[str]:
        """All columns that are named."""
        lists = (self.columns, self.drop, self.categorical, self.numeric)
        return [name for names in lists for name in names or ()]

    def check(self, known: Sequence[str]) -> None:
        """Raise InputError for a column that isn't there, or is said to be two things."""
        for option in ("columns", "drop", "categorical", "numeric"):
            named = getattr(self, option)
            if named is None:
                continue
            if isinstance(named, str) or not all(isinstance(name, str) for name in named):
                raise InputError(f"{option} must be a list of column names, got {named!r}")
            missing = [name for name in named if name not in known]
            if missing:
                shown = ", ".join(map(repr, known[:8])) + " ..." * (len(known) > 8)
                near = get_close_matches(missing[0], known, 1)
                meant = f"; did you mean {near[0]!r}?" if near else ""
                raise InputError(
                    f"{option} must name columns of the table, got {missing[0]!r}; it has {shown}"
                    f"{meant}"
                )
        pairs = (("columns", "drop"), ("categorical", "numeric"))
        for one, other in pairs:
            both = {*(getattr(self, one) or ())} & {*(getattr(self, other) or ())}
            if both:
                raise InputError(f"{sorted(both)[0]!r} can't be in both {one} and {other}")

    def left_out(self, name: str) -> LeftOut | None:
        """The column, if it is left out by choice."""
        if name in (self.drop or ()):
            return LeftOut(name=name, why="dropped")
        if self.columns is None or name in self.columns:
            return None
        return LeftOut(name=name, why="not among the columns")


def learn(values: Columns, choice: Choice, rows: NDArray[np.intp] | None = None) -> Table:
    """What the columns are, and the medians, values and frequencies that encode them.

    If all columns but ids are numbers without gaps, they are taken as they are. `rows` are the
    numbers of the rows, if they are some of more.
    """
    names = list(values)
    choice.check(names)
    columns = plain_columns(values, choice)
    as_is = columns is not None
    if columns is None:
        columns = [
            choice.left_out(name) or _column(name, values[name], choice, rows) for name in names
        ]
    table = Table(tuple(columns), as_is)
    if not table.used:
        asked = [c for c in table.columns if choice.left_out(c.name) is None] or table.columns
        decisions = "; ".join(f"{c.name!r}: {c.describe()}" for c in asked[:8])
        raise InputError(f"no column is left to learn from ({decisions})")
    return table


def plain_columns(values: Columns, choice: Choice) -> list[Column] | None:
    """The columns, if all may be taken as they are."""
    found: list[Column] = []
    for name in values:
        column = choice.left_out(name) or _plain_number(name, values[name], choice)
        if column is None:
            return None
        found.append(column)
    return found


def are_plain(values: Columns) -> bool:
    """Whether all columns are numbers without gaps, and none an id by its name."""
    return all(
        column.dtype.kind in "biuf"
        and not (column.dtype.kind == "f" and np.isnan(column).any())
        and not (_ID_NAME.search(name) and _all_differ(column))
        for name, column in values.items()
    )


def _plain_number(name: str, values: Values, choice: Choice) -> Column | None:
    """The column if it may be taken as it is: numbers without a gap, or an id by its name."""
    if name in (*(choice.categorical or ()), *choice.declared) or values.dtype.kind not in "biufO":
        return None
    numbers = as_numbers(values)
    if not np.isfinite(numbers).all():
        return None
    if name not in (choice.numeric or ()) and _ID_NAME.search(name) and _all_differ(numbers):
        return LeftOut(name=name, why=f"{ID}number")
    return Number(name=name, centre=float(np.median(numbers)), scale=1.0)


def _column(name: str, values: Values, choice: Choice, rows: NDArray[np.intp] | None) -> Column:
    """What one column of a mixed table is."""
    if name in (choice.numeric or ()):
        numbers = as_numbers(values)
        return _number(name, np.where(np.isinf(numbers), np.nan, numbers), lenient=True)
    if name in (choice.categorical or ()):
        return _category(name, as_texts(values))
    kind = values.dtype.kind
    if kind == "V":
        return LeftOut(name=name, why="lists or structures; vectors are read with --vector")
    if kind == "M":
        return _date(name, values, "iso")
    if kind == "O":
        found = _texts(name, as_texts(values), rows)
    else:
        found = _numbers(name, as_numbers(values), rows)
    if name in choice.declared and isinstance(found, Number):
        return _category(name, as_texts(values))
    return found


def _numbers(name: str, numbers: NDArray[np.float64], rows: NDArray[np.intp] | None) -> Column:
    finite = numbers[np.isfinite(numbers)]
    gaps = bool(np.isnan(numbers).any())
    if not finite.size:
        return LeftOut(name=name, why="empty")
    if not gaps and (finite == finite[0]).all():
        return LeftOut(name=name, why=f"constant: {finite[0]:.6g}")
    if _are_compact_dates(finite):
        return _date(name, numbers, COMPACT)
    if len(finite) == len(numbers) and _all_differ(finite):
        step = 1 if rows is None else np.diff(rows)
        counted = len(finite) >= COUNTED and bool((np.diff(finite) == step).all())
        if counted or _ID_NAME.search(name):
            return LeftOut(name=name, why=f"{ID}number")
    if np.isin(finite, (0, 1)).all():
        return Boolean(name=name, gaps=gaps)
    return _number(name, numbers)


def _are_compact_dates(numbers: NDArray[np.float64]) -> bool:
    """Whether these are dates such as 20240131: one of 27 numbers in their range is."""
    first, last = 1900_01_01, 2099_12_31
    if not ((numbers >= first) & (numbers <= last)).all():
        return False
    distinct = np.unique(numbers)
    return len(distinct) > 2 and bool(np.isfinite(as_days(distinct, COMPACT)).all())


def _all_differ(numbers: NDArray[np.float64]) -> bool:
    whole = bool((numbers == np.round(numbers)).all())
    return whole and len(numbers) > 1 and len(np.unique(numbers)) == len(numbers)


def _number(name: str, numbers: NDArray[np.float64], lenient: bool = False) -> Column:
    if not np.isfinite(numbers).any():
        return LeftOut(name=name, why="empty")
    centre, scale = robust_scale(numbers)
    gaps = bool(np.isnan(numbers).any())
    return Number(name=name, centre=centre, scale=scale, gaps=gaps, lenient=lenient)


def robust_scale(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Median and interquartile range; where that is 0, half the range, and 1 of equal numbers."""
    from sklearn.preprocessing import RobustScaler

    finite = numbers[np.isfinite(numbers)]
    low, high = np.percentile(finite, (25, 75))
    scaler = RobustScaler(unit_variance=False).fit(finite[:, None])
    scale = float(scaler.scale_[0]) if high > low else float(np.ptp(finite)) / 2
    return float(scaler.center_[0]), scale if 0 < scale < math.inf else 1.0


def _texts(name: str, texts: Values, rows: NDArray[np.intp] | None) -> Column:
    counts = Counter(text for text in texts.tolist() if text is not None)
    gaps = any(text is None for text in texts)
    distinct, count = list(counts), sum(counts.values())
    if not distinct:
        return LeftOut(name=name, why="empty")
    if len(distinct) == 1 and not gaps:
        return LeftOut(name=name, why=f"constant: {distinct[0][:40]}")
    if are_truth_words(distinct):
        return Boolean(name=name, gaps=gaps)
    numbers = as_numbers(texts)
    words = count - int(np.isfinite(numbers).sum())
    if words <= count / 2 and (words <= max(2, WORDS * count) or len(distinct) > MOST_VALUES):
        return _numbers(name, numbers, rows)
    form = date_form(distinct[:LOOKED_AT])
    if form is not None:
        return _date(name, texts, form)
    length = sum(len(text.split()) for text in distinct) / len(distinct)
    if len(distinct) >= DIFFERENT * count:
        long = length >= TEXT_WORDS
        why = "texts: learned from with --text" if long else f"{ID}value"
        return LeftOut(name=name, why=why)
    return _category(name, texts)


def _category(name: str, texts: Values) -> Column:
    counts = Counter(text for text in texts.tolist() if text is not None)
    if not counts:
        return LeftOut(name=name, why="empty")
    gaps, count = any(text is None for text in texts), sum(counts.values())
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    least = max(FEWEST if len(ordered) > MOST_VALUES else 2, RARE * count)
    frequent = [value for value in ordered if counts[value] >= least]
    if len(ordered) - len(frequent) == 1:  # nothing to share a feature with
        frequent = ordered
    rare = tuple(ordered[len(frequent) :])
    covered = sum(counts[value] for value in frequent)
    if frequent and len(frequent) <= MOST_VALUES and covered >= COVERED * count:
        return Category(name=name, values=tuple(frequent), rare=rare, gaps=gaps)
    if len(ordered) <= MOST_VALUES:
        return Category(name=name, values=tuple(ordered), gaps=gaps)
    shares = {value: math.log(counts[value] / count) for value in ordered}
    centre, scale = robust_scale(np.array([shares[t] for t in texts if t is not None]))
    scale = max(scale, TEN_TIMES)  # once or twice among many rows is chance
    return Frequency(
        name=name, values=tuple(ordered), log_shares=tuple(shares.values()), centre=centre,
        scale=scale, gaps=gaps,
    )  # fmt: skip


def _date(name: str, values: Values, form: str) -> Column:
    days = as_days(values, form)
    finite = days[np.isfinite(days)]
    if not finite.size:
        return LeftOut(name=name, why="empty")
    gaps = bool(np.isnan(days).any())
    span = float(np.ptp(finite))
    if span == 0 and not gaps:
        return LeftOut(name=name, why="constant: one moment")
    timed = bool((finite % 1 != 0).any())
    cycles = tuple(c for c, days in CYCLES.items() if span >= days and (c != "day" or timed))
    if form == MONTHS:
        cycles = tuple(c for c in cycles if c == "year")
    if form in TIMES:
        cycles = ("day",)
    centre, scale = robust_scale(days)
    return Date(name=name, form=form, cycles=cycles, centre=centre, scale=scale, gaps=gaps)
