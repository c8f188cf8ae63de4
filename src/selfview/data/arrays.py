"""Rows of array files (.npy, .npz, .mtx); labels, ids and groups from other arrays of an .npz."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from selfview.data.array_files import npz_array, npz_names, read_mtx, read_npz
from selfview.data.cache import map_blocks
from selfview.data.dataset import Array, Dataset, Options, Rows
from selfview.data.guard import regular_file, report_bad_rows
from selfview.data.labels import read_labels
from selfview.data.npy import blocks_of, read_npy
from selfview.data.table_files import as_text
from selfview.errors import InputError

SUFFIXES = (".npy", ".npz", ".mtx")


def read_array_file(path: Path, options: Options, *, images: bool = True) -> Dataset:
    """The rows of an array file, without a preparation.

    With `images`, 3 and 4 axes are images: they get a channel axis, and bytes are scaled to [0, 1].
    """
    suffix = path.suffix.lower()
    aside: dict[str, Array] = {}
    if suffix == ".npz":
        path = regular_file(path)
        rows = read_npz(path, options.array, (options.label, options.id, options.groups))
        aside = _arrays_aside(path, rows.shape[0], options)
    elif options.array or options.label or options.id or options.groups:
        raise InputError(
            f"{path} has no named arrays: array, label, id and groups need an .npz file"
        )
    else:
        rows = read_npy(path) if suffix == ".npy" else read_mtx(path)
        if isinstance(rows, np.memmap) and not rows.flags.c_contiguous:
            rows = map_blocks(rows, "by row", rows.dtype, lambda _, block: block)
    return dataset_of_array(path, rows, options.skip_bad, images=images, **aside)


def _arrays_aside(path: Path, n: int, options: Options) -> dict[str, Array]:
    """The arrays of labels, ids and groups of an .npz file, as far as they are asked for."""
    found = {}
    for option, key in (("label", "labels"), ("id", "ids"), ("groups", "groups")):
        name = getattr(options, option)
        if name is None:
            continue
        if name not in npz_names(path):
            held = ", ".join(npz_names(path))
            raise InputError(f"{path} has no array {name!r} for {option}, but {held}")
        found[key] = npz_array(path, name, text=True)
        if found[key].shape != (n,):
            raise InputError(f"{path}: {name!r} has shape {found[key].shape}, not a value a row")
    return found


def dataset_of_array(
    path: Path, rows: Rows, skip_bad: bool, *, images: bool = True,
    labels: Array | None = None, ids: Array | None = None, groups: Array | None = None,
) -> Dataset:  # fmt: skip
    """A `Dataset` of an array's rows, all of them finite."""
    if rows.ndim not in (2, 3, 4) and (images or rows.ndim < 2):
        raise InputError(f"{path} has {rows.ndim} axes; rows need 2, images 3 or 4")
    if 0 in rows.shape:
        raise InputError(f"{path} is empty: its shape is {rows.shape}")
    if images and rows.ndim > 2:
        if rows.ndim == 4 and rows.dtype == np.uint8 and rows.shape[3] <= 4 < rows.shape[1]:
            raise InputError(
                f"{path} has images of shape {tuple(rows.shape[1:])}, colours last; save them as "
                "(n, colours, height, width) with .transpose(0, 3, 1, 2)"
            )
        rows = as_images(rows)
    if not isinstance(rows if isinstance(rows, np.ndarray) else rows.data, np.memmap):
        with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, a bad row
            rows = rows.astype(np.float32, copy=False)
    if groups is not None:
        groups = np.array([as_text(group) for group in groups.tolist()])
    dataset = Dataset(name=path.name, X=rows, ids=ids, groups=groups, source=f"path {path}")
    good = _finite(rows, skip_bad)
    if good is not None:
        bad = tuple(f"row {i} holds NaN or infinity" for i in np.flatnonzero(~good))
        dataset = replace(
            dataset, X=_chosen(rows, good), ids=None if ids is None else ids[good],
            groups=None if groups is None else groups[good], skipped=bad,
            messages=report_bad_rows(path, bad, len(good), skip_bad),
        )  # fmt: skip
        labels = None if labels is None else labels[good]
    if labels is None:
        return dataset
    y, classes = read_labels(list(map(as_text, labels.tolist())))
    return replace(dataset, y=y, classes=classes)


def _finite(rows: Rows, look: bool) -> Array | None:
    """Which rows hold no NaN or infinity; None if all do.

    A mapped array is read for this only with `look`: `fit` checks all numbers anyway, and names
    the first that isn't finite.
    """
    values: Any = rows if isinstance(rows, np.ndarray) else rows.data
    if (isinstance(rows, np.memmap) and not look) or not np.issubdtype(values.dtype, np.floating):
        return None
    good = np.ones(rows.shape[0], dtype=bool)
    for start, block in blocks_of(values):
        with np.errstate(over="ignore"):
            finite = np.isfinite(block.astype(np.float32, copy=False))
        if isinstance(rows, np.ndarray):
            good[start : start + len(block)] = finite.reshape(len(block), -1).all(axis=1)
        else:
            wrong = start + np.flatnonzero(~finite)
            good[np.searchsorted(rows.indptr, wrong, side="right") - 1] = False
    return None if good.all() else good


def _chosen(rows: Rows, good: Array) -> Rows:
    if not isinstance(rows, np.memmap):
        return rows[good]
    return map_blocks(
        rows, "finite", rows.dtype, lambda start, block: block[good[start : start + len(block)]]
    )


def as_images(rows: Rows) -> Rows:
    """Rows (n, h, w) or (n, c, h, w) as (n, c, h, w); bytes are scaled to [0, 1]."""
    if not isinstance(rows, np.ndarray):
        return rows
    if rows.ndim == 3:
        rows = rows[:, None]
    if rows.dtype != np.uint8 or rows.ndim != 4:
        return rows
    if isinstance(rows, np.memmap):  # larger than memory may hold
        return map_blocks(rows, "scaled", np.float32, lambda _, block: _scaled(block))
    return _scaled(rows)


def _scaled(pixels: Array) -> Array:
    return np.divide(pixels, np.float32(255), dtype=np.float32)
