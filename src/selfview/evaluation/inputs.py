"""The arguments of `evaluate`, checked and converted to plain arrays.

`Z` becomes float64 of moderate size, without NaN or infinity; classes are numbered 0, 1, ... in
the order of their sorted labels; rows without a label are gone.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from selfview.errors import InputError
from selfview.labels import NONE, looks_continuous, missing

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
TargetKind = Literal["auto", "classes", "continuous"]


@dataclass(frozen=True)
class Target:
    """Labels or measurements, and which rows have one.

    Exactly one of `codes` and `values` is set; both hold the rows of `present` only.
    """

    present: Bools  # (n,)
    codes: Ints | None = None  # (n_present,), 0 .. n_classes - 1
    values: Floats | None = None  # (n_present, n_outputs)

    @property
    def kind(self) -> Literal["classes", "continuous"]:
        return "classes" if self.codes is not None else "continuous"


def check_matrix(Z: Any, name: str = "Z") -> Floats:
    """`Z` as a finite float64 matrix (n, dim), or an error that names the first bad row."""
    if hasattr(Z, "toarray"):
        Z = Z.toarray()
    try:
        raw = np.asarray(Z)
        if raw.dtype.kind == "c":
            raise TypeError("complex numbers")
        matrix = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must be a matrix of real numbers: {error}") from error
    if matrix.ndim == 1:
        raise InputError(
            f"{name} must have rows and columns, got one axis of {matrix.size}; "
            f"one feature is {name}.reshape(-1, 1)"
        )
    if matrix.ndim != 2:
        raise InputError(
            f"{name} must have two axes (rows, features), got shape {matrix.shape}; "
            f"flatten each row first"
        )
    if 0 in matrix.shape:
        raise InputError(f"{name} is empty: its shape is {matrix.shape}")
    finite = np.isfinite(matrix)
    if not finite.all():
        rows = np.flatnonzero(~finite.all(axis=1))
        column = int(np.flatnonzero(~finite[rows[0]])[0])
        raise InputError(
            f"{name} must be finite, but row {rows[0]} holds {matrix[rows[0], column]} in column "
            f"{column} ({rows.size} of {len(matrix)} rows are not finite)"
        )
    return _moderate(matrix)


def _moderate(matrix: Floats) -> Floats:
    """The matrix divided by a power of two, if its squares would leave the range of a float64.

    All measures are blind to the common scale of the features, and a power of two is exact.
    """
    largest = float(np.abs(matrix).max())
    if largest == 0 or 1e-100 < largest < 1e100:
        return matrix
    return np.ldexp(matrix, -int(np.frexp(largest)[1]))


def careful_mean(matrix: Floats) -> Floats:
    """Mean of each column in two passes: exact for a constant column, however large."""
    mean = matrix.mean(axis=0)
    return np.asarray(mean + (matrix - mean).mean(axis=0))


def check_target(y: Any, n: int, kind: TargetKind = "auto") -> Target:
    """Class codes or continuous values out of `y`, and the mask of the rows that have one."""
    if kind not in ("auto", "classes", "continuous"):
        raise InputError(f"target must be 'auto', 'classes' or 'continuous', got {kind!r}")
    try:
        raw = np.asarray(y)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"y must be an array of labels or numbers: {error}") from error
    if raw.ndim == 0 or len(raw) != n:
        found = "a single value" if raw.ndim == 0 else f"{len(raw)} rows"
        raise InputError(f"y must have one row for each of the {n} rows of Z, got {found}")
    if raw.ndim == 2 and raw.shape[1] == 1:
        raw = raw[:, 0]
    if raw.ndim > 2 or 0 in raw.shape:
        raise InputError(f"y must be (n,) or (n, outputs), got shape {raw.shape}")
    if kind == "classes" and raw.ndim == 2:
        raise InputError("class labels must be one for each row; for one-hot rows use y.argmax(1)")
    if kind == "continuous" or (kind == "auto" and looks_continuous(raw)):
        return _continuous(raw)
    return _classes(raw)


def _continuous(raw: npt.NDArray[Any]) -> Target:
    try:
        values = np.array(raw, dtype=np.float64).reshape(len(raw), -1)
    except (TypeError, ValueError) as error:
        raise InputError(f"a continuous y must hold numbers: {error}") from error
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values).any(axis=1))[0])
        raise InputError(f"a continuous y must not be infinite, but row {row} is")
    present = np.asarray(~np.isnan(values).any(axis=1))
    values = values[present]
    if len(values) < 2 or not np.ptp(values, axis=0).any():
        raise InputError("a continuous y needs at least two rows and must not be constant")
    return Target(present, values=values)


def _classes(raw: npt.NDArray[Any]) -> Target:
    if raw.dtype.kind == "f" and np.isinf(raw).any():
        row = int(np.flatnonzero(np.isinf(raw))[0])
        raise InputError(f"labels must not be infinite, but row {row} is")
    present = ~missing(raw)
    labels = raw[present]
    if labels.dtype == object and len({type(label) for label in labels}) > 1:
        labels = labels.astype(str)  # 1 and "one" have no order of their own
    try:
        names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    except TypeError as error:
        raise InputError(f"labels must be numbers or strings: {error}") from error
    if len(names) < 2:
        raise InputError(
            f"y must hold at least two classes, got {len(names)} in {len(labels)} labelled rows "
            f"({NONE}, NaN, None and '' mean 'no label')"
        )
    if counts.max() < 2:
        raise InputError(
            f"every one of the {len(names)} labels occurs once, so nothing can be held out; "
            f"if y is a measurement, pass target='continuous' (evaluate --target continuous)"
        )
    return Target(present, codes=codes.reshape(-1).astype(np.int64))


def check_seed(random_state: Any) -> int:
    """The seed as an int; None draws a fresh one."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, (bool, np.bool_)) or not isinstance(
        random_state, (int, np.integer)
    ):
        raise InputError(f"random_state must be an integer or None, got {random_state!r}")
    if not 0 <= random_state < 2**32:
        raise InputError(f"random_state must be from 0 to 2**32 - 1, got {random_state}")
    return int(random_state)
