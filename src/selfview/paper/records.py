"""Records on disk: one line of JSON for each fit, and small arrays beside them for the figures.

The newest line of a key counts. Lines are appended in one write under a lock, so that many
processes, and machines whose file system has locks, can share a folder. A line that can't be read
is reported and its fit counts as missing; nothing in the file is ever changed. No array is
unpickled.
"""

import io
import json
import math
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from filelock import lock_descriptor
from numpy.typing import NDArray

from selfview.errors import SelfViewError
from selfview.paper.grid import Fit
from selfview.paper.metrics import VERSIONS
from selfview.saving.files import unwritable, write_bytes

RECORDS, ARRAYS = "records.jsonl", "arrays"
FORMAT = 1

Parsed = TypeVar("Parsed")
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Record:
    """The result of a fit."""

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
        """A number of a measure as it is taken now, or None where there is none."""
        score = self.scores.get(measure, {})
        current = score.get("version") == VERSIONS[measure]
        value = score.get("values", {}).get(name) if current else None
        return float(value) if isinstance(value, int | float) and math.isfinite(value) else None

    def curve(self) -> list[tuple[int, float]]:
        """Epochs and percents of the linear probe, where it was taken while training."""
        values = self.scores.get("curve", {}).get("values", {})
        epochs = sorted(int(epoch) for epoch in values if epoch.isdecimal())
        found = [(epoch, self.value("curve", str(epoch))) for epoch in epochs]
        return [(epoch, 100 * value) for epoch, value in found if value is not None]


@dataclass(frozen=True)
class Shelf:
    """The records of a folder, and the lines that could not be read."""

    folder: Path
    records: Mapping[str, Record]
    problems: tuple[str, ...] = ()

    def find(self, fit: Fit) -> Record | None:
        """The record of a fit, or None."""
        return self.records.get(fit.key)

    def budget(self) -> str:
        """The budget that the records are of: "converged" if any is, else that of most."""
        names = Counter(record.budget for record in self.records.values())
        return (
            "converged"
            if "converged" in names
            else max(names, key=names.__getitem__, default="laptop")
        )

    def array_path(self, key: str, measure: str) -> Path:
        """Where the arrays of a measure are kept."""
        return self.folder / ARRAYS / f"{key}-{measure}.npz"


def home_of(budget: str) -> Path:
    """The folder of a budget's records by default; those of `converged` are committed."""
    return Path("results" if budget == "converged" else f"runs/{budget}")


def read_shelf(folder: Path) -> Shelf:
    """The records of a folder; of several lines with one key the last that can be read."""
    records, problems = read_lines(folder / RECORDS, _record)
    return Shelf(folder, {record.key: record for record in records}, problems)


def append(folder: Path, record: Record) -> None:
    """Add a record to a folder."""
    append_line(folder / RECORDS, {"format": FORMAT, **vars(record)})


def _record(content: dict[str, Any]) -> Record:
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


def read_lines(
    path: Path, parse: Callable[[dict[str, Any]], Parsed]
) -> tuple[list[Parsed], tuple[str, ...]]:
    """What the lines of a file of JSON objects hold, and which of them can't be read."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [], ()
    found, problems = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
            if not isinstance(content, dict):
                raise ValueError("not an object")
            found.append(parse(content))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            reason = " ".join(str(error).split())[:120] or type(error).__name__
            problems.append(
                f"{path}, line {number}: can't be read and counts as not run ({reason})"
            )
    return found, tuple(problems)


def append_line(path: Path, content: Mapping[str, Any]) -> None:
    """Add an object to a file of JSON lines; it is on the disk when this returns."""
    line = json.dumps(plain(content), ensure_ascii=False, allow_nan=False).encode() + b"\n"
    with opened(path) as handle:
        lock_descriptor(handle)
        size = os.fstat(handle).st_size
        # After a line that a crash cut short, on a new line.
        cut = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        data = b"\n" * cut + line
        if os.write(handle, data) != len(data):
            raise OSError("the disk is full")
        os.fsync(handle)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A file that can be added to."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            yield handle
        finally:
            os.close(handle)  # and with it the lock
    except OSError as error:
        raise unwritable(path, error) from error


def one_line(error: Exception) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, SelfViewError) else f"{type(error).__name__}: {text}"


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


# The arrays of a measure that a figure draws: how many axes each has.
_AXES = {
    "layout": {"points": 2, "labels": 1, "classes": 1},
    "transport": {
        "temperatures": 1,
        "target_entropies": 1,
        "prediction_entropy": 0,
        "prediction": 1,
        "shown": 1,
        "targets": 2,
    },
}


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write named arrays, whole or not at all."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    write_bytes(path, buffer.getvalue())


def read_arrays(path: Path, measure: str) -> Arrays | None:
    """The arrays of a measure, or None if their file is missing, damaged or of other shapes."""
    try:
        # From memory: a damaged file would leave the handle of `load` open.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            arrays = {name: np.asarray(stored[name]) for name in stored.files}
        whole = all(arrays[name].ndim == axes for name, axes in _AXES[measure].items())
    except (OSError, ValueError, KeyError, EOFError, AttributeError, MemoryError):
        return None
    except (zipfile.BadZipFile, zlib.error, NotImplementedError):
        return None
    return arrays if whole and _fit_together(arrays, measure) else None


def _fit_together(arrays: Arrays, measure: str) -> bool:
    shape = {name: array.shape for name, array in arrays.items()}
    if measure == "layout":
        n = len(arrays["labels"])
        further = [size for name, size in shape.items() if name.startswith("further.")]
        return n > 0 and shape["points"] == (n, 2) and all(size == (n,) for size in further)
    return (
        shape["temperatures"] == shape["target_entropies"]
        and shape["targets"] == shape["shown"] + shape["prediction"]
        and 0 not in shape["temperatures"] + shape["targets"]
    )
