"""What a row shows when it is looked at: a picture, a recording, a text, a spectrum."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from selfview.data import Dataset
from selfview.data.anndata_files import AnnDataPreparation
from selfview.data.audio import AudioPreparation
from selfview.data.spectra import ImzMLPreparation, PeakPreparation
from selfview.data.tables import TableFilePreparation
from selfview.data.texts import TextPreparation
from selfview.report import pictures, sounds

# Bytes, so that 10,000 rows of any kind, the plotting library and all else stay under 8 MB.
PICTURES = 3_200_000
SPECTROGRAMS = 900_000
SOUNDS = 2_600_000
PROFILES = 1_600_000
TEXTS = 30_000  # rows
TEXT_BYTES = 6_000_000  # of all texts, before compression
TEXT_LENGTH = 160  # of a text where so many would be too much
WHOLE = 4_000  # characters of a text at most
PROFILE_POINTS = 128
_WORDS = 8


@dataclass(frozen=True)
class Content:
    """Facts and arrays for the page, and sentences on what was left out."""

    kinds: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __or__(self, other: "Content") -> "Content":
        return Content(
            self.kinds + other.kinds,
            self.facts | other.facts,
            self.arrays | other.arrays,
            self.notes + other.notes,
        )


def content_of(dataset: Dataset) -> Content:
    """What the rows of a dataset can show, within the budgets above."""
    how = dataset.preparation
    if isinstance(how, AudioPreparation):
        return _sounds(dataset) | _pictures(dataset, SPECTROGRAMS)
    if dataset.snippets is not None or isinstance(how, TextPreparation):
        return _texts(dataset)
    if isinstance(how, AnnDataPreparation) and how.variables and not how.mz:
        return _texts(dataset)
    if issparse(dataset.X):
        return Content(notes=("Sparse rows without a text have no content to show.",))
    if is_image(dataset):
        return _pictures(dataset, PICTURES)
    if isinstance(how, TableFilePreparation) and how.mixed is not None:
        return Content()  # the panel lists its columns
    return _profiles(dataset)


def is_image(dataset: Dataset) -> bool:
    """Whether rows have a height and a width."""
    return len(dataset.shape) in (2, 3) and min(dataset.shape[-2:]) > 1


def axis_of(dataset: Dataset) -> tuple[NDArray[np.float64], str]:
    """Where the features of a row lie on an axis, and the axis's name."""
    how = dataset.preparation
    if isinstance(how, ImzMLPreparation):
        return how.centres, "m/z"
    if isinstance(how, PeakPreparation) or (isinstance(how, AnnDataPreparation) and how.mz):
        return np.asarray(how.mz, dtype=np.float64), "m/z"
    return np.arange(1.0, int(np.prod(dataset.shape)) + 1), "feature"


def scale_of(dataset: Dataset) -> NDArray[np.float64]:
    """What 1 is in each feature of the rows, in the unit of the data."""
    how = dataset.preparation
    if isinstance(how, TableFilePreparation) and how.mixed is not None:
        return np.array(how.mixed.units)
    if isinstance(how, ImzMLPreparation | PeakPreparation):
        return np.asarray(how.maxima, dtype=np.float64)
    return np.ones(int(np.prod(dataset.shape)))


def _pictures(dataset: Dataset, budget: int) -> Content:
    shape = dataset.shape
    images: Any = dataset.X
    sound = isinstance(dataset.preparation, AudioPreparation)
    if sound:  # time runs to the right, frequency upwards
        images = np.asarray(images).reshape(-1, *shape)[:, :, ::-1].swapaxes(1, 2)
        shape = shape[::-1]
    sheets = pictures.draw_sheets(images, shape, budget, side=24 if sound else pictures.SIDE)
    facts = {
        "sheets": len(sheets.sheets),
        "across": sheets.across,
        "sheet": pictures.SHEET,
        "width": sheets.width,
        "height": sheets.height,
        "what": "spectrogram" if sound else "picture",
    }
    arrays: dict[str, NDArray[Any]] = {
        f"sheet{i}": np.frombuffer(sheet, np.uint8) for i, sheet in enumerate(sheets.sheets)
    }
    arrays["pictureRows"] = sheets.rows
    notes = _share("A picture", len(sheets.rows), len(dataset))
    return Content(("image",), {"image": facts}, arrays, notes)


