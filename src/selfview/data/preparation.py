"""`Preparation`: how rows were made from files, kept with a model to prepare new files."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from selfview.data.arrays import SUFFIXES, is_array_file, read_array_file
from selfview.data.dataset import Dataset, Options
from selfview.data.folders import existing
from selfview.errors import InputError
from selfview.saving.files import write_bytes

FORMAT = 1
JSON, ARRAYS = "preparation.json", "preparation.safetensors"
ROW_OPTIONS = (
    *("array", "groups", "groups_from_name", "id", "label", "labels_from_name"),
    *("sheet", "skip_bad"),
)


@dataclass(frozen=True, eq=False)
class Preparation(ABC):
    """How rows are made from files of one kind.

    Subclasses are frozen dataclasses whose fields are JSON values or numpy arrays.
    """

    kind: ClassVar[str]
    suffixes: ClassVar[str]
    images: ClassVar[bool] = True  # are arrays of 3 and 4 axes images, and their bytes scaled?

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of one row of `X`."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each feature of a row; none where files don't give any."""
        return ()

    @abstractmethod
    def read_files(self, path: Path, options: Options) -> Dataset:
        """Rows of new files, which are not array files."""

    def read(self, source: str | os.PathLike[str], **options: Any) -> Dataset:
        """The rows of new files, made exactly as when this preparation was fitted.

        Parameters
        ----------
        source : path
            Files of the kind this was made from, one file or a folder; or an array file (.npy,
            .npz, .mtx, .h5, .zarr, .pt, .safetensors) of rows that are prepared already.
        **options
            Those of `selfview.data.read` that don't change how rows are made: ``array``, ``label``,
            ``id``, ``groups``, ``labels_from_name``, ``groups_from_name``, ``sheet``, ``skip_bad``.
        """
        chosen = row_options(options)
        path = existing(source)
        if not is_array_file(path):
            return self.read_files(path, chosen)
        dataset = read_array_file(path, chosen, images=self.images)
        self.check_shape(path, dataset)
        return replace(dataset, preparation=self)

    def check_shape(self, source: object, dataset: Dataset) -> None:
        """Raise InputError unless rows have the shape of the fit's."""
        found = tuple(dataset.X.shape[1:])
        if found != self.shape:
            raise InputError(f"{source} has rows of shape {found}, this model needs {self.shape}")

    def check(self, dataset: Dataset) -> None:
        """Raise InputError unless the dataset's rows were made by this preparation."""
        if dataset.preparation != self:
            raise InputError(
                f"the dataset {dataset.name} is prepared otherwise than this model's rows; "
                f"give files ({self.suffixes}) instead"
            )

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
            for a, b in ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        )

    __hash__ = None  # type: ignore[assignment]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``preparation.json`` and, if there are arrays, ``preparation.safetensors``."""
        from safetensors.numpy import save

        folder = Path(folder)
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        arrays = {
            k: np.ascontiguousarray(v) for k, v in values.items() if isinstance(v, np.ndarray)
        }
        plain = {k: v for k, v in values.items() if k not in arrays}
        content = {"format": FORMAT, "kind": self.kind, "arrays": sorted(arrays), "fields": plain}
        if arrays:
            write_bytes(folder / ARRAYS, save(arrays))
        text = json.dumps(content, indent=1, ensure_ascii=False)
        write_bytes(folder / JSON, text.encode())

    def consistent(self) -> bool:
        """Whether the fields fit together; a saved preparation may be damaged."""
        return True

    @classmethod
    def restore(cls, plain: dict[str, Any], arrays: dict[str, Any]) -> Self:
        """The preparation of these saved fields."""
        values = {k: _tuples(v) for k, v in plain.items()} | arrays
        for field in fields(cls):
            if field.name in values and not _FITS[str(field.type)](values[field.name]):
                raise ValueError(f"{field.name} can't be {str(values[field.name])[:50]}")
        made = cls(**values)
        if not made.consistent():
            raise ValueError("its parts don't belong together")
        return made


def _is_vector(value: Any, dtype: str) -> bool:
    return (
        isinstance(value, np.ndarray) and value.ndim == 1 and value.size > 0
        and value.dtype == np.dtype(dtype) and bool(np.isfinite(value).all())
    )  # fmt: skip


# What the fields of a saved preparation may be, by the type that its class gives them.
_FITS: dict[str, Callable[[Any], bool]] = {
    "int": lambda v: type(v) is int and 0 < v < 2**31,
    "float": lambda v: type(v) in (int, float) and abs(v) < 1e300,
    "bool": lambda v: type(v) is bool,
    "str": lambda v: type(v) is str,
    "str | None": lambda v: v is None or type(v) is str,
    "tuple[int, ...]": lambda v: type(v) is tuple and all(map(_FITS["int"], v)),
    "tuple[str, ...]": lambda v: type(v) is tuple and all(map(_FITS["str"], v)),
    "tuple[float, ...]": lambda v: type(v) is tuple and all(map(_FITS["float"], v)),
    "tuple[float, float]": lambda v: (
        type(v) is tuple and len(v) == 2 and all(map(_FITS["float"], v))
    ),
    "dict[str, Any] | None": lambda v: v is None or type(v) is dict,
    "NDArray[np.float32]": lambda v: _is_vector(v, "f4"),
    "NDArray[np.float64]": lambda v: _is_vector(v, "f8"),
}


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def row_options(options: dict[str, Any]) -> Options:
    """The options that say which rows and labels are read, but not how rows are made."""
    wrong = sorted(set(options) - set(ROW_OPTIONS))
    if wrong:
        raise InputError(
            f"{', '.join(wrong)} can't be given here: how rows are made was settled at fit time; "
            f"possible are {', '.join(ROW_OPTIONS)}"
        )
    for name in ("label", "id", "groups", "sheet"):
        if options.get(name) is not None:
            options[name] = str(options[name])
    return Options(**options)


@dataclass(frozen=True, eq=False)
class ArrayPreparation(Preparation):
    """Rows taken as they are; only their shape is fixed."""

    row_shape: tuple[int, ...]

    kind: ClassVar[str] = "array"
    suffixes: ClassVar[str] = ", ".join(SUFFIXES)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.row_shape

    def read_files(self, path: Path, _options: Options) -> Dataset:
        raise InputError(f"{path}: this model was fitted on an array, give {self.suffixes}")
