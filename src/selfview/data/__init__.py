"""Reading: named datasets and files of any kind become a `Dataset` of rows and labels.

>>> from selfview.data import load_dataset
>>> load_dataset("digits").X.shape
(1797, 64)
"""

from selfview.data.dataset import Dataset
from selfview.data.named import DATASETS, load_dataset
from selfview.data.preparation import Preparation
from selfview.data.prepared import load_preparation
from selfview.data.source import read
from selfview.data.synthetic import synthetic_msi

__all__ = [
    "DATASETS",
    "Dataset",
    "Preparation",
    "load_dataset",
    "load_preparation",
    "read",
    "synthetic_msi",
]
