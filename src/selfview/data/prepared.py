"""Preparations and prepared datasets on disk: checked when read, never executed."""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from selfview.data.anndata_files import AnnDataPreparation
from selfview.data.audio import AudioPreparation
from selfview.data.cache import CacheError, Entry, cache_key, cached
from selfview.data.dataset import Dataset
from selfview.data.guard import logger, reading, regular_file
from selfview.data.images import ImagePreparation
from selfview.data.preparation import ARRAYS, FORMAT, JSON, ArrayPreparation, Preparation
from selfview.data.spectra import ImzMLPreparation, PeakPreparation
from selfview.data.tables import TableFilePreparation
from selfview.data.texts import TextPreparation
from selfview.data.vectors import VectorPreparation
from selfview.errors import InputError

KINDS: dict[str, type[Preparation]] = {
    how.kind: how
    for how in (
        *(AnnDataPreparation, ArrayPreparation, AudioPreparation),
        *(ImagePreparation, ImzMLPreparation),
        *(PeakPreparation, TableFilePreparation, TextPreparation, VectorPreparation),
    )
}
_ARRAYS = ("y", "train", "test", "coordinates", "ids", "snippets")
_PLAIN = ("classes", "shape", "epsilon", "source", "skipped", "messages")


def load_preparation(folder: str | os.PathLike[str]) -> Preparation:
    """The preparation that `Preparation.save` wrote into this folder; none of it is executed.

    Parameters
    ----------
    folder : str or path

    Returns
    -------
    Preparation

    Examples
    --------
    >>> import tempfile
    >>> from selfview import load_dataset
    >>> from selfview.data import load_preparation
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_dataset("digits").preparation.save(folder)
    ...     load_preparation(folder).kind
    'array'
    """
    from safetensors.numpy import load_file

    path = Path(folder) / JSON
    if not path.is_file():
        raise InputError(f"{folder} holds no {JSON}: it isn't a run, or was fitted on an array")
    with reading(path, "a preparation"):
        content = json.loads(path.read_text(encoding="utf-8"))
        found = content["format"]
        if isinstance(found, int) and found > FORMAT:
            raise InputError(
                f"{path} is of format {found}, this selfview reads up to {FORMAT}. Update selfview"
            )
        if isinstance(found, bool) or found != FORMAT:
            raise InputError(f"{path} is damaged: its format is {str(found)[:50]}")
        arrays = load_file(regular_file(Path(folder) / ARRAYS)) if content["arrays"] else {}
        if sorted(arrays) != content["arrays"] or content["kind"] not in KINDS:
            raise InputError(f"{path} and {ARRAYS} don't belong together")
        return KINDS[content["kind"]].restore(content["fields"], arrays)


def cached_dataset(
    name: str, version: int, files: Iterable[Path], make: Callable[[], Dataset]
) -> Dataset:
    """The dataset from the cache; made now and kept there, if it can be, the first time."""
    made: list[Dataset] = []

    def write(folder: Path) -> dict[str, Any]:
        made.append(make())
        return _store(folder, made[0])

    try:
        return cached("prepared", f"{name}-v{version}-{cache_key(files)}", write, _load)
    except CacheError as error:
        logger.info("could not keep %s in the cache: %s", name, error)
        return made[0] if made else make()


def _store(folder: Path, dataset: Dataset) -> dict[str, Any]:
    """Write the arrays and the preparation, and return the other fields."""
    arrays = {key: getattr(dataset, key) for key in _ARRAYS}
    arrays |= {f"further-{key}": value for key, value in dataset.further.items()}
    X: Any = dataset.X
    if isinstance(X, np.ndarray):
        arrays["X"] = X
    else:
        arrays |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    for key, array in arrays.items():
        if array is not None:
            np.save(folder / f"{key}.npy", array, allow_pickle=False)
    if dataset.preparation is not None:
        dataset.preparation.save(folder)
    facts: dict[str, Any] = {key: getattr(dataset, key) for key in _PLAIN}
    return facts | {"X_shape": [int(d) for d in X.shape]}


def _load(entry: Entry) -> Dataset:
    arrays: dict[str, Any] = dict(entry.arrays)
    if "X" in arrays:
        X: Any = arrays.pop("X")
    else:
        parts = tuple(arrays.pop(key) for key in ("data", "indices", "indptr"))
        X = csr_matrix(parts, shape=tuple(entry.facts["X_shape"]))
        X.check_format(full_check=True)  # scipy trusts every index, and would write anywhere
    further = {k[8:]: arrays.pop(k) for k in list(arrays) if k.startswith("further-")}
    plain: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k in _PLAIN for v in [entry.facts[k]]
    }
    how = load_preparation(entry.folder) if (entry.folder / JSON).exists() else None
    return Dataset(name="", X=X, further=further, preparation=how, **plain, **arrays)
