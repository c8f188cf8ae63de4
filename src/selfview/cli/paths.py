"""Paths of a call, checked before anything heavy is imported, so that errors come at once."""

import os
import re
from difflib import get_close_matches
from pathlib import Path

from selfview.errors import InputError

# Of `selfview.data.DATASETS`, here again because asking it would import numpy.
NAMES = (
    *("digits", "fashion-mnist", "emnist-digits", "mnist", "20news"),
    *("reuters", "fsdd", "msi", "synthetic-msi"),
)
_GLOB = re.compile(r"[*?\[]")
_VALUES = (
    *(".txt", ".npy", ".npz", ".csv", ".tsv", ".gz"),
    *(".parquet", ".feather", ".xlsx", ".jsonl", ".json"),
)


def check_data(data: str | None) -> None:
    """Raise InputError unless this is a path that exists, a glob, or the name of a dataset."""
    if data is None or data in NAMES or "://" in data or _exists(data) or _GLOB.search(data):
        return  # an address or a glob has an error of its own, with what to do instead
    raise InputError(f"{data}: no such file or folder, and no dataset of that name{_near(data)}")


def check_file(path: Path | None) -> None:
    """Raise InputError unless the file, if one is named, exists."""
    if path is not None and not _exists(path) and ":/" not in str(path):
        raise InputError(f"{path}: no such file{_near(str(path))}")


def check_values(named: str | None) -> None:
    """Raise InputError if labels or groups are named as a file that isn't there.

    Any other word may be a column of the data.
    """
    if named is not None and (os.path.dirname(named) or named.lower().endswith(_VALUES)):
        check_file(Path(named))


def check_folder(out: Path) -> None:
    """Raise InputError if a file is where the folder should be."""
    if os.path.isfile(out):
        raise InputError(f"{out} is a file: name a folder with --out")


def check_run(run: Path) -> None:
    """Raise InputError unless the run folder exists."""
    if not _exists(run) and ":/" not in str(run):
        raise InputError(f"{run}: no such folder{_near(str(run))}")


def _exists(path: str | Path) -> bool:
    try:
        return os.path.exists(path)
    except ValueError:  # a NUL in the name
        return False


def _near(path: str) -> str:
    """A name that was likely meant: of a dataset, or of what lies in the same folder."""
    folder, name = os.path.split(path)
    try:
        there = sorted(os.listdir(folder or "."))
    except (OSError, ValueError):
        there = []
    found = get_close_matches(name, [*there, *(() if folder else NAMES)], 1, cutoff=0.75)
    return f"; did you mean {os.path.join(folder, found[0])}?" if found else ""
