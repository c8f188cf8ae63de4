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

READERS: dict[str, Callable[[Path, Options], Dataset]] = {
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
}

_IDX_NAME = re.compile(r"(-|\.)idx\d?(-u?byte)?(\.gz)?$|ubyte(\.gz)?$", re.IGNORECASE)
_FOLDER_KINDS = (".wav", ".txt", ".png", ".jpg", ".jpeg")


def is_idx(path: Path) -> bool:
    """Whether the name is that of an IDX file: ``train-images-idx3-ubyte.gz`` and the like."""
    return path.suffix.lower() == ".gz" or bool(_IDX_NAME.search(path.name))


def reader_of(path: Path) -> Callable[[Path, Options], Dataset]:
    """The reader for what the path holds, by suffix or by a folder's content."""
    if path.is_dir():
        return READERS[_suffix_of_folder(path)]
    suffix = path.suffix.lower()
    if suffix in READERS:
        return READERS[suffix]
    if is_idx(path):
        return images.fit_idx
    known = ", ".join(sorted(READERS))
    raise InputError(f"{path}: files of this kind can't be read; known are {known} and IDX .gz")


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
