"""Small arrays beside the records, from which figures are drawn; nothing is unpickled."""

import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.paper.records import write_file

Arrays = dict[str, NDArray[Any]]

# What a figure needs of a measure: names, and how many axes each has.
NEEDED = {
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
    write_file(path, buffer.getvalue())


def read_arrays(path: Path, measure: str) -> Arrays | None:
    """The arrays of a measure, or None if their file is missing, damaged or lacks one."""
    try:
        # From memory: a damaged file would leave the handle of `load` open.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            arrays = {name: np.asarray(stored[name]) for name in stored.files}
    except (OSError, ValueError, KeyError, EOFError, AttributeError, MemoryError):
        return None
    except (zipfile.BadZipFile, zlib.error, NotImplementedError):
        return None
    whole = all(name in arrays and arrays[name].ndim == n for name, n in NEEDED[measure].items())
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
