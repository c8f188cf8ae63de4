"""Columns as features: scaled and clipped numbers, one-hot values, gaps filled and marked.

No column outweighs the others by the number of its features: true and false, two values of a
category, a value and a gap, and opposite ends of a date's cycles are all `APART`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from selfview.tables.columns import (
    APART,
    CYCLES,
    ONE_HOT,
    Boolean,
    Category,
    Column,
    Date,
    Frequency,
    Measured,
    Number,
    Table,
)
from selfview.tables.frames import Columns, Values
from selfview.tables.parsing import as_days, as_numbers, as_texts, as_truth

Floats = NDArray[np.float64]

CLIP = 3.0
_FAR = 1e9  # where the clipped value is 3 already, and its square is finite
_LARGEST = float(np.finfo(np.float32).max)
_RARE, _GAP = " rare", " gap"  # no value begins with a blank


def smooth_clip(x: Floats) -> Floats:
    """x / sqrt(1 + (x / 3)^2), which is nearly x for small x, and between -3 and 3.

    Robust scaling and smooth clipping are those of RealMLP (Holzmüller, Grinsztajn and Steinwart,
    2024).
    """
    x = np.clip(x, -_FAR, _FAR)
    return np.asarray(x / np.hypot(1, x / CLIP))


@dataclass
class Notes:
    """What new rows have that those of the fit had not; counted over all blocks."""

    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    new_values: Counter[str] = field(default_factory=Counter)
    new_gaps: Counter[str] = field(default_factory=Counter)

    def count_new_values(self, column: Column, rows: int) -> None:
        """Rows whose value of the column the fit has not seen."""
        self.new_values[column.name] += rows

    def count_gaps(self, column: Column, rows: int) -> None:
        """Rows with a gap; of a column that had some at the fit, nothing is new."""
        if not column.gaps and column.name not in self.missing:
            self.new_gaps[column.name] += rows

    def counts(self) -> dict[str, dict[str, int]]:
        """What was counted, as JSON can hold it."""
        return {"new_values": dict(self.new_values), "new_gaps": dict(self.new_gaps)}

    def set_counts(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Take over what was counted before."""
        self.new_values = Counter(counts["new_values"])
        self.new_gaps = Counter(counts["new_gaps"])

    def lines(self) -> list[str]:
        """Each as a sentence."""
        lines = []
        if self.missing:
            lines.append(f"{_named(self.missing)} missing: filled as gaps are")
        if self.extra:
            lines.append(f"{_named(self.extra)} new: left out")
        for what, counts in (
            ("new values", self.new_values),
            ("gaps, unlike at the fit,", self.new_gaps),
        ):
            lines += [
                f"column {name!r} has {what} in {rows:,} row{'s' * (rows != 1)}"
                for name, rows in counts.items()
                if rows
            ]
        return lines


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:8])
    more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
    return f"column{'s' * (len(names) > 1)} {shown}{more} {'are' if len(names) > 1 else 'is'}"


class TableEncoder:
    """Rows of a table's features, by scikit-learn's scaler, imputer and encoder.

    They are not fitted on rows, but set up from what the table knows, so that a table read from a
    file encodes as the one that was written.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        categories = [c for c in table.used if isinstance(c, Category)]
        others = [c for c in table.used if not isinstance(c, Category)]
        self._blocks: list[_Numeric | _OneHot] = []
        if others:
            self._blocks.append(_Numeric(others, table.as_is))
        if categories:
            self._blocks.append(_OneHot(categories))
        # Features stand in the order of the columns, within one as `Column.features` names them.
        place = {column.name: i for i, column in enumerate(table.used)}
        owners = [place[name] for block in self._blocks for name in block.owners]
        self._order = np.argsort(owners, kind="stable")

    def read(self, values: Columns, n: int) -> dict[str, Values]:
        """The columns as numbers, or texts of categories; infinity is what can't be read."""
        return {
            c.name: _read(c, values[c.name]) if c.name in values else _all_gaps(c, n)
            for c in self.table.used
        }

    def bad(self, read: Columns) -> dict[str, NDArray[np.bool_]]:
        """For each column with values that can't be read: in which rows."""
        found = {
            name: ~(np.isnan(values) | (np.abs(values) <= _LARGEST))
            for name, values in read.items()
            if values.dtype.kind == "f"
        }
        return {name: rows for name, rows in found.items() if rows.any()}

    def rows(self, read: Columns, notes: Notes) -> NDArray[np.float32]:
        """The features of columns that were read: (n, features)."""
        blocks = [block.features(read, notes) for block in self._blocks]
        return np.concatenate(blocks, axis=1, dtype=np.float32)[:, self._order]


