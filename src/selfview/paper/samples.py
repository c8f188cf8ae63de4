"""The rows of an experiment: a dataset, or a sample of it that is the same for everybody."""

import functools
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.data import Dataset, load_dataset
from selfview.errors import InputError
from selfview.paper.datasets import KNOWN, TARGET_RANGE

SEED = 0


@functools.lru_cache(maxsize=1)
def load_sample(name: str, rows: int | None) -> Dataset:
    """A dataset of the paper, cut to a number of rows that are drawn without a look at labels.

    Its `y` is what embeddings are judged by: labels (n,), or colours from 0 to 1 (n, 3).
    """
    dataset = load_dataset(name)
    dataset = replace(dataset, y=_target(dataset))
    if rows is None or rows >= len(dataset):
        return dataset
    return dataset.take(np.sort(np.random.default_rng(SEED).permutation(len(dataset))[:rows]))


def describe(sample: Dataset) -> dict[str, Any]:
    """What a record says of the data."""
    test = 0 if sample.split is None else len(sample.split[1])
    shape = [int(side) for side in sample.X.shape[1:]]
    return {"rows": len(sample), "test_rows": test, "shape": shape, "source": sample.source}


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
