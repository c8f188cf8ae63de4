"""Array files as datasets: .npy, .npz (dense or CSR) and .mtx, mapped if they are large."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from selfview.data.dataset import Array, Dataset, Rows
from selfview.data.guard import regular_file, settle_bad_rows
from selfview.data.labels import read_labels
from selfview.data.mapped import blocks_of, blockwise, chosen_rows
from selfview.data.matrix_market import read_mtx
from selfview.data.npy import read_npy
from selfview.data.npz import npz_array, npz_names, read_npz
from selfview.data.preparation import Options, Preparation
from selfview.data.table_files import as_text
from selfview.errors import InputError

SUFFIXES = (".npy", ".npz", ".mtx")


@dataclass(frozen=True, eq=False)
class ArrayPreparation(Preparation):
    """Rows taken as they are; only their shape is settled."""

    row_shape: tuple[int, ...]

    kind: ClassVar[str] = "array"
    suffixes: ClassVar[str] = ".npy, .npz or .mtx"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.row_shape

    def _read_files(self, path: Path, _options: Options) -> Dataset:
        raise InputError(f"{path}: this model was fitted on an array, give {self.suffixes}")


def fit_array(path: Path, options: Options) -> Dataset:
    """Rows of an array file."""
    return read_array_file(path, options)


def read_array_file(path: Path, options: Options, *, as_they_are: bool = False) -> Dataset:
    """Rows of an array file, with ``label`` and ``id`` from arrays of that name in an .npz."""
    suffix = path.suffix.lower()
    if suffix != ".npz":
        rows: Rows = read_npy(path) if suffix == ".npy" else read_mtx(path)
        if isinstance(rows, np.memmap) and not rows.flags.c_contiguous:
            rows = blockwise(rows, "by-row", rows.dtype, np.asarray)  # stored column by column
        if options.array or options.label or options.id:
            raise InputError(f"{path} has no named arrays: array, label and id need an .npz file")
        return dataset_of_array(path, rows, options, as_they_are=as_they_are)
    path = regular_file(path)
    named = npz_names(path)
    rows = read_npz(path, options.array, reserved=(options.label, options.id))
    sides = {}
    for option, name in (("label", options.label), ("id", options.id)):
        if name is not None:
            if name not in named:
                raise InputError(
                    f"{path} has no array {name!r} for {option}, but {', '.join(named)}"
                )
            sides[option] = npz_array(path, name, text=True)
            if sides[option].shape != (rows.shape[0],):
                raise InputError(
                    f"{path}: {name!r} has shape {sides[option].shape}, not a value a row"
                )
    labels, ids = sides.get("label"), sides.get("id")
    return dataset_of_array(path, rows, options, labels, ids, as_they_are=as_they_are)


def dataset_of_array(
    path: Path,
    rows: Rows,
    options: Options,
    labels: Array | None = None,
    ids: Array | None = None,
    *,
    as_they_are: bool = False,
) -> Dataset:
    """A `Dataset` of an array's rows.

    Images get their channel axis and bytes are scaled, unless rows are taken as they are.
    """
    from selfview.data.images import ImagePreparation, as_images

    if rows.ndim not in (2, 3, 4) and not (as_they_are and rows.ndim > 1):
        raise InputError(f"{path} has {rows.ndim} axes; rows need 2, images 3 or 4")
    if 0 in rows.shape:
        raise InputError(f"{path} is empty: its shape is {rows.shape}")
    pictures = rows.ndim > 2 and not as_they_are
    if (
        pictures
        and rows.ndim == 4
        and rows.dtype == np.uint8
        and rows.shape[3] <= 4 < rows.shape[1]
    ):
        raise InputError(
            f"{path} has images of shape {tuple(rows.shape[1:])}, colours last; save them as "
            "(n, colours, height, width) with .transpose(0, 3, 1, 2)"
        )
    rows = as_images(rows) if pictures else rows
    if not _on_disk(rows):
        with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite, a bad row
            rows = rows.astype(np.float32, copy=False)
    rows, kept, bad, messages = _finite(path, rows, options.skip_bad)
    shape = tuple(int(d) for d in rows.shape[1:])
    preparation: Preparation = (
        ImagePreparation(*shape) if pictures and len(shape) == 3 else ArrayPreparation(shape)
    )
    y, classes = (
        (None, ()) if labels is None else read_labels(list(map(as_text, labels[kept].tolist())))
    )
    return Dataset(
        name=path.name, X=rows, y=y, classes=classes, ids=None if ids is None else ids[kept],
        source=f"path {path}", preparation=preparation, skipped=bad, messages=messages,
    )  # fmt: skip


def _on_disk(rows: Rows) -> bool:
    """Whether the rows are mapped; they are made float32 when they are taken."""
    return isinstance(rows if isinstance(rows, np.ndarray) else rows.data, np.memmap)


def _finite(
    path: Path, rows: Rows, skip_bad: bool
) -> tuple[Rows, Any, tuple[str, ...], tuple[str, ...]]:
    """Rows without NaN or infinity.

    A mapped array is gone through only if such rows are to be left out: `fit` looks at all numbers
    anyway, and names the first that isn't finite.
    """
    values: Any = rows if isinstance(rows, np.ndarray) else rows.data
    mapped = isinstance(rows, np.memmap)
    if (mapped and not skip_bad) or not np.issubdtype(values.dtype, np.floating):
        return rows, slice(None), (), ()
    good = np.ones(rows.shape[0], dtype=bool)
    for start, block in blocks_of(values):
        with np.errstate(over="ignore"):
            finite = np.isfinite(block.astype(np.float32, copy=False))
        if isinstance(rows, np.ndarray):
            good[start : start + len(block)] = finite.reshape(len(block), -1).all(axis=1)
        else:
            wrong = start + np.flatnonzero(~finite)
            good[np.searchsorted(rows.indptr, wrong, side="right") - 1] = False
    if good.all():
        return rows, slice(None), (), ()
    bad = tuple(f"row {i} holds NaN or infinity" for i in np.flatnonzero(~good))
    messages = settle_bad_rows(path, bad, rows.shape[0], skip_bad)
    return (chosen_rows(rows, good) if mapped else rows[good]), good, bad, messages
