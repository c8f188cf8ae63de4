"""Which kind of files a path holds, and the readers and preparations of each kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from selfview.data import arrays, audio, images, imzml, tables, texts
from selfview.data.dataset import Dataset
from selfview.data.preparation import Options, Preparation
from selfview.errors import InputError

KINDS: dict[str, type[Preparation]] = {
    "array": arrays.ArrayPreparation,
    "audio": audio.AudioPreparation,
    "images": images.ImagePreparation,
    "imzml": imzml.ImzMLPreparation,
    "peaks": imzml.PeakPreparation,
    "table": tables.TablePreparation,
    "text": texts.TextPreparation,
}

Reader = Callable[[Path, Options], Dataset]

READERS: dict[str, Reader] = {
    ".npy": arrays.fit_array,
    ".npz": arrays.fit_array,
    ".mtx": arrays.fit_array,
    ".csv": tables.fit_table,
    ".tsv": tables.fit_table,
    ".parquet": tables.fit_table,
    ".jsonl": texts.fit_text,
    ".txt": texts.fit_text,
    ".wav": audio.fit_audio,
    ".png": images.fit_images,
    ".jpg": images.fit_images,
    ".jpeg": images.fit_images,
    ".imzml": imzml.fit_imzml,
    ".gz": images.fit_idx,
}

# The options that mean something for each kind, besides skip_bad.
_MEANT: dict[str, frozenset[str]] = {
    ".npz": frozenset({"array", "label", "id"}),
    ".csv": frozenset({"label", "id", "header"}),
    ".tsv": frozenset({"label", "id", "header"}),
    ".parquet": frozenset({"label", "id"}),
    ".jsonl": frozenset({"label", "id", "text", "vocabulary", "min_words"}),
    ".txt": frozenset({"labels_from_name", "vocabulary", "min_words"}),
    ".wav": frozenset({"labels_from_name"}),
    ".png": frozenset({"labels_from_name", "image_size"}),
    ".jpg": frozenset({"labels_from_name", "image_size"}),
    ".jpeg": frozenset({"labels_from_name", "image_size"}),
    ".imzml": frozenset({"mz_range", "bins"}),
}

_IDX_NAME = re.compile(r"(-|\.)idx\d?(-u?byte)?(\.gz)?$|ubyte(\.gz)?$", re.IGNORECASE)
_FOLDER_KINDS = (".wav", ".txt", ".png", ".jpg", ".jpeg")


def is_idx(path: Path) -> bool:
    """Whether the name is that of an IDX file: ``train-images-idx3-ubyte.gz`` and the like."""
    return path.suffix.lower() == ".gz" or bool(_IDX_NAME.search(path.name))


def read_path(path: Path, options: Options) -> Dataset:
    """The rows of what the path holds, by its suffix or by a folder's content."""
    kind = _suffix_of_folder(path) if path.is_dir() else path.suffix.lower()
    if kind not in READERS and is_idx(path):
        kind = ".gz"
    if kind == ".gz" and Path(path.stem).suffix.lower() in READERS:
        raise InputError(f"{path} is packed, and only IDX files are read so: unpack it first")
    if kind not in READERS:
        known = ", ".join(sorted(READERS))
        raise InputError(f"{path}: files of this kind can't be read; known are {known}")
    meant = _MEANT.get(kind, frozenset())
    wrong = [name for name in options.given() if name not in meant]
    if wrong:
        possible = f"; possible are {', '.join(sorted(meant))}" if meant else ""
        raise InputError(f"{path}: {', '.join(wrong)} means nothing for {kind} files{possible}")
    return READERS[kind](path, options)


def _suffix_of_folder(path: Path) -> str:
    counts: dict[str, int] = {}
    for file in path.rglob("*"):
        suffix = file.suffix.lower()
        if suffix in _FOLDER_KINDS and not file.name.startswith("."):
            family = ".png" if suffix in images.SUFFIXES else suffix
            counts[family] = counts.get(family, 0) + 1
    if not counts:
        raise InputError(f"{path} holds no .wav, .txt, .png or .jpg files")
    if len(counts) > 1:
        kinds = ", ".join(f"{n} {suffix}" for suffix, n in sorted(counts.items()))
        raise InputError(
            f"{path} holds files of several kinds ({kinds}); give a folder of one kind"
        )
    return next(iter(counts))
