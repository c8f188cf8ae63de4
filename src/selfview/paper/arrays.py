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


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write named arrays, whole or not at all."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    write_file(path, buffer.getvalue())


def read_arrays(path: Path) -> Arrays | None:
    """The arrays of a file, or None if it is missing or damaged."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, KeyError, EOFError, AttributeError):
        return None
    except (zipfile.BadZipFile, zlib.error, NotImplementedError):
        return None
