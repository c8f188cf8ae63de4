"""Rows for a model that was saved from Python: numbers as they are, of arrays or tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from selfview.data import arrays
from selfview.data.anndata_files import fit_anndata
from selfview.data.dataset import Dataset, Options
from selfview.data.folders import kind_of
from selfview.data.preparation import ArrayPreparation
from selfview.data.stores import is_anndata
from selfview.data.tables import TABLES, TableFilePreparation, numbers_of_table
from selfview.errors import InputError


@dataclass(frozen=True, eq=False)
class GivenRows(ArrayPreparation):
    """Rows for a model that was saved from Python: numbers as they are, of arrays or tables.

    ``columns`` are the names that the data frame of the fit had, if it was one.
    """

    columns: tuple[str, ...] = ()

    images: ClassVar[bool] = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.columns

    def read_files(self, path: Path, options: Options) -> Dataset:
        if is_anndata(path):
            dataset = replace(fit_anndata(path, options), preparation=self)
            self.check_shape(path, dataset)
            return dataset
        if kind_of(path) not in TABLES:
            raise InputError(
                f"{path}: this model was saved from Python, which doesn't keep how rows are made "
                f"from files: give the rows themselves, as {', '.join((*arrays.SUFFIXES, *TABLES))}"
            )
        if self.columns:
            return TableFilePreparation(self.columns, header=True).read_files(path, options)
        dataset = numbers_of_table(path, options).read_files(path, options)
        self.check_shape(path, dataset)
        return dataset

    def check(self, dataset: Dataset) -> None:
        self.check_shape(dataset.name, dataset)
