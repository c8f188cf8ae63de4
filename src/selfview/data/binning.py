"""Spectra summed into bins, written block by block to a file: flat memory whatever comes in."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.data.arrays import read_npy
from selfview.data.cache import cache_folder
from selfview.data.dataset import Array
from selfview.data.guard import IN_MEMORY
from selfview.errors import FileFormatError

_BLOCK = 16 * 2**20


@dataclass(frozen=True)
class Binned:
    """Rows divided by the maxima, which spectra they are, and what went wrong with the others."""

    X: Array
    maxima: NDArray[np.float32]
    kept: NDArray[np.intp]
    bad: list[str]


def bin_spectra(
    spectra: Any,
    place: Callable[[NDArray[np.float64]], NDArray[np.intp]],
    bins: int,
    maxima: NDArray[np.float32] | None,
    skip_bad: bool,
) -> Binned:
    """Sum each spectrum's intensities where `place` puts them, then divide each bin by its maximum.

    The maxima are those of these spectra unless given. Rows go to a file as they come, and are
    divided in a second pass over that file; what is small comes back in memory, the rest mapped.
    """
    parent = cache_folder() / "binned"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="rows-", dir=parent))
    try:
        with (folder / "X.raw").open("w+b") as stream:
            kept, bad, found = _sum_rows(stream, spectra, place, bins)
            if bad and not skip_bad:
                kept = kept[:0]  # the caller raises; no second pass for nothing
            divisor = found if maxima is None else maxima
            _divide(stream, len(kept), np.where(divisor > 0, divisor, 1).astype(np.float32))
        X = _as_array(folder, len(kept), bins)
    finally:
        if not (folder / "X.npy").exists():
            shutil.rmtree(folder, ignore_errors=True)
    return Binned(X, divisor, kept, bad)


def _sum_rows(
    stream: BufferedRandom, spectra: Any, place: Any, bins: int
) -> tuple[NDArray[np.intp], list[str], NDArray[np.float32]]:
    kept: list[int] = []
    bad: list[str] = []
    maxima = np.zeros(bins, dtype=np.float32)
    axis: NDArray[np.float64] | None = None
    for index, spectrum in enumerate(spectra):
        if isinstance(spectrum, FileFormatError):
            bad.append(str(spectrum))
            continue
        mz, intensity = spectrum
        if mz is not axis:
            axis, bin_of = mz, place(mz)
            inside = bin_of >= 0
        row = np.bincount(bin_of[inside], intensity[inside], minlength=bins).astype(np.float32)
        np.maximum(maxima, row, out=maxima)
        stream.write(row.tobytes())
        kept.append(index)
    return np.array(kept, dtype=np.intp), bad, maxima


def _divide(stream: BufferedRandom, n: int, divisor: NDArray[np.float32]) -> None:
    rows = max(1, _BLOCK // divisor.nbytes)
    for start in range(0, n, rows):
        stream.seek(start * divisor.nbytes)
        block = np.frombuffer(stream.read(min(rows, n - start) * divisor.nbytes), np.float32)
        stream.seek(start * divisor.nbytes)
        stream.write((block.reshape(-1, divisor.size) / divisor).tobytes())


def _as_array(folder: Path, n: int, bins: int) -> Array:
    raw = folder / "X.raw"
    if n * bins * 4 <= IN_MEMORY:
        return np.fromfile(raw, np.float32, n * bins).reshape(n, bins)
    with (folder / "X.part").open("wb") as target, raw.open("rb") as rows:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, bins)}
        np.lib.format.write_array_header_1_0(target, header)
        shutil.copyfileobj(rows, target, _BLOCK)
    raw.unlink()
    (folder / "X.part").rename(folder / "X.npy")
    return read_npy(folder / "X.npy")
