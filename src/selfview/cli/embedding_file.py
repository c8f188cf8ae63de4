"""A large embedding, written block by block: in flat memory, and going on where it was stopped.

Blocks are appended to NAME.part, which is renamed to NAME when it is whole. NAME.part.json says of
which model and rows they are; a call with the same ones goes on behind the last whole block.
"""

import json
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selfview.errors import InputError

if TYPE_CHECKING:
    from selfview.method import SelfView
    from selfview.rows.base import Rows

BLOCK = 1 << 16  # rows; a multiple of what `transform` takes at a time, so that bits stay the same
MANY = 1 << 20  # rows, above which an embedding is written so
COMPARED = 64  # rows by which data are distinguished from others


def write_in_blocks(path: Path, model: "SelfView", rows: "Rows") -> int:
    """Write the embedding of `rows` to the .npy file `path`; how many rows were there already."""
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(path.name + ".part.lock"), blocking=False)
    try:
        with lock:
            done = _write(path, model, rows)
            Path(lock.lock_file).unlink(missing_ok=True)
            return done
    except Timeout as error:
        raise InputError(f"{path} is being written by another process") from error
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path} can't be written: {reason}. A new call goes on there") from error


def _write(path: Path, model: "SelfView", rows: "Rows") -> int:
    import numpy as np

    from selfview.data.npy import write_header
    from selfview.rows.in_memory import RowRange

    part, note = (path.with_name(path.name + end) for end in (".part", ".part.json"))
    about = json.dumps(_about(model, rows))
    shape = (rows.n, model.embedding_dim_)
    done = _whole_blocks(part, shape) if _says(note, about) else 0
    with part.open("r+b" if done else "wb") as file:
        start = write_header(file, np.float32, shape)
        note.write_text(about)
        file.truncate(start + done * 4 * shape[1])
        file.seek(0, os.SEEK_END)
        for first in range(done, rows.n, BLOCK):
            Z = model.transform(RowRange(rows, first, min(first + BLOCK, rows.n)))
            file.write(np.ascontiguousarray(Z, np.float32).data)
            file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    note.unlink()
    return done


def _whole_blocks(part: Path, shape: tuple[int, int]) -> int:
    """Rows of the whole blocks that a part holds."""
    import io

    import numpy as np

    from selfview.data.npy import write_header

    if not part.is_file():
        return 0
    held = part.stat().st_size - write_header(io.BytesIO(), np.float32, shape)
    return max(0, held // (4 * shape[1] * BLOCK) * BLOCK)


def _says(note: Path, about: str) -> bool:
    return note.is_file() and note.read_text(errors="replace") == about


def _about(model: "SelfView", rows: "Rows") -> dict[str, Any]:
    """What tells this embedding from another: the weights, and some of the rows."""
    import numpy as np

    weights = 0
    for tensor in model.network_.state_dict().values():
        weights = zlib.crc32(tensor.cpu().contiguous().numpy().tobytes(), weights)
    some = np.unique(np.linspace(0, rows.n - 1, COMPARED).astype(np.intp))
    sample = zlib.crc32(rows.pick(some).cpu().numpy().tobytes())
    return {"weights": weights, "rows": rows.n, "shape": list(rows.shape), "sample": sample}
