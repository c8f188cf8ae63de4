"""The data's own columns that fit on a page: a table's values, or the ions of an image."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from selfview.data import Dataset
from selfview.data.anndata_files import AnnDataPreparation
from selfview.data.tables import TableFilePreparation
from selfview.report.contents import axis_of, is_image, scale_of

BUDGET = 2_400_000  # bytes before compression, at 10,000 rows
PER_ROW = 80  # bytes, where there are so many rows that the budget would leave too few columns
MOST_PLAIN = 64  # columns of an array without names
MOST = 512  # entries of a list that people choose from


@dataclass(frozen=True)
class Features:
    """Columns (m, n) in whole numbers, with the values of their ends, and what was left out."""

    names: tuple[str, ...]
    codes: NDArray[Any]
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    positions: NDArray[np.float32]  # m/z of an ion
    notes: tuple[str, ...] = ()


def features_of(dataset: Dataset, clusters: NDArray[Any]) -> Features | None:
    """The columns worth a colour: all that fit, or those that differ most between clusters."""
    dim = int(np.prod(dataset.shape))
    ions = dataset.coordinates is not None
    how = dataset.preparation
    table = isinstance(how, TableFilePreparation)
    variables = how.variables if isinstance(how, AnnDataPreparation) else ()
    if (issparse(dataset.X) and not variables) or is_image(dataset):
        return None
    if not (ions or table or variables or dim <= MOST_PLAIN):
        return None
    dtype = np.uint8 if ions else np.uint16
    room = max(BUDGET, PER_ROW * len(dataset)) // (len(dataset) * np.dtype(dtype).itemsize)
    room = min(room, MOST)
    X: Any = dataset.X if issparse(dataset.X) else np.asarray(dataset.X).reshape(-1, dim)
    chosen = np.arange(dim) if dim <= room else _most_different(X, clusters, max(1, room))
    axis, title = axis_of(dataset)
    picked = X[:, chosen]
    dense = picked.toarray() if hasattr(picked, "toarray") else picked
    values = dense.T.astype(np.float64) * scale_of(dataset)[chosen, None]
    low, high = values.min(axis=1), values.max(axis=1)
    span = np.where(high > low, high - low, 1)
    codes = np.rint((values - low[:, None]) / span[:, None] * np.iinfo(dtype).max).astype(dtype)
    every = dataset.feature_names
    names = tuple(every[i] for i in chosen)
    notes: tuple[str, ...] = ()
    if len(chosen) < dim:
        what = "ions" if title == "m/z" else "columns"
        notes = (f"{len(chosen):,} of the {dim:,} {what} are kept: those that differ most "
                 "between clusters.",)  # fmt: skip
    return Features(
        names, codes, low.astype(np.float32), (low + span).astype(np.float32),
        axis[chosen].astype(np.float32), notes,
    )  # fmt: skip


def _most_different(X: Any, clusters: NDArray[Any], count: int) -> NDArray[np.intp]:
    """The columns that differ most between clusters."""
    mean = _mean(X)
    if hasattr(X, "multiply"):  # sparse
        total = np.maximum(_mean(X.multiply(X)) - mean**2, 0)
    else:
        total = X.var(axis=0, dtype=np.float64)
    between = np.zeros(X.shape[1])
    for code in np.unique(clusters):
        group = X[clusters == code]
        between += group.shape[0] / X.shape[0] * (_mean(group) - mean) ** 2
    # Variance itself, not only its share: a column of noise may differ between clusters by chance.
    merit = between * np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    return np.sort(np.argsort(-merit, kind="stable")[:count])


def _mean(X: Any) -> NDArray[np.float64]:
    """The mean of each column, sparse or not."""
    return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
