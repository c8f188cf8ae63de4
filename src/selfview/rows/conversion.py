"""What users pass as rows: arrays, memory maps, sparse matrices, tensors, data frames, Datasets."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from selfview.errors import InputError
from selfview.rows.base import Rows
from selfview.rows.in_memory import ArrayRows, DatasetRows, SparseRows, TensorRows


def as_rows(X: Any) -> Rows:
    """`X`, whatever it is, as `Rows`.

    Parameters
    ----------
    X : ndarray, memmap, sparse matrix, Tensor, DataFrame (pandas, polars, Arrow) or torch Dataset
        At least two-dimensional, of a real number type.

    Raises
    ------
    InputError
        If `X` isn't numeric, has too few dimensions, or is empty.

    Examples
    --------
    >>> import numpy as np
    >>> as_rows(np.eye(3)).take(np.array([2])).tolist()
    [[0.0, 0.0, 1.0]]
    """
    if isinstance(X, Rows):
        return X
    if isinstance(X, torch.utils.data.Dataset):
        if isinstance(X, torch.utils.data.TensorDataset):
            return as_rows(X.tensors[0])
        if not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
            raise InputError(
                "an iterable Dataset has no row numbers to shuffle: pass a Dataset with __len__ "
                "and __getitem__"
            )
        return _not_empty(DatasetRows(X))
    if isinstance(X, torch.utils.data.DataLoader):
        raise InputError("a DataLoader makes batches of its own: pass its dataset, loader.dataset")
    if isinstance(X, Tensor):
        if X.layout != torch.strided:
            X = X.detach().cpu().to_sparse_coo().coalesce()  # type: ignore[no-untyped-call]
            at, shape = X.indices().numpy(), tuple(X.shape)
            return as_rows(sp.coo_array((X.values().numpy(), tuple(at)), shape=shape).tocsr())
        _check_dtype("complex" if X.is_complex() else "number", "")
        _check_ndim(X.ndim)
        return _not_empty(TensorRows(X))
    if sp.issparse(X):
        dtype = getattr(X, "dtype", None)
        _check_dtype(_kind(dtype), str(dtype))
        return _not_empty(SparseRows(X))
    return _not_empty(ArrayRows(_as_array(X)))


def _as_array(X: Any) -> NDArray[Any]:
    columns = _columns(X)
    if columns is not None:
        text = [name for name, kind in columns if kind == "text"]
        if text:
            raise InputError(
                f"column{'s' * (len(text) > 1)} {', '.join(text[:5])} of the data frame "
                f"{'is' if len(text) == 1 else 'are'} not numeric: drop or encode "
                f"{'it' if len(text) == 1 else 'them'} first"
            )
        X = _frame_values(X)
    try:
        # A memory map stays one: np.asarray would drop the class, not the mapping.
        array = X if isinstance(X, np.ndarray) else np.asarray(X)
    except ValueError as error:
        raise InputError(
            "X is not a rectangular array of numbers: its rows differ in length"
        ) from error
    if np.ma.is_masked(array):
        raise InputError("X has masked entries: fill them first, X.filled(...)")
    _check_dtype(_kind(array.dtype), str(array.dtype))
    _check_ndim(array.ndim)
    return array


def _columns(X: Any) -> list[tuple[str, str]] | None:
    """Names and kinds of a data frame's columns: of pandas, polars or Arrow; None of others."""
    if type(X).__name__ == "LazyFrame":
        raise InputError("a LazyFrame holds no rows yet: pass X.collect()")
    if hasattr(X, "column_names") and hasattr(X, "schema"):  # Arrow
        types = [np.dtype(t.to_pandas_dtype()) for t in X.schema.types]
        return [(str(c), _kind(t)) for c, t in zip(X.column_names, types, strict=True)]
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        return [(str(c), _kind(t)) for c, t in zip(X.columns, X.dtypes, strict=True)]
    return None


def _frame_values(X: Any) -> NDArray[Any]:
    """The numbers of a data frame, NaN where it has none."""
    if hasattr(X, "column_names"):  # Arrow
        return np.array([column.cast("float64").to_numpy() for column in X.columns]).T
    if hasattr(X, "cast"):  # polars
        return np.asarray(X.cast(float).to_numpy())
    return np.asarray(X.to_numpy(dtype=np.float64, na_value=np.nan))


def _kind(dtype: Any) -> str:
    if hasattr(dtype, "is_numeric"):  # polars
        return "number" if dtype.is_numeric() or str(dtype) == "Boolean" else "text"
    kind = getattr(dtype, "kind", "O")
    return {"c": "complex"}.get(kind, "number" if kind in "fiub" else "text")


def _check_dtype(kind: str, name: str) -> None:
    if kind == "complex":
        raise InputError("Complex data not supported: pass magnitudes, or real and imaginary parts")
    if kind == "text":
        raise InputError(
            f"X must hold numbers, got an array of dtype {name}. Convert it with "
            "X.astype(float); text becomes numbers with "
            "sklearn.feature_extraction.text.TfidfVectorizer"
        )


def _check_ndim(ndim: int) -> None:
    if ndim < 2:
        raise InputError(
            f"X must have at least two dimensions (rows and features), got {ndim}. Reshape your "
            "data: X.reshape(-1, 1) if it has one feature, X.reshape(1, -1) if it is one row"
        )


def _not_empty(rows: Rows) -> Rows:
    if rows.n == 0:
        raise InputError(f"X is empty: found array with 0 sample(s) (shape={(0, *rows.shape)})")
    if rows.n_features == 0:
        raise InputError(
            f"0 feature(s) (shape={(rows.n, *rows.shape)}) while a minimum of 1 is required."
        )
    return rows


def expect_shape(rows: Rows, shape: tuple[int, ...], name: str) -> None:
    """Raise unless the rows are of the `shape` that the estimator `name` was fitted on."""
    if rows.shape == shape:
        return
    if len(rows.shape) == len(shape) == 1:
        raise InputError(
            f"X has {rows.n_features} features, but {name} is expecting {shape[0]} features as "
            "input"
        )
    raise InputError(
        f"X has rows of shape {rows.shape}, but {name} was fitted on rows of shape {shape}"
    )
