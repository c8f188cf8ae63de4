"""Rows of mass-spectrometry images: intensities summed in m/z bins or at given peaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from selfview.data.cache import cache_key, cached
from selfview.data.dataset import Array, Dataset, Options
from selfview.data.guard import report_bad_rows
from selfview.data.imzml import OpenImzML
from selfview.data.npy import blocks_of, write_rows
from selfview.data.preparation import Preparation
from selfview.errors import FileFormatError, InputError


@dataclass(frozen=True, eq=False)
class ImzMLPreparation(Preparation):
    """Intensities summed in equal m/z bins, each bin divided by its maximum at fit time."""

    mz_range: tuple[float, float]
    bins: int
    maxima: NDArray[np.float32]

    kind: ClassVar[str] = "imzml"
    suffixes: ClassVar[str] = ".imzML with its .ibd"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.bins,)

    @property
    def centres(self) -> NDArray[np.float64]:
        """The m/z in the middle of each bin."""
        edges = np.linspace(*self.mz_range, self.bins + 1)
        return np.asarray((edges[1:] + edges[:-1]) / 2)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(f"m/z {mz:.2f}" for mz in self.centres)

    def consistent(self) -> bool:
        low, high = self.mz_range
        return self.maxima.shape == (self.bins,) and 0 <= low < high

    def read_files(self, path: Path, options: Options) -> Dataset:
        place = equal_bins(self.mz_range, self.bins)
        return _dataset(path, place, options, self)


@dataclass(frozen=True, eq=False)
class PeakPreparation(Preparation):
    """Intensities at given peaks (within a tolerance), each divided by its maximum at fit time."""

    mz: NDArray[np.float64]
    maxima: NDArray[np.float32]
    ppm: float = 10.0

    kind: ClassVar[str] = "peaks"
    suffixes: ClassVar[str] = ".imzML with its .ibd"

    @property
    def shape(self) -> tuple[int, ...]:
        return (int(self.mz.size),)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(f"m/z {mz:.2f}" for mz in self.mz)

    def consistent(self) -> bool:
        return self.mz.size == self.maxima.size

    def read_files(self, path: Path, options: Options) -> Dataset:
        return _dataset(path, nearest_peak(self.mz, self.ppm), options, self)


def fit_imzml(path: Path, options: Options) -> Dataset:
    """Rows of an imzML file binned as the paper's: 50 to 1000 m/z in 1024 bins by default."""
    low, high = options.mz_range
    if not 0 <= low < high < float("inf"):
        raise InputError(f"mz_range must be (low, high) with 0 <= low < high, got {(low, high)}")
    if not 1 <= options.bins <= 10_000_000:
        raise InputError(f"bins must be between 1 and 10,000,000, got {options.bins}")
    return _dataset(path, equal_bins((low, high), options.bins), options, None)


@dataclass(frozen=True)
class Bins:
    """Where m/z values are summed: `place` gives the bin of each value, -1 outside all bins."""

    count: int
    place: Callable[[NDArray[np.float64]], NDArray[np.intp]]
    facts: tuple[object, ...]  # that decide the bins, for the cache


def equal_bins(mz_range: tuple[float, float], count: int) -> Bins:
    """Equal bins over a range; the last bin includes its upper edge."""
    low, high = mz_range

    def place(mz: NDArray[np.float64]) -> NDArray[np.intp]:
        inside = (mz >= low) & (mz <= high)
        bins = (np.where(inside, mz, low) - low) / (high - low) * count
        return np.where(inside, np.minimum(bins.astype(np.intp), count - 1), -1)

    return Bins(count, place, (low, high, count))


def nearest_peak(peaks: NDArray[np.float64], ppm: float) -> Bins:
    """The nearest of some peaks, where it lies within the tolerance."""
    order = np.argsort(peaks)
    ordered = peaks[order]
    middles = (ordered[1:] + ordered[:-1]) / 2

    def place(mz: NDArray[np.float64]) -> NDArray[np.intp]:
        near = np.searchsorted(middles, mz)
        close = np.abs(mz - ordered[near]) <= ppm * 1e-6 * ordered[near]
        return np.where(close, order[near], -1)

    return Bins(peaks.size, place, (peaks.tobytes(), ppm))


def _dataset(path: Path, bins: Bins, options: Options, fitted: Any | None) -> Dataset:
    maxima = None if fitted is None else fitted.maxima
    with OpenImzML(path) as image:
        given = b"" if maxima is None else maxima.tobytes()
        key = cache_key([image.path, image.ibd], bins.facts, given)
        binned = cached("binned", key, lambda f: _write(f, image, bins, maxima), lambda e: e)
    bad, arrays = binned.facts, binned.arrays
    messages = report_bad_rows(path, bad, len(image.coordinates), options.skip_bad)
    low, high = options.mz_range
    how = fitted or ImzMLPreparation((float(low), float(high)), bins.count, arrays["maxima"])
    return Dataset(
        name=path.name, X=arrays["X"], coordinates=image.coordinates[arrays["kept"]],
        source=f"path {path}", preparation=how, skipped=tuple(bad),
        messages=image.messages + messages,
    )  # fmt: skip


def _write(
    folder: Path, spectra: OpenImzML, bins: Bins, maxima: NDArray[np.float32] | None
) -> list[str]:
    """Sum each spectrum's intensities in its bins, then divide each bin by its maximum.

    The maxima are those of these spectra unless given. Returns why spectra were left out.
    """
    kept: list[int] = []
    bad: list[str] = []
    found = np.zeros(bins.count, dtype=np.float32)

    def rows() -> Iterator[Array]:
        axis: NDArray[np.float64] | None = None
        for index, spectrum in enumerate(spectra):
            if isinstance(spectrum, FileFormatError):
                bad.append(str(spectrum))
                continue
            mz, intensity = spectrum
            if mz is not axis:  # continuous files have one axis for all spectra
                axis, bin_of = mz, bins.place(mz)
                inside = bin_of >= 0
            row = np.bincount(bin_of[inside], intensity[inside], minlength=bins.count)
            row = row.astype(np.float32)
            np.maximum(found, row, out=found)
            kept.append(index)
            yield row[None]

    write_rows(folder / "X.npy", (bins.count,), np.float32, rows())
    divisor = found if maxima is None else maxima
    X = np.load(folder / "X.npy", mmap_mode="r+")
    for start, block in blocks_of(X):
        X[start : start + len(block)] = block / np.where(divisor > 0, divisor, 1)
    np.save(folder / "maxima.npy", divisor, allow_pickle=False)
    np.save(folder / "kept.npy", np.array(kept, dtype=np.int64), allow_pickle=False)
    return bad
