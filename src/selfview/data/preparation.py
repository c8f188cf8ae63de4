"""`Preparation`: how rows were made from files, kept with a model to prepare new files alike."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from selfview.data.dataset import Dataset, Rows
from selfview.data.guard import reading, regular_file
from selfview.errors import InputError
from selfview.saving.files import write_bytes

FORMAT = 1
# From each older format to the next; format 1 is the first.
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
_JSON, _ARRAYS = "preparation.json", "preparation.safetensors"


@dataclass(frozen=True)
class Options:
    """What a caller may say about files; every reader takes what concerns it.

    See `selfview.data.read`, whose keyword arguments these are.
    """

    array: str | None = None
    label: str | None = None
    id: str | None = None
    labels_from_name: str | None = None
    header: bool | None = None
    text: str = "text"
    vocabulary: int = 2000
    min_words: int = 1
    image_size: tuple[int, int] | None = None
    mz_range: tuple[float, float] = (50.0, 1000.0)
    bins: int = 1024
    skip_bad: bool = False

    def given(self) -> list[str]:
        """The options that differ from their defaults, `skip_bad` aside."""
        usual = Options(skip_bad=self.skip_bad)
        return [f.name for f in fields(self) if getattr(self, f.name) != getattr(usual, f.name)]


@dataclass(frozen=True, eq=False)
class Preparation(ABC):
    """How rows are made from files of one kind.

    Subclasses are frozen dataclasses whose fields are JSON values or numpy arrays; nothing else is
    needed to prepare new files exactly as at fit time.
    """

    kind: ClassVar[str]
    suffixes: ClassVar[str]

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of one row of `X`."""

    @abstractmethod
    def _read_files(self, path: Path, options: Options) -> Dataset:
        """Rows of new files."""

    def finish(self, rows: Rows) -> Rows:
        """Rows of an array file as this preparation's rows (images scale bytes to [0, 1])."""
        return rows

    def read(self, source: str | os.PathLike[str], **options: Any) -> Dataset:
        """The rows of new files, made exactly as when this preparation was fitted.

        Parameters
        ----------
        source : path or name of a dataset
            Files of the kind this was made from, one file or a folder; the same named dataset; or
            an array file (.npy, .npz, .mtx) of rows that are prepared already.
        **options
            Those of `selfview.data.read` that don't change how rows are made: ``array``, ``label``,
            ``id``, ``labels_from_name``, ``skip_bad``.
        """
        from selfview.data import arrays, folders, named

        chosen = row_options(options)
        if str(source) in named.DATASETS and not Path(source).exists():
            dataset = named.load_dataset(str(source))
            if dataset.preparation is None or not self.same_as(dataset.preparation):
                raise InputError(
                    f"the dataset {source} is prepared otherwise than this model's rows; "
                    f"give files ({self.suffixes}) instead"
                )
            return dataset
        path = folders.existing(source)
        if path.suffix.lower() in arrays.SUFFIXES:
            dataset = arrays.read_array_file(path, chosen)
            rows = self.finish(dataset.X)
            if tuple(rows.shape[1:]) != self.shape:
                raise InputError(
                    f"{path} has rows of shape {tuple(dataset.X.shape[1:])}, "
                    f"this model needs {self.shape}"
                )
            return replace(dataset, X=rows, shape=(), preparation=self)
        return self._read_files(path, chosen)

    def same_as(self, other: Preparation) -> bool:
        """Whether both make the same rows of the same files."""
        return type(self) is type(other) and all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
            for a, b in ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Preparation) and self.same_as(other)

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
            write_bytes(folder / _ARRAYS, save(arrays))
        text = json.dumps(content, indent=1, ensure_ascii=False)
        write_bytes(folder / _JSON, text.encode())

    def consistent(self) -> bool:
        """Whether the fields belong together; a saved preparation may be damaged."""
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


def load_preparation(folder: str | os.PathLike[str]) -> Preparation:
    """The preparation that `Preparation.save` wrote into this folder; no code of it is run.

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

    from selfview.data.kinds import KINDS

    path = Path(folder) / _JSON
    if not path.is_file():
        raise InputError(f"{folder} holds no {_JSON}: it isn't a run, or was fitted on an array")
    with reading(path, "a preparation"):
        content = _present(path, json.loads(path.read_text(encoding="utf-8")))
        arrays = load_file(regular_file(Path(folder) / _ARRAYS)) if content["arrays"] else {}
        if sorted(arrays) != content["arrays"] or content["kind"] not in KINDS:
            raise InputError(f"{path} and {_ARRAYS} don't belong together")
        return KINDS[content["kind"]].restore(content["fields"], arrays)


def _present(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """The content in the present form: an older one is upgraded, a format at a time."""
    found = content["format"]
    if isinstance(found, bool) or not isinstance(found, int) or found < FORMAT - len(UPGRADES):
        raise InputError(f"{path} is damaged: its format is {str(found)[:50]}")
    if found > FORMAT:
        raise InputError(
            f"{path} is of format {found}, this selfview reads up to {FORMAT}. Update selfview"
        )
    for older in range(found, FORMAT):
        content = UPGRADES[older](content)
    return content


def _size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31


def _real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and all(map(fits, value))


def _floats(width: int) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, np.ndarray) and value.ndim == 1 and value.size > 0
        and value.dtype == np.dtype(f"f{width}") and bool(np.isfinite(value).all())
    )  # fmt: skip


# What the fields of a saved preparation may be, by the type that its class gives them.
_FITS: dict[str, Callable[[Any], bool]] = {
    "int": _size,
    "float": _real,
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "str | None": lambda value: isinstance(value, str | None),
    "tuple[int, ...]": _all(_size),
    "tuple[str, ...]": _all(lambda value: isinstance(value, str)),
    "tuple[float, float]": lambda value: _all(_real)(value) and len(value) == 2,
    "NDArray[np.float32]": _floats(4),
    "NDArray[np.float64]": _floats(8),
}


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


_ROW_OPTIONS = frozenset({"array", "label", "id", "labels_from_name", "skip_bad"})


def row_options(options: dict[str, Any]) -> Options:
    """The options that say which rows and labels are read, but not how rows are made."""
    wrong = sorted(set(options) - _ROW_OPTIONS)
    if wrong:
        raise InputError(
            f"{', '.join(wrong)} can't be given here: how rows are made was settled at fit time; "
            f"possible are {', '.join(sorted(_ROW_OPTIONS))}"
        )
    for name in ("label", "id"):
        if options.get(name) is not None:
            options[name] = str(options[name])
    return Options(**options)
