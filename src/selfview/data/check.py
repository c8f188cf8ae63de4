"""What can be told quickly of a dataset's files: their checksums, sizes and mean norm."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from selfview.data.dataset import Dataset, Rows
from selfview.data.fetch import RemoteFile, downloads, find_local, local_folder
from selfview.data.homes import KNOWN_COPIES
from selfview.data.named import Entry, entry_of, load_dataset
from selfview.errors import SelfViewError


@dataclass(frozen=True)
class Finding:
    """One line of a check; `ok` is None for what is said but neither right nor wrong."""

    ok: bool | None
    text: str


# Rows, features and mean norm of (dataset, source), measured on files whose checksums are known.
FIGURES: dict[tuple[str, str], tuple[int, int, float]] = {
    ("digits", "scikit-learn"): (1797, 64, 3.864),
    ("fashion-mnist", "SELFVIEW_DATA"): (70_000, 784, 12.153),
    ("fashion-mnist", "download"): (70_000, 784, 12.153),
    ("mnist", "SELFVIEW_DATA"): (70_000, 784, 9.226),
    ("mnist", "download"): (70_000, 784, 9.226),
    ("20news", "SELFVIEW_DATA"): (17_027, 2000, 44.721),
    ("20news", "download"): (17_027, 2000, 44.721),
    ("reuters", "SELFVIEW_DATA"): (10_000, 746, 27.313),
    ("fsdd", "SELFVIEW_DATA"): (3000, 2304, 26.692),
    ("fsdd", "download"): (3000, 2304, 26.692),
    ("msi", "SELFVIEW_DATA"): (34_732, 79, 1.048),
    ("synthetic-msi", "generated"): (6400, 1024, 5.273),
}


def whereabouts(entry: Entry) -> str:
    """Where the dataset would come from if it were loaded now; nothing is fetched."""
    if not entry.local:
        return entry.origin
    if any(find_local(names) for names in entry.places):
        return "SELFVIEW_DATA"
    if not entry.remote:
        return "scikit-learn's fetch_rcv1"
    here = all((downloads() / file.name).is_file() for file in entry.remote)
    return "downloaded" if here else "to be downloaded"


def check(name: str) -> Iterator[Finding]:
    """Findings about a dataset: each file's checksum, then the figures of its rows."""
    entry = entry_of(name)
    where = whereabouts(entry)
    if where == "to be downloaded":
        yield Finding(False, f"not here yet: selfview data get {name}")
        return
    try:
        yield from _check_files(entry, where)
        dataset = load_dataset(name)
    except SelfViewError as error:
        yield Finding(False, str(error))
        return
    yield from _check_rows(dataset)


def _check_files(entry: Entry, where: str) -> Iterator[Finding]:
    official = {file.name: file for file in entry.remote}
    if where == "downloaded":
        for file in entry.remote:
            yield _compare(downloads() / file.name, file.name, official)
    folder = local_folder()
    if where == "SELFVIEW_DATA" and folder is not None:
        names = next(names for names in entry.places if find_local(names))
        for name in names:
            yield _compare(folder / name, name, official)


def _compare(path: Path, name: str, official: dict[str, RemoteFile]) -> Finding:
    remote = official.get(name)
    if remote is not None and remote.checksum is not None:
        algorithm, _, value = remote.checksum.partition(":")
        if _digest(path, algorithm) == value:
            return Finding(True, f"{name}: the official file, by its {algorithm}")
    if name in KNOWN_COPIES and _digest(path, "sha256") == KNOWN_COPIES[name]:
        return Finding(True, f"{name}: a known good copy, by its sha256")
    return Finding(None, f"{name}: no checksum that is known; the figures below decide")


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def _check_rows(dataset: Dataset) -> Iterator[Finding]:
    n, features = len(dataset), int(np.prod(dataset.X.shape[1:]))
    norm = mean_norm(dataset.X)
    found = f"{n:,} rows of {features:,} numbers, mean norm {norm:.3f}"
    expected = FIGURES.get((dataset.name, dataset.source))
    if expected is None:
        yield Finding(None, f"{found}; no figures are known to compare with")
        return
    rows, columns, length = expected
    ok = (n, features) == (rows, columns) and abs(norm - length) < 2e-3 * length
    wanted = f"{rows:,} rows of {columns:,}, mean norm {length:.3f}"
    yield Finding(ok, found if ok else f"{found}; expected {wanted}")


def mean_norm(X: Rows) -> float:
    """Mean Euclidean length of the rows, a block at a time."""
    if not isinstance(X, np.ndarray):
        return float(np.sqrt(np.asarray(X.multiply(X).sum(axis=1))).mean())
    total = 0.0
    for start in range(0, len(X), 4096):
        block = X[start : start + 4096]
        total += float(np.linalg.norm(block.reshape(len(block), -1), axis=1).sum())
    return total / len(X)
