"""Rows for a model that was saved from Python, which keeps no preparation: taken as they are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfview.data.arrays import SUFFIXES, read_array_file
from selfview.data.dataset import Dataset
from selfview.data.folders import existing
from selfview.data.named import DATASETS, load_dataset
from selfview.data.preparation import Options, row_options
from selfview.data.table_files import TABLES
from selfview.data.tables import TablePreparation, fit_table
from selfview.errors import InputError


@dataclass(frozen=True)
class GivenRows:
    """Reads rows of numbers and changes nothing; only their shape, and names, are checked.

    ``columns`` are the names that the data frame of the fit had, if it was one.
    """

    shape: tuple[int, ...]
    columns: tuple[str, ...] = ()

    def read(self, source: str | os.PathLike[str], **options: Any) -> Dataset:
        """The rows of an array file, a table or a named dataset.

        Parameters
        ----------
        source : path or name of a dataset
        **options
            Those of `Preparation.read`.
        """
        dataset = self._dataset(source, row_options(options))
        found = tuple(dataset.X.shape[1:])
        if found != self.shape:
            raise InputError(
                f"{source} has rows of shape {found}, this model needs {self.shape}. It was saved "
                "from Python, so rows are taken as they are: give them as they were given to fit"
            )
        return dataset

    def _dataset(self, source: str | os.PathLike[str], options: Options) -> Dataset:
        if str(source) in DATASETS and not Path(source).exists():
            return load_dataset(str(source))
        path = existing(source)
        suffix = path.suffix.lower()
        if suffix in SUFFIXES:
            return read_array_file(path, options, as_they_are=True)
        if suffix in TABLES and self.columns:
            return TablePreparation(self.columns, header=True)._read_files(path, options)
        if suffix in TABLES:
            return fit_table(path, options)
        raise InputError(
            f"{path}: this model was saved from Python, which doesn't keep how rows are made from "
            f"files: give the rows themselves, as {', '.join((*SUFFIXES, *TABLES))}"
        )
