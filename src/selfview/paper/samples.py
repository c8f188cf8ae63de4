"""The rows of an experiment: a dataset, or a sample of it that is the same for everybody."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.data import Dataset, load_dataset
from selfview.errors import InputError
from selfview.paper.datasets import KNOWN, TARGET_RANGE

SEED = 0


@dataclass(frozen=True)
class Sample:
    """Rows, and what they are judged by."""

    X: Any
    y: NDArray[Any]  # labels (n,), or colours from 0 to 1 (n, 3)
    split: tuple[NDArray[np.intp], NDArray[np.intp]] | None
    classes: tuple[str, ...]
    further: Mapping[str, NDArray[Any]]
    source: str

    def describe(self) -> dict[str, Any]:
        """What a record says of the data."""
        test = 0 if self.split is None else len(self.split[1])
        shape = [int(side) for side in self.X.shape[1:]]
        return {"rows": len(self.y), "test_rows": test, "shape": shape, "source": self.source}


@functools.lru_cache(maxsize=1)
def load_sample(name: str, rows: int | None) -> Sample:
    """A dataset of the paper, cut to a number of rows that are drawn without a look at labels."""
    dataset = load_dataset(name)
    y = _target(dataset)
    split = None
    if dataset.train is not None and dataset.test is not None:
        split = (dataset.train, dataset.test)
    if rows is None or rows >= len(dataset):
        further = dict(dataset.further)
        return Sample(dataset.X, y, split, dataset.classes, further, dataset.source)
    kept = np.sort(np.random.default_rng(SEED).permutation(len(dataset))[:rows])
    if split is not None:
        test = np.isin(kept, split[1])
        split = (np.flatnonzero(~test), np.flatnonzero(test))
    further = {name: np.asarray(column)[kept] for name, column in dataset.further.items()}
    return Sample(dataset.X[kept], y[kept], split, dataset.classes, further, dataset.source)


def _target(dataset: Dataset) -> NDArray[Any]:
    """Labels, or for an image without labels the colours that embeddings are regressed on."""
    if KNOWN[dataset.name].labelled:
        if dataset.y is None:
            raise InputError(f"{dataset.name} has no labels to judge by")
        return dataset.y
    if "rgb" not in dataset.further:
        raise InputError(
            f"{dataset.name} has no stored colours to regress on: they belong to the "
            "34,732 spectra that SELFVIEW_DATA provides"
        )
    colours: NDArray[Any] = np.asarray(dataset.further["rgb"], dtype=np.float64) / TARGET_RANGE
    return colours
