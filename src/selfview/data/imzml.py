"""imzML: the spectra of a mass-spectrometry image, read one at a time so that memory stays flat.

What grows with the file is pyimzML's list of offsets and coordinates, about 0.5 kB a spectrum.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.data.dataset import Array
from selfview.data.guard import need, notify, reading, regular_file
from selfview.errors import FileFormatError, InputError

Spectrum = tuple[NDArray[np.float64], NDArray[np.float64]]
_TYPES = {"f": np.dtype("<f4"), "d": np.dtype("<f8"), "i": np.dtype("<i4"), "l": np.dtype("<i8")}


class OpenImzML:
    """An imzML file and its .ibd file; every declared offset is checked against the file's size."""

    def __init__(self, source: str | os.PathLike[str]) -> None:
        self.path = regular_file(source)
        self.ibd = _ibd_of(self.path)
        self.messages: tuple[str, ...] = ()
        parser = self._parse()
        with reading(self.path, "imzML"):  # what a damaged file leaves unsaid is None here
            self.coordinates: Array = np.asarray(parser.coordinates)[:, :2]
            self._mz = np.array([parser.mzOffsets, parser.mzLengths], np.int64)
            self._intensity = np.array([parser.intensityOffsets, parser.intensityLengths], np.int64)
            self._types = (_TYPES[parser.mzPrecision], _TYPES[parser.intensityPrecision])
        self._size = self.ibd.stat().st_size
        self._last: tuple[int, int, NDArray[np.float64]] | None = None

    def _parse(self) -> Any:
        module = need("pyimzml.ImzMLParser")
        with reading(self.path, "imzML"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about unknown vocabulary terms
            parser = module.ImzMLParser(str(self.path), ibd_file=None)
            groups = parser.metadata.referenceable_param_groups
            for group in (groups[parser.mzGroupId], groups[parser.intGroupId]):
                if "zlib compression" in group.param_by_name:
                    raise FileFormatError(
                        f"{self.path}: its arrays are compressed, write it without compression"
                    )
            if not parser.coordinates:
                raise FileFormatError(f"{self.path} holds no spectra")
            named = str(parser.metadata.file_description.param_by_name.get(
                "universally unique identifier", ""))  # fmt: skip
        with self.ibd.open("rb") as stream:
            held = stream.read(16).hex()
        if named and named.strip("{}").replace("-", "").lower() != held:
            self.messages += (
                notify(
                    f"{self.path} and {self.ibd.name} carry different identifiers: are they a pair?"
                ),
            )
        return parser

    def __enter__(self) -> OpenImzML:
        self._stream = self.ibd.open("rb")
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def __iter__(self) -> Iterator[Spectrum | FileFormatError]:
        """m/z and intensities of each spectrum, or the error that one of them gives."""
        for index in range(len(self.coordinates)):
            try:
                with reading(f"{self.path} spectrum {index}"):
                    spectrum = self._spectrum(index)
            except FileFormatError as error:
                yield error
            else:
                yield spectrum

    def _spectrum(self, index: int) -> Spectrum:
        x, y = self.coordinates[index]
        where = f"{self.path} spectrum {index} (x {x}, y {y})"
        start, count = self._mz[:, index].tolist()
        if self._last is None or self._last[:2] != (start, count):
            mz = self._array(where, start, count, self._types[0])
            if not np.isfinite(mz).all():
                raise FileFormatError(f"{where}: holds m/z values that aren't finite")
            self._last = (start, count, mz)  # continuous files share one axis
        mz = self._last[2]
        start, count = self._intensity[:, index].tolist()
        intensity = self._array(where, start, count, self._types[1])
        if intensity.size != mz.size:
            raise FileFormatError(f"{where}: {mz.size} m/z values but {intensity.size} intensities")
        if not np.isfinite(intensity).all():
            raise FileFormatError(f"{where}: holds intensities that aren't finite")
        return mz, intensity

    def _array(self, where: str, start: int, count: int, dtype: Any) -> NDArray[np.float64]:
        nbytes = count * dtype.itemsize
        if start < 0 or count < 0 or start + nbytes > self._size:
            raise FileFormatError(f"{where}: points outside {self.ibd.name}")
        with reading(where), np.errstate(invalid="ignore"):  # NaN is named by the caller
            self._stream.seek(start)
            return np.frombuffer(self._stream.read(nbytes), dtype).astype(np.float64)


def _ibd_of(path: Path) -> Path:
    for suffix in (".ibd", ".IBD", ".Ibd"):
        if path.with_suffix(suffix).exists():
            return regular_file(path.with_suffix(suffix))
    raise InputError(f"{path} needs its binary file {path.with_suffix('.ibd').name} beside it")
