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
from selfview.tables.frames import columns_of, is_frame


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
        if X.is_complex():
            _check_dtype(np.dtype(complex))
        _check_ndim(X.ndim)
        return _not_empty(TensorRows(X))
    if sp.issparse(X):
        _check_dtype(getattr(X, "dtype", None))
        return _not_empty(SparseRows(X))
    return _not_empty(ArrayRows(_as_array(X)))


def _as_array(X: Any) -> NDArray[Any]:
    if is_frame(X):
        X = _numbers_of(X)
    try:
        # A memory map stays one: np.asarray would drop the class, not the mapping.
        array = X if isinstance(X, np.ndarray) else np.asarray(X)
    except ValueError as error:
        raise InputError(
            "X is not a rectangular array of numbers: its rows differ in length"
        ) from error
    if np.ma.is_masked(array):
        raise InputError("X has masked entries: fill them first, X.filled(...)")
    _check_dtype(array.dtype)
    _check_ndim(array.ndim)
    return array


def _numbers_of(frame: Any) -> NDArray[np.float64]:
    """The numbers of a data frame, NaN where it has none."""
    columns = columns_of(frame)
    text = [name for name, values in columns.items() if values.dtype.kind not in "biuf"]
    if text:
        raise InputError(
            f"column{'s' * (len(text) > 1)} {', '.join(text[:5])} of the data frame "
            f"{'is' if len(text) == 1 else 'are'} not numeric: drop or encode "
            f"{'it' if len(text) == 1 else 'them'} first"
        )
    array = np.empty((len(frame), len(columns)))
    for place, values in enumerate(columns.values()):
        array[:, place] = values
    return array


def _check_dtype(dtype: Any) -> None:
    kind = getattr(dtype, "kind", "O")
    if kind == "c":
        raise InputError("Complex data not supported: pass magnitudes, or real and imaginary parts")
    if kind not in "fiub":
        raise InputError(
            f"X must hold numbers, got an array of dtype {dtype}. Convert it with "
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
