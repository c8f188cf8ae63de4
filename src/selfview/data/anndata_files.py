"""AnnData files (.h5ad) and stores (.zarr): cells, with the columns of `obs` beside them.

Only h5py or zarr is needed, not anndata itself. Matrices are read in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from selfview.data.arrays import dataset_of_array
from selfview.data.cache import map_blocks
from selfview.data.dataset import Array, Dataset, Options, Rows
from selfview.data.guard import notify
from selfview.data.preparation import Preparation
from selfview.data.sparse import csr_columns
from selfview.data.stores import Store, is_anndata, open_store
from selfview.data.table_rows import SIDES
from selfview.data.tables import did_you_mean, first_columns
from selfview.errors import FileFormatError, InputError

MOST_COLUMNS = 32  # of obs that are read to colour by
SPATIAL = "spatial"  # array of obsm with the place of each row, as squidpy and scanpy name it


@dataclass(frozen=True, eq=False)
class AnnDataPreparation(Preparation):
    """The matrix X, a layer of it, or an array of obsm; variables are found by their names.

    ``label``, ``id`` and ``groups`` are columns of obs; new files may lack them. ``mz`` is where
    the variables of a mass-spectrometry image lie, from the column ``mz`` of var.
    """

    features: int
    variables: tuple[str, ...] = ()
    layer: str | None = None
    use_rep: str | None = None
    label: str | None = None
    id: str | None = None
    groups: str | None = None
    mz: tuple[float, ...] = ()

    kind: ClassVar[str] = "anndata"
    suffixes: ClassVar[str] = ".h5ad or an AnnData .zarr"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.features,)

    @property
    def feature_names(self) -> tuple[str, ...]:
        if self.use_rep and not self.variables:
            return tuple(f"{self.use_rep} {i}" for i in range(1, self.features + 1))
        return tuple(f"m/z {mz:.2f}" for mz in self.mz) or self.variables

    def consistent(self) -> bool:
        return len(self.variables) in (0, self.features) and len(self.mz) in (0, self.features)

    def read_files(self, path: Path, options: Options) -> Dataset:
        if not is_anndata(path):
            raise InputError(f"{path}: this model was fitted on AnnData, give {self.suffixes}")
        with open_store(path) as store:
            known = _columns(store)
            sides: dict[str, Any] = {
                side: getattr(options, side) or (own if own in known else None)
                for side in SIDES
                for own in [getattr(self, side)]
            }
            asked = replace(options, layer=self.layer, use_rep=self.use_rep, **sides)
            rows, note = self._aligned(store, _matrix(store, asked))
            dataset = _dataset(store, rows, asked)
        messages = (*dataset.messages, *((notify(note),) if note else ()))
        return replace(dataset, preparation=self, messages=messages)

    def _aligned(self, store: Store, rows: Rows) -> tuple[Rows, str]:
        """The rows with the variables of the fit in their order, and what had to be done."""
        names = _variables(store) if self.variables else ()
        if not names or names == self.variables:
            if rows.shape[1:] != self.shape:
                raise InputError(
                    f"{store.path} has rows of {rows.shape[1]:,} variables, this model needs "
                    f"{self.features:,}"
                )
            return rows, ""
        place = {name: i for i, name in enumerate(names)}
        missing = [name for name in self.variables if name not in place]
        if missing:
            lacking = first_columns(missing).replace("columns", "variables", 1)
            raise InputError(f"{store.path} lacks {lacking}, which the model was fitted on")
        order = np.array([place[name] for name in self.variables])
        more = len(names) - len(order)
        note = f"{store.path}: its variables are put into the order of the fit" + (
            f", and {more:,} others left out" if more else ""
        )
        return _take_columns(rows, order), note


def fit_anndata(path: Path, options: Options) -> Dataset:
    """The cells of an AnnData file; all columns of obs may serve as label or id."""
    if not is_anndata(path):
        raise InputError(f"{path} holds no AnnData: layer and use_rep mean nothing for it")
    if options.layer is not None and options.use_rep is not None:
        raise InputError("layer and use_rep can't both be given: each names the rows")
    with open_store(path) as store:
        rows = _matrix(store, options)
        names = () if options.use_rep not in (None, "X") else _variables(store)
        how = AnnDataPreparation(
            int(rows.shape[1]), names, options.layer, options.use_rep, options.label, options.id,
            options.groups, _mz(store) if names else (),
        )  # fmt: skip
        return replace(_dataset(store, rows, options), preparation=how)


def _matrix(store: Store, options: Options) -> Rows:
    folder, name = "", "X"
    if options.layer is not None:
        folder, name = "layers", options.layer
    elif options.use_rep not in (None, "X"):
        folder, name = "obsm", str(options.use_rep)
    if folder and name not in store.keys(folder):
        option = "layer" if folder == "layers" else "use_rep"
        held = ", ".join(store.keys(folder)) or "none"
        raise InputError(f"{store.path} has no {option} {name!r}; its {folder} are: {held}")
    if not folder and store.node("X") is None:
        named = [
            f"{option} ({', '.join(store.keys(place)) or 'none'})"
            for option, place in (("layer", "layers"), ("use_rep", "obsm"))
        ]
        raise InputError(f"{store.path} has no X: name a {' or '.join(named)}")
    rows = store.rows(f"{folder}/{name}" if folder else name)
    if rows.ndim != 2:
        raise FileFormatError(f"{store.path} [{name}] has {rows.ndim} axes, rows need 2")
    return rows


def _dataset(store: Store, rows: Rows, options: Options) -> Dataset:
    n = int(rows.shape[0])
    known = _columns(store)
    sides = {side: getattr(options, side) for side in SIDES}
    for option, column in sides.items():
        if column is not None and column not in known:
            raise InputError(
                f"{store.path} has no column {column!r} of obs for {option}, but "
                f"{first_columns(known)}{did_you_mean(column, known)}"
            )
    labels, groups = (
        None if name is None else _column(store, name, n)
        for name in (options.label, options.groups)
    )
    ids = _column(store, options.id or _index(store, "obs"), n)
    further = {
        name: values
        for name in known[:MOST_COLUMNS]
        if name not in sides.values() and (values := _shown(store, name, n)) is not None
    }
    return dataset_of_array(
        store.path, rows, options.skip_bad, images=False, labels=labels, groups=groups,
        ids=ids.astype(str), further=further, coordinates=_places(store, n),
    )  # fmt: skip


def _index(store: Store, frame: str) -> str:
    """The name of the array that names the rows of obs or var."""
    group = store.node(frame)
    if not hasattr(group, "keys"):
        raise FileFormatError(f"{store.path} has no data frame {frame!r}")
    return str(group.attrs.get("_index", "_index"))


def _columns(store: Store) -> list[str]:
    """The columns of obs, in their order."""
    index = _index(store, "obs")
    group: Any = store.node("obs")
    order = [str(name) for name in group.attrs.get("column-order", ())]
    held = [name for name in store.keys("obs") if name not in (index, "__categories")]
    return [c for c in order if c in held] + [c for c in held if c not in order]


def _column(store: Store, name: str, n: int) -> Array:
    values = store.values(f"obs/{name}")
    if store.node(f"obs/__categories/{name}") is not None:  # as anndata wrote before 0.8
        values = store.decoded(values, f"obs/__categories/{name}")
    if values.shape != (n,):
        raise FileFormatError(f"{store.path}: obs has {len(values):,} rows, its matrix {n:,}")
    return values


def _shown(store: Store, name: str, n: int) -> Array | None:
    """A column of obs to colour by, or None if it can't be read as one."""
    try:
        return _column(store, name, n)
    except FileFormatError:
        return None


