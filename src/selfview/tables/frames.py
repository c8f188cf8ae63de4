"""Data frames of pandas, polars and Arrow, and arrays, as columns of NumPy arrays by name.

| dtype | what | a gap |
|---|---|---|
| bool, int, float64 | numbers | NaN |
| datetime64[us] | moments, in UTC if they have a time zone | NaT |
| object | texts | None |
| void | lists and structures, of which nothing but their number is kept | |
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from selfview.errors import InputError

Values: TypeAlias = NDArray[Any]
Columns: TypeAlias = Mapping[str, Values]

_MOMENT, _SPAN = "datetime64[us]", "timedelta64[us]"


def is_frame(X: Any) -> bool:
    """Whether `X` is a data frame of pandas, polars or Arrow."""
    if type(X).__name__ == "LazyFrame":
        raise InputError("a LazyFrame holds no rows yet: pass X.collect()")
    return _is_arrow(X) or (hasattr(X, "dtypes") and hasattr(X, "columns"))


def columns_of(X: Any) -> dict[str, Values]:
    """The columns of a data frame, or of an array (n, columns), whose columns are x0, x1 ..."""
    if not is_frame(X):
        return _of_array(X)
    if _is_arrow(X):
        names, read, columns = X.column_names, _of_arrow, X.columns
    elif hasattr(X, "iloc"):
        names, read, columns = X.columns, _of_pandas, (X.iloc[:, i] for i in range(X.shape[1]))
    else:
        names, read, columns = X.columns, _of_polars, X.get_columns()
    texts = [str(name) for name in names]
    doubles = sorted({name for name in texts if texts.count(name) > 1})
    if doubles:
        raise InputError(f"the data frame has more than one column called {doubles[0]!r}")
    found = {name: read(column) for name, column in zip(texts, columns, strict=True)}
    complex_ = [name for name, values in found.items() if values.dtype.kind == "c"]
    if complex_:
        raise InputError(
            f"Complex data not supported, got column {complex_[0]!r}: pass magnitudes, or real and "
            "imaginary parts"
        )
    return found


def declared_categories(X: Any) -> list[str]:
    """The columns of a data frame whose data type says that they hold categories."""
    if not is_frame(X):
        return []
    if _is_arrow(X):
        from pyarrow import types

        return [str(field.name) for field in X.schema if types.is_dictionary(field.type)]
    kinds = ("category", "Categorical", "Enum")
    pairs = zip(X.columns, X.dtypes, strict=True)
    return [str(name) for name, dtype in pairs if str(dtype).startswith(kinds)]


def objects_of(values: Sequence[Any] | Values) -> Values:
    """Any values as numbers if all are, else as texts."""
    if all(isinstance(v, int | float | np.number | None) for v in values):
        found = np.array([np.nan if v is None else v for v in values])
        if found.dtype != object:  # as whole numbers beyond 64 bits are
            return found
    return texts_of(values)


def texts_of(values: Iterable[Any]) -> Values:
    """Any values as texts, None where there is none; nothing of lists and structures."""
    texts = [_text(value) for value in values]
    if any(text is Ellipsis for text in texts):
        return np.zeros(len(texts), "V1")
    found = np.empty(len(texts), object)
    found[:] = texts
    return found


def _text(value: Any) -> Any:
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return ... if isinstance(value, list | tuple | dict | set | np.ndarray) else str(value)


def _is_arrow(X: Any) -> bool:
    return hasattr(X, "column_names") and hasattr(X, "schema")


def _of_array(X: Any) -> dict[str, Values]:
    if issparse(X):
        raise TypeError("Sparse data was passed, but dense data is required: pass X.toarray()")
    array = np.asarray(X)
    if array.ndim != 2:
        raise InputError(
            f"X must have two dimensions (rows and columns), got {array.ndim}. Reshape your data: "
            "X.reshape(-1, 1) if it has one feature, X.reshape(1, -1) if it is one row"
        )
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: pass magnitudes, or real and imaginary parts")
    if array.shape[0] == 0 or array.shape[1] == 0:
        what = "sample" if array.shape[0] == 0 else "feature"
        raise InputError(
            f"Found array with 0 {what}(s) (shape={array.shape}) while a minimum of 1 is required."
        )
    typed = array.dtype.kind in "biufM"
    return {f"x{i}": column if typed else objects_of(column) for i, column in enumerate(array.T)}


def _of_pandas(column: Any) -> Values:
    kind = getattr(column.dtype, "kind", "O")
    gaps = column.isna().to_numpy()
    if kind in "iub" and not gaps.any():
        return np.asarray(column.to_numpy(dtype=bool if kind == "b" else np.int64))
    if kind in "iuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind == "c":
        return np.asarray(column.to_numpy())
    if kind == "M":
        if getattr(column.dt, "tz", None) is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return np.asarray(column.to_numpy(dtype=_MOMENT))
    if kind == "m":
        return _seconds(column.to_numpy(dtype=_SPAN))
    values = column.to_numpy(dtype=object)
    return texts_of([None if gap else v for v, gap in zip(values, gaps, strict=True)])


def _of_polars(column: Any) -> Values:
    kind, name = column.dtype, str(column.dtype)
    if kind.is_integer() and not column.null_count() and "128" not in name:
        return np.asarray(column.to_numpy())
    if kind.is_numeric():
        return np.asarray(column.cast(float).to_numpy())
    if name == "Boolean" and not column.null_count():
        return np.asarray(column.to_numpy())
    if name == "Date" or name.startswith("Datetime"):
        if getattr(kind, "time_zone", None) is not None:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return np.asarray(column.to_numpy()).astype(_MOMENT)
    if name.startswith("Duration"):
        return _seconds(np.asarray(column.to_numpy()))
    return texts_of(column.to_list())


def _of_arrow(column: Any) -> Values:
    from pyarrow import types

    kind = column.type
    if types.is_integer(kind) and not column.null_count:
        return np.asarray(column)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return np.asarray(column.cast("float64"))
    if types.is_boolean(kind) and not column.null_count:
        return np.asarray(column)
    if types.is_timestamp(kind) or types.is_date(kind):
        return np.asarray(column.cast("timestamp[us]", safe=False)).astype(_MOMENT)
    if types.is_duration(kind):
        return _seconds(np.asarray(column))
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_nested(kind):
        return np.zeros(len(column), "V1")
    return texts_of(column.to_pylist())


def _seconds(spans: Values) -> Values:
    whole = spans.astype(_SPAN)
    return np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / 1e6)
