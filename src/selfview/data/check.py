"""What can be checked of a dataset: the checksums of its files, the size and norm of its rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from selfview.data.dataset import Dataset, Rows
from selfview.data.downloads import KNOWN_COPIES
from selfview.data.named import entry_of, load_dataset, place_of
from selfview.errors import SelfViewError


@dataclass(frozen=True)
class Finding:
    """One line of a check; `ok` is None where there is nothing to compare with."""

    ok: bool | None
    text: str


# Rows, features and mean norm, measured on files whose checksums are known.
EXPECTED: dict[str, tuple[int, int, float]] = {
    "digits": (1797, 64, 3.864),
    "fashion-mnist": (70_000, 784, 12.153),
    "mnist": (70_000, 784, 9.226),
    "20news": (17_027, 2000, 44.721),
    "reuters": (10_000, 746, 27.313),
    "fsdd": (3000, 2304, 26.692),
    "msi": (34_732, 79, 1.048),
    "synthetic-msi": (6400, 1024, 5.273),
}
_SELFVIEW_DATA_ONLY = ("reuters", "msi")  # the official files give other rows


def check(name: str) -> Iterator[Finding]:
    """Findings about a dataset: each file's checksum, then the size and norm of its rows."""
    entry = entry_of(name)
    place = place_of(entry)
    if place.source == "to be downloaded":
        yield Finding(False, f"not here yet: selfview data get {name}")
        return
    try:
        official = {file.name: file.checksum for file in entry.remote}
        for file in place.names:
            yield _compare(place.folder / file, file, official.get(file))
        dataset = load_dataset(name)
    except SelfViewError as error:
        yield Finding(False, str(error))
        return
    yield from _check_rows(dataset)


def _compare(path: Path, name: str, checksum: str | None) -> Finding:
    algorithm, _, value = (checksum or "").partition(":")
    if value and _digest(path, algorithm) == value:
        return Finding(True, f"{name}: the official file, by its {algorithm}")
    copy = KNOWN_COPIES.get(name)
    if copy is not None and _digest(path, "sha256").startswith(copy):
        return Finding(True, f"{name}: a known good copy, by its sha256")
    return Finding(None, f"{name}: no known checksum; compare the rows below")


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def _check_rows(dataset: Dataset) -> Iterator[Finding]:
    n, features = len(dataset), int(np.prod(dataset.X.shape[1:]))
    norm = mean_norm(dataset.X)
    found = f"{n:,} rows of {features:,} numbers, mean norm {norm:.3f}"
    other = dataset.name in _SELFVIEW_DATA_ONLY and dataset.source != "SELFVIEW_DATA"
    if other or dataset.name not in EXPECTED:
        yield Finding(None, f"{found}; no known values to compare with")
        return
    rows, columns, length = EXPECTED[dataset.name]
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
