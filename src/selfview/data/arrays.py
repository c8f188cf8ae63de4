"""Rows of array files; labels, ids and groups from other arrays of the same file."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from selfview.data import stores, tensors
from selfview.data.array_files import chosen_array, npz_array, npz_names, read_mtx, read_npz
from selfview.data.cache import map_blocks
from selfview.data.dataset import Array, Dataset, Options, Rows
from selfview.data.guard import regular_file, report_bad_rows
from selfview.data.labels import read_labels
from selfview.data.npy import blocks_of, read_npy
from selfview.data.table_files import as_text
from selfview.errors import InputError


@dataclass(frozen=True)
class NamedArrays:
    """How a kind of file that holds arrays by name is read."""

    axes: Callable[[Path], dict[str, int]]  # the number of axes of each array
    rows: Callable[[Path, str], Rows]
    values: Callable[[Path, str], Array]  # numbers or texts, one for each row


_STORE = NamedArrays(stores.stored_axes, stores.stored_rows, stores.stored_values)
NAMED = {
    ".npz": NamedArrays(
        lambda path: dict.fromkeys(npz_names(path), 2),
        lambda path, name: npz_array(path, name, mapped=True),
        lambda path, name: npz_array(path, name, text=True),
    ),
    ".h5": _STORE,
    ".hdf5": _STORE,
    ".zarr": _STORE,
    ".pt": NamedArrays(tensors.pt_axes, tensors.pt_array, tensors.pt_array),
    ".safetensors": NamedArrays(
        tensors.safetensors_axes, tensors.safetensors_array, tensors.safetensors_array
    ),
}
SUFFIXES = (".npy", ".mtx", *NAMED)


def is_array_file(path: Path) -> bool:
    """Whether the path is that of an array file; an AnnData store is more than that."""
    return path.suffix.lower() in SUFFIXES and not stores.is_anndata(path)


def read_array_file(path: Path, options: Options, *, images: bool = True) -> Dataset:
    """The rows of an array file, without a preparation.

    With `images`, 3 and 4 axes are images: they get a channel axis, and bytes are scaled to [0, 1].
    """
    suffix = path.suffix.lower()
    aside: dict[str, Array] = {}
    if suffix in NAMED:
        path = path if path.is_dir() else regular_file(path)
        rows = _named_rows(path, NAMED[suffix], options)
        aside = _arrays_aside(path, NAMED[suffix], rows.shape[0], options)
    elif options.array or options.label or options.id or options.groups:
        raise InputError(
            f"{path} has no named arrays: array, label, id and groups need one of "
            f"{', '.join(NAMED)}"
        )
    else:
        rows = read_npy(path) if suffix == ".npy" else read_mtx(path)
        if isinstance(rows, np.memmap) and not rows.flags.c_contiguous:
            rows = map_blocks(rows, "by row", rows.dtype, lambda _, block: block)
    return dataset_of_array(path, rows, options.skip_bad, images=images, **aside)


def _named_rows(path: Path, file: NamedArrays, options: Options) -> Rows:
    aside = (options.label, options.id, options.groups)
    if path.suffix.lower() == ".npz":  # its arrays may be the parts of a sparse matrix
        return read_npz(path, options.array, aside)
    return file.rows(path, chosen_array(path, file.axes(path), options.array, aside))


def _arrays_aside(path: Path, file: NamedArrays, n: int, options: Options) -> dict[str, Array]:
    """The arrays of labels, ids and groups, as far as they are asked for."""
    found = {}
    for option, key in (("label", "labels"), ("id", "ids"), ("groups", "groups")):
        name = getattr(options, option)
        if name is None:
            continue
        held = file.axes(path)
        if name not in held:
            raise InputError(f"{path} has no array {name!r} for {option}, but {', '.join(held)}")
        found[key] = file.values(path, name)
        if found[key].shape != (n,):
            raise InputError(f"{path}: {name!r} has shape {found[key].shape}, not a value a row")
    return found


def dataset_of_array(
    path: Path, rows: Rows, skip_bad: bool, *, images: bool = True, labels: Array | None = None,
    groups: Array | None = None, **beside: Any,
) -> Dataset:  # fmt: skip
    """A `Dataset` of an array's rows, all of them finite, with what stands `beside` them."""
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
    dataset = Dataset(name=path.name, X=rows, groups=groups, source=f"path {path}", **beside)
    good = _finite(rows, skip_bad)
    if good is not None:
        bad = tuple(f"row {i} holds NaN or infinity" for i in np.flatnonzero(~good))
        messages = report_bad_rows(path, bad, len(good), skip_bad)
        dataset = replace(dataset, X=np.empty((len(good), 0))).take(np.flatnonzero(good))
        dataset = replace(dataset, X=_chosen(rows, good), skipped=bad, messages=messages)
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
