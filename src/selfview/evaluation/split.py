"""The rows that a probe learns from and those that it is scored on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from selfview.errors import InputError
from selfview.evaluation.inputs import Bools, Ints

HELD_OUT = 0.2
FIXED_SEED = 0  # the same rows for every method, run and seed


@dataclass(frozen=True)
class Split:
    """Row numbers of the two parts; they don't overlap."""

    train: Ints
    test: Ints


def check_split(split: Any, n: int) -> Split:
    """A user's split of n rows, in any of its three forms."""
    if isinstance(split, tuple | list) and len(split) == 2 and not isinstance(split[0], str):
        train, test = _rows(split[0], n, "train"), _rows(split[1], n, "test")
        return _disjoint(train, test)
    parts = np.asarray(split)
    if parts.shape != (n,):
        raise InputError(
            f"split must be (train rows, test rows), a mask of the test rows or n words 'train' "
            f"and 'test'; got shape {parts.shape} for {n} rows"
        )
    if parts.dtype == bool:
        return _disjoint(np.flatnonzero(~parts), np.flatnonzero(parts))
    words = parts.astype(str)
    unknown = sorted(set(words) - {"train", "test"})
    if unknown:
        raise InputError(f"split must say 'train' or 'test' for each row, got {str(unknown[0])!r}")
    return _disjoint(np.flatnonzero(words == "train"), np.flatnonzero(words == "test"))


def _rows(given: Any, n: int, part: str) -> npt.NDArray[Any]:
    rows = np.asarray(given)
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise InputError(f"the {part} mask must have shape ({n},), got {rows.shape}")
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise InputError(f"the {part} rows must be a list of row numbers or a mask")
    if rows.size and (rows.min() < 0 or rows.max() >= n):
        raise InputError(
            f"the {part} rows must be from 0 to {n - 1}, got {rows.min()} to {rows.max()}"
        )
    if np.unique(rows).size != rows.size:
        raise InputError(f"the {part} rows name a row twice")
    return rows


def _disjoint(train: npt.NDArray[Any], test: npt.NDArray[Any]) -> Split:
    if train.size == 0 or test.size == 0:
        raise InputError(
            f"split needs rows in both parts, got {train.size} for training and {test.size} for "
            f"testing"
        )
    both = np.intersect1d(train, test)
    if both.size:
        raise InputError(f"split has {both.size} rows in both parts, row {both[0]} for one")
    return Split(train.astype(np.int64), test.astype(np.int64))


def among_present(split: Split, present: Bools) -> Split:
    """The split in the numbering of the labelled rows, without the unlabelled ones."""
    number = np.cumsum(present) - 1
    parts = [number[rows[present[rows]]] for rows in (split.train, split.test)]
    if not all(part.size for part in parts):
        raise InputError("one part of the split holds no row with a label")
    return Split(parts[0].astype(np.int64), parts[1].astype(np.int64))


def stratified_fifth(codes: Ints) -> Split:
    """A fixed stratified split with a fifth of the rows held out.

    It depends on the labels only: scikit-learn's `train_test_split` with seed 0. A class with one
    member goes to training, and every other class has at least one row in either part.
    """
    from sklearn.model_selection import train_test_split

    counts = np.bincount(codes)
    shared = np.flatnonzero(counts[codes] > 1)
    single = np.flatnonzero(counts[codes] == 1)
    size = max(int(np.ceil(HELD_OUT * shared.size)), int((counts > 1).sum()))
    train, test = train_test_split(
        shared, test_size=size, stratify=codes[shared], random_state=FIXED_SEED
    )
    return Split(np.sort(np.concatenate([train, single])), np.sort(test))


def random_fifth(n: int) -> Bools:
    """A fixed mask of a fifth of the rows, for a continuous target."""
    return np.asarray(np.random.default_rng(FIXED_SEED).permutation(n) < n * HELD_OUT)
