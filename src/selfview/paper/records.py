"""Records on disk: one line of JSON for each fit, with everything that is known of it.

The newest line of a key counts. Lines are appended in one write under a lock, so that many
processes, and machines whose file system has locks, can share a folder. A line that can't be read
is reported and its fit counts as missing; nothing in the file is ever changed.
"""

import json
import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selfview.errors import SelfViewError
from selfview.paper.grid import Fit
from selfview.paper.methods import METHODS

RECORDS = "records.jsonl"
EXTRAS = "arrays"  # small arrays that figures are drawn from
FORMAT = 1


class RecordError(SelfViewError, OSError):
    """A record can't be written."""


@dataclass(frozen=True)
class Record:
    """What came of a fit."""

    key: str
    fit: Mapping[str, Any]  # dataset, method, settings, seed, epochs, rows
    budget: str  # that it was first run for
    error: str = ""  # of training; then all below but the provenance is empty
    scores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by measure
    data: Mapping[str, Any] = field(default_factory=dict)  # rows, shape, source
    parameters: Mapping[str, Any] = field(default_factory=dict)  # all of the estimator's
    resolved: Mapping[str, Any] = field(default_factory=dict)  # what "auto" became
    history: tuple[Mapping[str, Any], ...] = ()  # thinned, the first and last epoch always kept
    health: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0  # of fit and transform
    notes: tuple[str, ...] = ()  # warnings
    provenance: Mapping[str, Any] = field(default_factory=dict)  # commit, versions, machine, when

    def value(self, measure: str, name: str) -> float | None:
        """A number of a measure, or None where there is none."""
        value = self.scores.get(measure, {}).get("values", {}).get(name)
        return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


@dataclass(frozen=True)
class Shelf:
    """All that is on record in a folder, and what could not be read."""

    folder: Path
    records: Mapping[str, Record]
    problems: tuple[str, ...] = ()

    def find(self, fit: Fit) -> Record | None:
        """The record of a fit: of this version of its method, or of the newest before it."""
        versions = range(METHODS[fit.method].version, 0, -1)
        keys = (fit.key_of(version) for version in versions)
        return next((self.records[key] for key in keys if key in self.records), None)

    def budget(self) -> str:
        """The budget that the records are of: "converged" if any is, else that of most."""
        names = Counter(record.budget for record in self.records.values())
        return (
            "converged"
            if "converged" in names
            else max(names, key=lambda name: names[name], default="laptop")
        )

    def array_path(self, key: str, measure: str) -> Path:
        """Where the arrays of a measure are kept."""
        return self.folder / EXTRAS / f"{key}-{measure}.npz"


def home_of(budget: str) -> Path:
    """Where records are unless one says otherwise: those of `converged` are committed."""
    return Path("results" if budget == "converged" else f"runs/{budget}")


def read_shelf(folder: Path) -> Shelf:
    """The records of a folder; of several lines with one key the last that can be read."""
    path = folder / RECORDS
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return Shelf(folder, {})
    except OSError as error:
        raise RecordError(f"{path} can't be read: {error.strerror or error}") from error
    records: dict[str, Record] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = _parsed(line)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            told = " ".join(str(error).split())[:120] or type(error).__name__
            problems.append(f"{path}, line {number}: can't be read and counts as not run ({told})")
            continue
        records[record.key] = record
    return Shelf(folder, records, tuple(problems))


def _parsed(line: bytes) -> Record:
    content = json.loads(line)
    if not isinstance(content, dict):
        raise ValueError("not an object")
    version = content.pop("format", None)
    if version != FORMAT:
        raise ValueError(f"format {version!r}, and this selfview reads {FORMAT}")
    record = Record(**content)
    if not (isinstance(record.key, str) and isinstance(record.error, str)):
        raise ValueError("key and error must be strings")
    for name in ("fit", "scores", "data", "parameters", "resolved", "health", "provenance"):
        if not isinstance(getattr(record, name), dict):
            raise ValueError(f"{name} must be an object")
    if isinstance(record.seconds, bool) or not isinstance(record.seconds, int | float):
        raise ValueError("seconds must be a number")
    if {"dataset", "method", "settings", "seed", "epochs", "rows"} - set(record.fit):
        raise ValueError("fit lacks a part")
    for score in record.scores.values():
        if not isinstance(score, dict) or not isinstance(score.get("values", {}), dict):
            raise ValueError("a score must be an object with values")
    return record


def check_writable(folder: Path) -> None:
    """Raise if no record could be added to the folder: better before a training than after it."""
    with _opened(folder):
        pass


def append(folder: Path, record: Record) -> None:
    """Add a record: one write of one line under a lock, on the disk when this returns."""
    content = {"format": FORMAT, **{name: getattr(record, name) for name in _FIELDS}}
    line = json.dumps(plain(content), ensure_ascii=False, allow_nan=False).encode() + b"\n"
    with _opened(folder) as handle:
        _lock(handle)
        size = os.fstat(handle).st_size
        # After a line that a crash cut short, on a new line.
        cut = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        data = b"\n" * cut + line
        if os.write(handle, data) != len(data):
            raise OSError("the disk is full")
        os.fsync(handle)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """The folder's records, to be added to."""
    path = folder / RECORDS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            yield handle
        finally:
            os.close(handle)  # and with it the lock
    except OSError as error:
        raise RecordError(f"{path} can't be written: {error.strerror or error}") from error


_FIELDS = tuple(Record.__dataclass_fields__)


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # not POSIX: appends are still single writes
        return
    fcntl.flock(handle, fcntl.LOCK_EX)


def plain(value: Any) -> Any:
    """`value` as JSON has it: numbers that are not finite become null, all else unknown a string.

    >>> plain({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "item"):  # numpy's numbers
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def write_file(path: Path, data: bytes) -> None:
    """Put `data` at `path` so that a reader sees all of it or nothing; needs no torch."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise RecordError(f"{path} can't be written: {error.strerror or error}") from error