def _sounds(dataset: Dataset) -> Content:
    found = sounds.record(dataset, SOUNDS)
    if found is None:
        return Content(notes=("The recordings were not at hand, so none can be played.",))
    arrays: dict[str, NDArray[Any]] = {
        "sounds": np.frombuffer(found.data, np.uint8),
        "soundStarts": found.starts,
        "soundRows": found.rows,
    }
    notes = _share("A recording", len(found.rows), len(dataset))
    notes += (f"Recordings are kept at 8 kHz, up to {sounds.SECONDS:g} seconds of each.",)
    return Content(("audio",), {"audio": {"rate": sounds.RATE}}, arrays, notes)


def _texts(dataset: Dataset) -> Content:
    rows = pictures.evenly_spaced(len(dataset), TEXTS)
    how = dataset.preparation
    if dataset.snippets is not None:
        length = max(TEXT_LENGTH, min(WHOLE, TEXT_BYTES // max(1, len(rows))))
        values, what = [_cut(str(dataset.snippets[i]), length) for i in rows], "text"
    elif isinstance(how, TextPreparation):
        matrix: Any = dataset.X
        values, what = [_top_words(matrix[i], how.vocabulary) for i in rows], "words of most weight"
    elif isinstance(how, AnnDataPreparation):  # genes, by their counts
        cells: Any = dataset.X
        sparse = (csr_matrix(cells[i]) for i in rows)
        values, what = [_top_words(row, how.variables) for row in sparse], "highest variables"
    notes = _share("A text", len(rows), len(dataset))
    facts = {"what": what, "values": values}
    return Content(("text",), {"text": facts}, {"textRows": rows}, notes)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _top_words(row: Any, vocabulary: tuple[str, ...]) -> str:
    order = np.argsort(-row.data, kind="stable")[:_WORDS]
    return ", ".join(vocabulary[row.indices[i]] for i in order)


def _profiles(dataset: Dataset) -> Content:
    """Every row as a line of at most 128 points, the highest value of each stretch kept."""
    n, dim = len(dataset), int(np.prod(dataset.shape))
    axis, title = axis_of(dataset)
    points = min(dim, PROFILE_POINTS)
    rows = pictures.evenly_spaced(n, PROFILES // points)
    values = np.asarray(dataset.X[rows], dtype=np.float64).reshape(len(rows), dim)
    what = "spectrum" if title == "m/z" else "values"
    names: list[str] = []
    if isinstance(dataset.preparation, TableFilePreparation) and dim <= PROFILE_POINTS:
        deviation = values.std(axis=0)
        values = (values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
        what, names = "values, in standard deviations from the mean", _names(dataset)
    else:
        values = values * scale_of(dataset)
    order = np.argsort(axis, kind="stable")
    starts = np.arange(points) * dim // points
    low = np.minimum(values.min(axis=1), 0)
    values = np.maximum.reduceat(values[:, order], starts, axis=1)
    high = np.maximum(values.max(axis=1), low + 1e-12)
    codes = np.rint((values - low[:, None]) / (high - low)[:, None] * 255).clip(0, 255)
    arrays: dict[str, NDArray[Any]] = {
        "profiles": codes.astype(np.uint8),
        "profileLow": low.astype(np.float32),
        "profileHigh": high.astype(np.float32),
        "profileAxis": (np.add.reduceat(axis[order], starts) / np.diff([*starts, dim])).astype(
            np.float32
        ),
        "profileRows": rows,
    }
    notes = _share("A line of values", len(rows), n)
    if points < dim:
        notes += (f"Lines hold {points} points; each is the highest of about {dim / points:.2g}.",)
    facts = {"what": what, "axis": title, "names": names, "peaks": _are_peaks(dataset)}
    return Content(("spectrum",), {"spectrum": facts}, arrays, notes)


def _names(dataset: Dataset) -> list[str]:
    how = dataset.preparation
    return list(how.feature_names) if isinstance(how, TableFilePreparation) else []


def _are_peaks(dataset: Dataset) -> bool:
    return isinstance(dataset.preparation, PeakPreparation)


def _share(what: str, kept: int, n: int) -> tuple[str, ...]:
    return () if kept == n else (f"{what} is kept for {kept:,} of the {n:,} rows, evenly spaced.",)