def _variables(store: Store) -> tuple[str, ...]:
    """The names of the variables; none if two have the same."""
    names = tuple(store.values(f"var/{_index(store, 'var')}").astype(str).tolist())
    return names if len({*names}) == len(names) else ()


def _mz(store: Store) -> tuple[float, ...]:
    if "mz" not in store.keys("var"):
        return ()
    values = store.values("var/mz")
    numbers = values.dtype.kind in "iuf" and bool(np.isfinite(values).all())
    return tuple(values.astype(float).tolist()) if numbers else ()


def _places(store: Store, n: int) -> Array | None:
    """x and y of each row, from the array ``spatial`` of obsm."""
    if SPATIAL not in store.keys("obsm"):
        return None
    places = store.rows(f"obsm/{SPATIAL}")
    if not isinstance(places, np.ndarray) or places.ndim != 2 or len(places) != n:
        return None
    usable = places.shape[1] >= 2 and bool(np.isfinite(places[:, :2]).all())
    return np.array(places[:, :2]) if usable else None


def _take_columns(rows: Rows, order: Array) -> Rows:
    if not isinstance(rows, np.ndarray):
        return csr_columns(rows, order)
    if not isinstance(rows, np.memmap):
        return rows[:, order]
    what = ("columns", order.tolist())
    return map_blocks(rows, what, rows.dtype, lambda _, block: block[:, order])
