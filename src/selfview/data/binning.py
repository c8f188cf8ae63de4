"""Spectra summed into bins, written block by block to a file: flat memory whatever comes in."""

from __future__ import annotations

import json
import shutil
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.data.cache import DAMAGE, made_beside, working_folder
from selfview.data.dataset import Array
from selfview.data.guard import logger
from selfview.data.mapped import no_room, write_header
from selfview.data.npy import read_npy
from selfview.errors import FileFormatError

_BLOCK = 16 * 2**20

Place = Callable[[NDArray[np.float64]], NDArray[np.intp]]


@dataclass(frozen=True)
class Binned:
    """Rows divided by the maxima, which spectra they are, and what went wrong with the others."""

    X: Array
    maxima: NDArray[np.float32]
    kept: NDArray[np.intp]
    bad: list[str]


def bin_spectra(
    spectra: Any, place: Place, bins: int, maxima: NDArray[np.float32] | None, key: str
) -> Binned:
    """Sum each spectrum's intensities where `place` puts them, then divide each bin by its maximum.

    The maxima are those of these spectra unless given. Rows go to a file of the cache as they come,
    and are divided in a second pass over that file; under the same `key` they are found again.
    """
    parent = working_folder("binned")
    final = parent / key
    if final.is_dir():
        try:
            return _load(final)
        except DAMAGE as error:
            logger.info("binning again, the cache %s is damaged: %s", final, error)
            shutil.rmtree(final, ignore_errors=True)
    try:
        with made_beside(final) as folder:
            _write(folder, spectra, place, bins, maxima)
        return _load(final)
    except OSError as error:
        raise no_room(parent, error) from error


def _write(
    folder: Path, spectra: Any, place: Place, bins: int, maxima: NDArray[np.float32] | None
) -> None:
    with (folder / "X.npy").open("w+b") as stream:
        # Written over at the end, when the number of rows is known.
        start = write_header(stream, np.float32, (0, bins))
        kept, bad, found = _sum_rows(stream, spectra, place, bins)
        divisor = found if maxima is None else maxima
        _divide(stream, start, len(kept), np.where(divisor > 0, divisor, 1).astype(np.float32))
        stream.seek(0)
        if write_header(stream, np.float32, (len(kept), bins)) != start:
            raise OSError("the header grew")
    np.save(folder / "maxima.npy", divisor, allow_pickle=False)
    np.save(folder / "kept.npy", kept, allow_pickle=False)
    (folder / "bad.json").write_text(json.dumps(bad), encoding="utf-8")


def _load(folder: Path) -> Binned:
    bad = json.loads((folder / "bad.json").read_text(encoding="utf-8"))
    kept, maxima, X = (read_npy(folder / f"{name}.npy") for name in ("kept", "maxima", "X"))
    numbers = kept.dtype.kind == "i" and kept.ndim == 1 and (kept.size == 0 or kept.min() >= 0)
    if X.shape != (kept.size, maxima.size) or not numbers or not isinstance(bad, list):
        raise ValueError("its parts don't belong together")
    return Binned(X, maxima, kept, [str(reason) for reason in bad])


def _sum_rows(
    stream: BufferedRandom, spectra: Any, place: Place, bins: int
) -> tuple[NDArray[np.intp], list[str], NDArray[np.float32]]:
    kept = array("q")
    bad: list[str] = []
    maxima = np.zeros(bins, dtype=np.float32)
    axis: NDArray[np.float64] | None = None
    for index, spectrum in enumerate(spectra):
        if isinstance(spectrum, FileFormatError):
            bad.append(str(spectrum))
            continue
        mz, intensity = spectrum
        if mz is not axis:  # continuous files have one axis for all spectra
            axis, bin_of = mz, place(mz)
            inside = bin_of >= 0
        row = np.bincount(bin_of[inside], intensity[inside], minlength=bins).astype(np.float32)
        np.maximum(maxima, row, out=maxima)
        stream.write(row.tobytes())
        kept.append(index)
    return np.array(kept, dtype=np.intp), bad, maxima


def _divide(stream: BufferedRandom, start: int, n: int, divisor: NDArray[np.float32]) -> None:
    rows = max(1, _BLOCK // divisor.nbytes)
    for first in range(0, n, rows):
        stream.seek(start + first * divisor.nbytes)
        block = np.frombuffer(stream.read(min(rows, n - first) * divisor.nbytes), np.float32)
        stream.seek(start + first * divisor.nbytes)
        stream.write((block.reshape(-1, divisor.size) / divisor).tobytes())
