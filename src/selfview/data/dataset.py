"""`Dataset`: rows and everything known about them; `Options`: how files are to be read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from selfview.labels import looks_continuous, missing
from selfview.tables.learning import Choice

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from selfview.data.preparation import Preparation

Array: TypeAlias = NDArray[Any]
Rows: TypeAlias = "Array | csr_matrix"
"""An ndarray, a read-only memmap, or a CSR matrix of float32."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows, their labels where there are any, and where they come from.

    Attributes
    ----------
    name : str
        A named dataset's name, or the last part of the path that was read.
    X : ndarray, memmap or csr_matrix
        ``(n, dim)``, or ``(n, channels, height, width)`` for images. Arrays that are large or come
        from the cache are memory-mapped and read-only.
    y : ndarray or None
        Class codes from 0 where ``classes`` names them, -1 for a row without a label; or
        measurements, NaN for a row without one. Never passed to ``fit``.
    classes : tuple of str
        ``classes[y[i]]`` is the name of row i's label.
    groups : ndarray of str or None
        The group of each row (speaker, donor, day), where one was asked for: what differs between
        groups is not to be learned.
    further : mapping
        Other labels by name: FSDD's ``speaker``, MSI's ``segment``.
    train, test : ndarray or None
        Row indices of the official split, or both None.
    shape : tuple of int
        The natural shape of one row: ``(1, 28, 28)`` for an image, ``(48, 48)`` for a spectrogram
        whose row in ``X`` is flat, ``(dim,)`` for a vector.
    coordinates : ndarray or None
        ``(n, 2)`` x, y of each row where rows are pixels of a larger image, or places in a tissue.
    ids : ndarray or None
        A name for each row: file name, id column, story number.
    snippets : ndarray or None
        The beginning of each row's text, where rows are texts, for display.
    epsilon : float or None
        The paper's length of the adversarial perturbation for this data.
    citation, licence, source : str
        ``source`` says where the rows came from: SELFVIEW_DATA, download, generated or a path.
    preparation : Preparation or None
        How these rows were made; prepares new files the same way.
    skipped : tuple of str
        Why each row that couldn't be read was left out.
    messages : tuple of str
        What the user should know; each was logged once as a warning.

    Examples
    --------
    >>> from selfview import load_dataset
    >>> digits = load_dataset("digits")
    >>> digits.X.shape, digits.n_classes
    ((1797, 64), 10)
    """

    name: str
    X: Rows
    y: Array | None = None
    classes: tuple[str, ...] = ()
    groups: Array | None = None
    further: Mapping[str, Array] = field(default_factory=dict)
    train: NDArray[np.intp] | None = None
    test: NDArray[np.intp] | None = None
    shape: tuple[int, ...] = ()
    coordinates: Array | None = None
    ids: Array | None = None
    snippets: Array | None = None
    epsilon: float | None = None
    citation: str = ""
    licence: str = ""
    source: str = ""
    preparation: Preparation | None = None
    skipped: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.shape:
            object.__setattr__(self, "shape", tuple(int(d) for d in self.X.shape[1:]))

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 without labels and for measurements."""
        if self.y is None or looks_continuous(self.y):
            return 0
        return len(self.classes) or len({*self.y[~missing(self.y)].tolist()})

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each feature: column, word, m/z, pixel; or "feature 1" and so on."""
        count = math.prod(self.X.shape[1:])
        named = () if self.preparation is None else self.preparation.feature_names
        if len(named) == count:
            return named
        if len(self.shape) in (2, 3) and math.prod(self.shape) == count:
            channels, lines, columns = (1, *self.shape)[-3:]
            numbered = [f"channel {i + 1}, " * (channels > 1) for i in range(channels)]
            return tuple(
                f"{channel}line {line}, column {column}"
                for channel in (("red ", "green ", "blue ") if channels == 3 else numbered)
                for line in range(1, lines + 1)
                for column in range(1, columns + 1)
            )
        return tuple(f"feature {i}" for i in range(1, count + 1))

    @property
    def split(self) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
        """Row indices of the official train and test parts, where there are such."""
        return None if self.train is None or self.test is None else (self.train, self.test)

    def take(self, rows: NDArray[Any]) -> Dataset:
        """The dataset of some of its rows, in the order given."""
        train, test = (
            None if part is None else np.flatnonzero(np.isin(rows, part))
            for part in (self.train, self.test)
        )
        known = ("y", "groups", "coordinates", "ids", "snippets")
        beside = {name: getattr(self, name) for name in known}
        changes: dict[str, Any] = {
            name: v if v is None else np.asarray(v)[rows] for name, v in beside.items()
        }
        further = {name: np.asarray(values)[rows] for name, values in self.further.items()}
        return replace(self, X=self.X[rows], train=train, test=test, further=further, **changes)

    def __repr__(self) -> str:
        labels = f", {self.n_classes} classes" if self.n_classes else ""
        return (
            f"<Dataset {self.name}: {len(self)} rows of {self.shape}{labels}, from {self.source}>"
        )


@dataclass(frozen=True)
class Options:
    """The keyword arguments of `selfview.data.read`; every reader takes those that concern it."""

    array: str | None = None
    layer: str | None = None
    use_rep: str | None = None
    label: str | None = None
    id: str | None = None
    groups: str | None = None
    labels_from_name: str | None = None
    groups_from_name: str | None = None
    header: bool | None = None
    sheet: str | None = None
    columns: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None
    categorical: tuple[str, ...] | None = None
    numeric: tuple[str, ...] | None = None
    text: str | None = None
    vector: str | None = None
    vocabulary: int = 2000
    min_words: int = 1
    image_size: tuple[int, int] | None = None
    mz_range: tuple[float, float] = (50.0, 1000.0)
    bins: int = 1024
    skip_bad: bool = False

    @property
    def choice(self) -> Choice:
        """What is said about the columns of a table."""
        return Choice(self.columns, self.drop, self.categorical, self.numeric)

    def given(self) -> list[str]:
        """The options that differ from their defaults, `skip_bad` aside."""
        usual = Options(skip_bad=self.skip_bad)
        return [f.name for f in fields(self) if getattr(self, f.name) != getattr(usual, f.name)]
