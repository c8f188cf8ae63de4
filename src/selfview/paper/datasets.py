"""The datasets of the paper: what is used here for each, and the settings that depend on them."""

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.data import Dataset, load_dataset
from selfview.errors import InputError

SEED = 0  # of a sample
TARGET_RANGE = 255  # colours of the MSI target become numbers from 0 to 1


@dataclass(frozen=True)
class PaperDataset:
    """A dataset of the paper's experiments.

    `epsilon` is the paper's length of a view where the rows are the paper's, else "auto": the same
    share of the mean row norm. `sweep` are the lengths of figure 6.
    """

    name: str
    title: str
    paper: str | None  # the dataset's name among the paper's numbers
    rows: int
    parameters: int  # of the network that our method trains on it, for the estimate of time
    epsilon: float | str = "auto"
    sweep: tuple[float | str, ...] = ()
    images: bool = False
    labelled: bool = True
    label: str = "label"  # what a label is, in a word
    note: str = ""


def _of(*datasets: PaperDataset) -> dict[str, PaperDataset]:
    return {dataset.name: dataset for dataset in datasets}


DATASETS = _of(
    PaperDataset(
        "mnist", "E-MNIST (MNIST)", "emnist-digits", 70_000, 895_854, 2.0,
        (1.0, 2.0, 3.0, 4.0, 5.0), images=True,
        note="MNIST stands in for the paper's E-MNIST digits",
    ),
    PaperDataset(
        "fashion-mnist", "F-MNIST", "fashion-mnist", 70_000, 895_854, 2.0,
        (1.0, 2.0, 3.0, 4.0, 5.0), images=True,
    ),
    PaperDataset(
        "reuters", "Reuters", "reuters", 10_000, 1_860_206, "auto",
        # The paper's 10 to 30 are for rows of norm 44.7; rows of 746 words have norm 27.3.
        (6.1, 9.2, "auto", 15.3, 18.3),
        note="Reuters rows are 746 tf-idf words where SELFVIEW_DATA provides them (the paper: "
        "2,000), so epsilon and its sweep are the paper's share of the smaller norm",
    ),
    PaperDataset(
        "20news", "20news", "20news", 17_027, 3_144_302, 20.0, (10.0, 15.0, 20.0, 25.0, 30.0),
        note="17,027 posts are long enough here (the paper keeps 18,040); records of before the "
        "vocabulary was the same on every processor have one or two more",
    ),
    PaperDataset(
        "fsdd", "FSDD", "fsdd", 3_000, 3_455_598, 5.0, (1.0, 2.0, 3.0, 4.0, 5.0), label="digit"
    ),
    PaperDataset(
        "msi", "MSI", "msi", 34_732, 1_177_198, "auto",
        # The paper's 1 to 5 are one to five fifths of a mean norm of 5; here it is 0.86.
        ("auto", 0.35, 0.52, 0.69, 0.86), labelled=False,
        note="MSI is a mouse bladder of 79 peaks (the paper's rat brain is not public), regressed "
        "on a target of our own, colours from 0 to 1: at most the order of methods compares",
    ),
)  # fmt: skip

# Not among the paper's: asked for by name only. They need no download.
FURTHER = _of(
    PaperDataset("digits", "digits", None, 1_797, 1_161_838, "auto", (5.0, 11.0)),
    PaperDataset(
        "synthetic-msi", "generated MSI", None, 6_400, 2_144_878, 1.0, (1.0, 2.0),
        note="the generated MSI has the 1,024 bins of the paper's MSI",
    ),
    PaperDataset(
        "emnist-digits", "E-MNIST", "emnist-digits", 280_000, 895_854, 2.0,
        (1.0, 2.0, 3.0, 4.0, 5.0), images=True,
    ),
)  # fmt: skip

KNOWN = DATASETS | FURTHER


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
