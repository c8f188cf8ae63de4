"""`TablePreparation`: tables of mixed columns as rows of floats, a scikit-learn transformer."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from selfview.errors import InputError, SelfViewWarning
from selfview.tables.columns import Table
from selfview.tables.decisions import Decisions, decisions_of
from selfview.tables.encoding import Notes, TableEncoder
from selfview.tables.frames import Columns, columns_of, declared_categories, is_frame
from selfview.tables.learning import Choice, are_plain, learn


class TablePreparation(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Rows of floats from a table with numbers, categories, truth values, dates, ids and gaps.

    | column | becomes |
    |---|---|
    | numbers | smooth_clip((x - median) / IQR); half the range in place of an IQR of 0 |
    | truth values, and numbers 0 and 1 | sqrt(1/2) or 0 |
    | up to 50 values | one-hot, 1/2 or 0; values in less than 1 % of the rows share a feature |
    | more values | the logarithm of the value's share of the rows, scaled as numbers are, a |
    | | factor of ten to 1 at most |
    | dates | days, scaled as numbers are; sine and cosine of year, week and day |
    | ids, texts, constant and empty columns, lists | left out |

    A gap is filled with the median (0 after scaling), or is no value at all of a one-hot column. A
    feature of its own marks it if the column had gaps at the fit.

    Rows of different values are thus sqrt(1/2) apart in a column of truth values or categories, and
    at most so far in a date's cycles: neither their jumps nor the number of their features outweigh
    the numbers.

    If all columns but ids are numbers without gaps, they are taken as they are, constant ones too:
    `SelfView` rescales columns of different scale itself. A column whose data type is that of
    categories is one of categories, also if they are numbers.

    New values, gaps and missing columns of `transform` are filled, further columns left out, and a
    `SelfViewWarning` tells; the order of columns doesn't matter.

    Parameters
    ----------
    columns : list of str or None, default None
        The columns to use. None: all.
    drop : list of str or None, default None
        Columns to leave out.
    categorical : list of str or None, default None
        Columns of categories, whatever their values look like.
    numeric : list of str or None, default None
        Columns of numbers, whatever else they hold: that counts as a gap.

    Attributes
    ----------
    decisions_ : tuple of Decision
        For each column its `kind`, `features` and `what` is done; `print` shows a table.
    table_ : Table
        The same as plain values, which JSON can hold.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, if the table was a data frame

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, 45, None, 28], "city": ["Ulm", "Bonn", "Ulm", "Bonn"]})
    >>> preparation = TablePreparation().fit(frame)
    >>> print(preparation.decisions_)
    column  kind      features  what is done
    age     number           2  less 31, divided by 8.5; gaps marked
    city    category         2  one-hot: 2 values
    >>> preparation.transform(frame).round(2)
    array([[ 0.  ,  0.  ,  0.  ,  0.5 ],
           [ 1.44,  0.  ,  0.5 ,  0.  ],
           [ 0.  ,  0.71,  0.  ,  0.5 ],
           [-0.35,  0.  ,  0.5 ,  0.  ]], dtype=float32)
    """

    table_: Table
    _encoder: TableEncoder

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] | None = None,
        categorical: Sequence[str] | None = None,
        numeric: Sequence[str] | None = None,
    ) -> None:
        self.columns = columns
        self.drop = drop
        self.categorical = categorical
        self.numeric = numeric

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Decide what each column is, and learn medians, values and frequencies.

        Parameters
        ----------
        X : DataFrame (pandas, polars or Arrow) or array (n, columns)
        y : ignored
        """
        values = columns_of(X)
        if not values or not _length(values):
            what = "sample" if values else "feature"
            raise InputError(f"Found a table with 0 {what}(s) while a minimum of 1 is required.")
        declared = declared_categories(X)
        choice = Choice(self.columns, self.drop, self.categorical, self.numeric, declared)
        table = learn(values, choice)
        encoder = TableEncoder(table)
        _check(encoder.bad(encoder.read(values, _length(values))), values)
        validate_data(self, X, skip_check_array=True)  # remembers column names
        self.table_, self._encoder = table, encoder
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The features of every row: (n, features).

        Parameters
        ----------
        X : as in `fit`
        """
        check_is_fitted(self, "table_")
        values = self._values(X)
        known = [column.name for column in self.table_.columns]
        notes = Notes(
            missing=tuple(c.name for c in self.table_.used if c.name not in values),
            extra=tuple(name for name in values if name not in known),
        )
        if len(notes.missing) == len(self.table_.used):
            raise InputError(f"X must have columns of the fit, got none of {_some(known)}")
        n = _length(values)
        read = self._encoder.read(values, n)
        _check(self._encoder.bad(read), values)
        rows = self._encoder.rows(read, notes)
        for line in notes.lines():
            warnings.warn(line, SelfViewWarning, stacklevel=2)
        return rows

    def _values(self, X: Any) -> Columns:
        """The columns of `X` under the names of the fit."""
        values = columns_of(X)
        by_name = is_frame(X) and hasattr(self, "feature_names_in_")
        if by_name:
            if values and not _length(values):
                raise InputError("Found a table with 0 sample(s) while a minimum of 1 is required.")
            return values
        if len(values) != self.n_features_in_:
            raise InputError(
                f"X has {len(values)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        validate_data(self, X, reset=False, skip_check_array=True)  # warns if only one has names
        names = (column.name for column in self.table_.columns)
        return dict(zip(names, values.values(), strict=True))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Names of the features: `age`, `age missing`, `city=Ulm`, `joined year sin` ...

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self, "table_")
        return np.array(self.table_.features, dtype=object)

    @property
    def decisions_(self) -> Decisions:
        """What each column is taken for and what it becomes."""
        if not hasattr(self, "table_"):
            raise AttributeError("decisions_ is there after fit")
        return decisions_of(self.table_)

    @classmethod
    def from_table(cls, table: Table, *, named: bool = True) -> Self:
        """The fitted transformer of a table that was saved."""
        made = cls()
        made.table_, made._encoder = table, TableEncoder(table)
        made.n_features_in_ = len(table.columns)
        if named:
            made.feature_names_in_ = np.array([c.name for c in table.columns], dtype=object)
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def preparation_for(X: Any) -> TablePreparation | None:
    """A preparation fitted to `X`; None unless it is a data frame with more than plain numbers."""
    if not is_frame(X) or are_plain(columns_of(X)):
        return None
    return TablePreparation().fit(X)


def _length(values: Columns) -> int:
    return len(next(iter(values.values())))


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + " ..." * (len(names) > 8)


def _check(bad: dict[str, NDArray[np.bool_]], values: Columns) -> None:
    """Raise InputError for values that can't be read."""
    for name, rows in bad.items():
        row = int(np.argmax(rows))
        count = int(rows.sum())
        raise InputError(
            f"column {name!r} must hold values as at the fit, got {str(values[name][row])[:40]!r} "
            f"in row {row}"
            + f" and {count - 1:,} more" * (count > 1)
            + "; numeric=[...] takes such values for gaps, categorical=[...] all for categories"
        )
