"""Files of a folder in a fixed order, one row each, with labels and groups from their names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from selfview.data.dataset import Array, Dataset, Options
from selfview.data.guard import check_allocation, notify, report_bad_rows
from selfview.data.labels import encode_labels
from selfview.errors import FileFormatError, InputError

if TYPE_CHECKING:
    from selfview.data.preparation import Preparation

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+", re.IGNORECASE)  # two letters: C:/ is a drive


def existing(source: str | os.PathLike[str]) -> Path:
    """The path of an existing file or folder."""
    if not isinstance(source, str | os.PathLike) or not str(source):
        raise InputError(f"a path or the name of a dataset is needed, got {source!r}")
    check_local(source)
    path = Path(source)
    try:
        path.stat()
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file or folder, and no dataset of that name") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} can't be read: {getattr(error, 'strerror', error)}") from error
    return path


def check_local(source: str | os.PathLike[str]) -> None:
    """Raise InputError for a URL, also one that was turned into a path."""
    found = _ADDRESS.match(str(source))
    if found:
        address = f"{found[1]}://{str(source)[found.end() :]}"
        raise InputError(
            f"{address} is an address, and only files are read: download it first, and name the "
            "file that you have then"
        )


def kind_of(path: Path) -> str:
    """The ending of a file's name in small letters; of packed text, with what is packed."""
    endings = [suffix.lower() for suffix in path.suffixes[-2:]]
    return "".join(endings) if "".join(endings) in (".csv.gz", ".tsv.gz") else path.suffix.lower()


def files_under(path: Path) -> list[Path]:
    """All files under the folder, sorted by path, without hidden ones; links aren't followed."""
    found: list[Path] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        found += [Path(folder, name) for name in names if not name.startswith(".")]
    return sorted(found, key=lambda file: file.relative_to(path).parts)


def find_files(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """The file itself, or all files of these suffixes under the folder, sorted by path."""
    if not path.is_dir():
        return [path]
    found = [file for file in files_under(path) if file.suffix.lower() in suffixes]
    if not found:
        raise InputError(f"{path} holds no {' or '.join(suffixes)} files")
    return found


def _left_out(path: Path, files: Sequence[Path]) -> tuple[str, ...]:
    """A message that names the folder's other files, if there are any."""
    if not path.is_dir():
        return ()
    taken = set(files)
    others = _names_of(path, [file for file in files_under(path) if file not in taken])
    if not others:
        return ()
    count = f"{len(others):,} file{'s' * (len(others) > 1)} of other kinds"
    more = f" and {len(others) - 3:,} more" if len(others) > 3 else ""
    return (notify(f"{path}: left out {count}: {', '.join(others[:3])}{more}"),)


def _names_of(path: Path, files: Sequence[Path]) -> list[str]:
    """File names relative to the folder that was read, with forward slashes."""
    if not path.is_dir():
        return [file.name for file in files]
    return [file.relative_to(path).as_posix() for file in files]


def _labels_of(names: Sequence[str], pattern: str | None) -> tuple[Array | None, tuple[str, ...]]:
    """Labels from file names: group 1 of the pattern, else the sub-folder if each file has one."""
    if pattern is not None:
        return encode_labels(_in_names(names, pattern, "labels_from_name"))
    found = [name.rpartition("/")[0] for name in names]
    return encode_labels(found) if all(found) else (None, ())


def _in_names(names: Sequence[str], pattern: str, option: str) -> list[str]:
    """Group 1 of the pattern in each file name."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise InputError(f"{option}={pattern!r} is no regular expression: {error}") from error
    if expression.groups < 1:
        raise InputError(f"{option}={pattern!r} needs a group: '([0-9]+)_' for '7_ann.wav'")
    what, found = option.partition("s_")[0], []
    for name in names:
        # The bare file name first, so that '^' means its start also in sub-folders.
        match = expression.search(name.rpartition("/")[2]) or expression.search(name)
        if match is None or match.group(1) is None:
            raise InputError(f"{option}={pattern!r} finds no {what} in {name!r}")
        found.append(match.group(1))
    return found


def read_each(
    path: Path, files: Sequence[Path], read: Callable[[int, Path], None], options: Options
) -> dict[str, Any]:
    """Call `read(row, file)` for each file, and return all of a `Dataset` but its rows.

    Files that can't be read are an error, or left out with `skip_bad`.
    """
    kept: list[Path] = []
    bad: list[str] = []
    for file in files:
        try:
            read(len(kept), file)
            kept.append(file)
        except (FileFormatError, InputError) as error:
            bad.append(str(error))
    messages = report_bad_rows(path, bad, len(files), options.skip_bad) + _left_out(path, files)
    names = _names_of(path, kept)
    y, classes = _labels_of(names, options.labels_from_name)
    pattern = options.groups_from_name
    groups = None if pattern is None else np.array(_in_names(names, pattern, "groups_from_name"))
    return {
        "name": path.name, "y": y, "classes": classes, "ids": np.array(names), "groups": groups,
        "source": f"path {path}", "skipped": tuple(bad), "messages": messages,
    }  # fmt: skip


def dataset_of_files(
    path: Path, files: Sequence[Path], row: Callable[[Path], Array], options: Options,
    preparation: Preparation, shape: tuple[int, ...] = (),
) -> Dataset:  # fmt: skip
    """A `Dataset` of one row per file; `shape` is the natural shape of a row if not that of X."""
    check_allocation(path, len(files) * int(np.prod(preparation.shape)) * 4)
    X = np.empty((len(files), *preparation.shape), dtype=np.float32)

    def read(i: int, file: Path) -> None:
        X[i] = row(file)

    facts = read_each(path, files, read, options)
    return Dataset(X=X[: len(facts["ids"])], preparation=preparation, shape=shape, **facts)
