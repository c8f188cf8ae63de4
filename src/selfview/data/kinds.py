"""Which kind of files a path holds, and the readers and preparations of each kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from selfview.data import arrays, audio, images, imzml, tables, texts
from selfview.data.dataset import Dataset
from selfview.data.folders import files_under
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
    **dict.fromkeys(audio.SUFFIXES, audio.fit_audio),
    **dict.fromkeys(images.SUFFIXES, images.fit_images),
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
    **dict.fromkeys(audio.SUFFIXES, frozenset({"labels_from_name"})),
    **dict.fromkeys(images.SUFFIXES, frozenset({"labels_from_name", "image_size"})),
    ".imzml": frozenset({"mz_range", "bins"}),
}

_IDX_NAME = re.compile(r"(-|\.)idx\d?(-u?byte)?(\.gz)?$|ubyte(\.gz)?$", re.IGNORECASE)
# What a folder may hold, and the suffix that stands for it. Texts come last: of as many notes or
# captions as pictures, the pictures are meant.
_FOLDER_KINDS = {".wav": audio.SUFFIXES, ".png": images.SUFFIXES, ".txt": texts.SUFFIXES}


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
    """The kind that most of the folder's files are of."""
    found = [file.suffix.lower() for file in files_under(path)]
    counts = {
        kind: sum(suffix in suffixes for suffix in found)
        for kind, suffixes in _FOLDER_KINDS.items()
    }
    most = max(counts.values())
    if most == 0:
        known = ", ".join(suffix for kinds in _FOLDER_KINDS.values() for suffix in kinds)
        raise InputError(f"{path} holds no {known} files")
    if counts[".wav"] == counts[".png"] == most:
        raise InputError(
            f"{path} holds as many recordings as pictures ({most} each); give a folder of one kind"
        )
    return next(kind for kind, count in counts.items() if count == most)
