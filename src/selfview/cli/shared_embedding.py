"""An embedding on disk that many processes write together, each a range of its rows."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

from selfview.distributed import Group
from selfview.method import SelfView
from selfview.rows.base import Rows
from selfview.rows.conversion import as_rows
from selfview.rows.in_memory import RowRange
from selfview.saving.files import unwritable

PIECE = 1 << 16  # rows that are embedded before they are written


def embed_together(model: SelfView, X: Any, path: Path, group: Group) -> None:
    """Write the embedding of `X` to the .npy file `path`, which all processes must reach.

    Every process has the same fitted model and all rows. The file appears only when it is whole.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with group.all_or_none():
            rows = as_rows(X)
            if group.is_main:
                _reserve(part, (rows.n, model.embedding_dim_))
        with group.all_or_none():
            _fill(part, model, rows, group)
        with group.all_or_none():
            if group.is_main:
                os.replace(part, path)
    finally:
        if group.is_main:
            part.unlink(missing_ok=True)


def _fill(path: Path, model: SelfView, rows: Rows, group: Group) -> None:
    """Write this process's range of the rows."""
    out = np.load(path, mmap_mode="r+", allow_pickle=False)
    start, stop = (rows.n * r // group.size for r in (group.rank, group.rank + 1))
    for at in range(start, stop, PIECE):
        piece = RowRange(rows, at, min(at + PIECE, stop))
        out[at : at + piece.n] = model.transform(piece)
    out.flush()


def _reserve(path: Path, shape: tuple[int, int]) -> None:
    """Make an .npy file of float32 whose room on the disk is taken already.

    A map can't tell that the disk is full: the process would be killed.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        open_memmap(path, "w+", np.float32, shape).flush()
        if hasattr(os, "posix_fallocate"):
            with path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise unwritable(path, error) from error