class _Numeric:
    """Numbers, truth values, frequencies and dates: scaled, clipped, gaps filled and marked."""

    def __init__(self, columns: Sequence[Column], as_is: bool) -> None:
        from sklearn.impute import SimpleImputer  # here: every import of selfview would wait for it
        from sklearn.preprocessing import RobustScaler

        self._columns = columns
        parts = [(c, wave) for c in columns for wave in (False, *[True] * _n_waves(c))]
        marked = np.array([c.gaps and not wave for c, wave in parts])
        self.owners = [c.name for c, _ in parts]
        self.owners += [c.name for (c, _), gap in zip(parts, marked, strict=True) if gap]
        centres, scales, fills = np.zeros(len(parts)), np.ones(len(parts)), np.zeros(len(parts))
        self._clipped = np.zeros(len(parts), bool)
        for i, (column, wave) in enumerate(parts):
            if isinstance(column, Measured) and as_is:
                fills[i] = column.centre
            elif isinstance(column, Measured) and not wave:
                centres[i], scales[i], self._clipped[i] = column.centre, column.scale, True
            elif isinstance(column, Boolean) and not as_is:
                scales[i] = 1 / APART
        self._scaler = RobustScaler()
        self._scaler.center_, self._scaler.scale_ = centres, scales
        self._scaler.n_features_in_ = len(parts)
        # The median of these two rows is `fills`, and gaps are marked where the second has one.
        self._imputer = SimpleImputer(strategy="median", add_indicator=True)
        self._imputer.fit(np.stack([fills, np.where(marked, np.nan, fills)]))

    def features(self, read: Columns, notes: Notes) -> Floats:
        parts = [part for c in self._columns for part in _parts(c, read[c.name], notes)]
        x = self._scaler.transform(np.column_stack(parts))
        x[:, self._clipped] = smooth_clip(x[:, self._clipped])
        filled = np.asarray(self._imputer.transform(x))
        filled[:, x.shape[1] :] *= APART  # the marks of gaps
        return filled


class _OneHot:
    """Categories: a feature for each value, for the rare ones together, and for gaps."""

    def __init__(self, columns: Sequence[Category]) -> None:
        from sklearn.preprocessing import OneHotEncoder

        self._columns = columns
        values = [[*c.values, *[_RARE] * bool(c.rare), *[_GAP] * c.gaps] for c in columns]
        self.owners = [c.name for c, own in zip(columns, values, strict=True) for _ in own]
        self._encoder = OneHotEncoder(
            categories=[np.array(own, object) for own in values],
            handle_unknown="ignore",
            sparse_output=False,
            dtype=np.float32,
        )
        self._encoder.fit(np.array([[own[0] for own in values]], object))

    def features(self, read: Columns, notes: Notes) -> NDArray[np.float32]:
        texts = [_marked(c, read[c.name], notes) for c in self._columns]
        return np.float32(ONE_HOT) * np.asarray(self._encoder.transform(np.column_stack(texts)))


def _parts(column: Column, values: Values, notes: Notes) -> list[Floats]:
    """The number of a column, and for a date sine and cosine of its cycles."""
    if isinstance(column, Frequency):
        shares = dict(zip(column.values, column.log_shares, strict=True))
        lowest = min(column.log_shares)
        notes.count_new_values(column, sum(t is not None and t not in shares for t in values))
        values = np.array([np.nan if t is None else shares.get(t, lowest) for t in values])
    notes.count_gaps(column, int(np.isnan(values).sum()))
    cycles = column.cycles if isinstance(column, Date) else ()
    angles = [2 * np.pi * (values % CYCLES[c]) / CYCLES[c] for c in cycles]
    radius = column.radius if isinstance(column, Date) else 1.0
    return [values, *(radius * wave(angle) for angle in angles for wave in (np.sin, np.cos))]


def _n_waves(column: Column) -> int:
    return 2 * len(column.cycles) if isinstance(column, Date) else 0


def _marked(column: Category, texts: Values, notes: Notes) -> Values:
    """The texts, with marks in place of gaps and of values that aren't known by name."""
    own, rare = set(column.values), {None, *column.rare}
    notes.count_new_values(column, sum(t not in own and t not in rare for t in texts))
    marked = np.array([_GAP if t is None else t if t in own else _RARE for t in texts], object)
    notes.count_gaps(column, int((marked == _GAP).sum()))
    return marked


def _read(column: Column, values: Values) -> Values:
    if isinstance(column, Date):
        return as_days(values, column.form)
    if isinstance(column, Category | Frequency):
        return as_texts(values)
    if isinstance(column, Boolean):
        return as_truth(values)
    numbers = as_numbers(values)
    lenient = isinstance(column, Number) and column.lenient
    return np.where(np.isinf(numbers), np.nan, numbers) if lenient else numbers


def _all_gaps(column: Column, n: int) -> Values:
    texts = isinstance(column, Category | Frequency)
    return np.full(n, None, object) if texts else np.full(n, np.nan)
