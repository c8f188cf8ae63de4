"""Recordings: one spectrogram of fixed size each, as for the paper's FSDD.

Recordings are resampled to 8 kHz and their channels averaged. Amplitudes are in units of 16-bit
samples, because log(1 + magnitude) depends on the unit.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from selfview.data.dataset import Dataset, Options
from selfview.data.folders import dataset_of_files, find_files
from selfview.data.guard import check_allocation, need, reading, regular_file
from selfview.data.preparation import Preparation
from selfview.errors import FileFormatError

SUFFIXES = (".wav", ".flac", ".ogg", ".mp3")
_INT16 = 32768.0
_MAX_RATE = 1_000_000
_MAX_VALUES = 10_000_000  # of a spectrogram


@dataclass(frozen=True, eq=False)
class AudioPreparation(Preparation):
    """48 Hann frames of 94 samples at 8 kHz, log magnitudes of their FFT, min-max per recording."""

    rate: int = 8000
    frames: int = 48
    frame_length: int = 94

    kind: ClassVar[str] = "audio"
    suffixes: ClassVar[str] = ".wav, .flac, .ogg or .mp3 files, or a folder of them"

    @property
    def bins(self) -> int:
        """Frequencies of one frame."""
        return self.frame_length // 2 + 1

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.frames * self.bins,)

    @property
    def feature_names(self) -> tuple[str, ...]:
        hertz = self.rate / self.frame_length
        return tuple(
            f"frame {frame + 1}, {bin * hertz:.0f} Hz"
            for frame in range(self.frames)
            for bin in range(self.bins)
        )

    def consistent(self) -> bool:
        return self.rate <= _MAX_RATE and self.frames * self.frame_length <= _MAX_VALUES

    def row(self, signal: NDArray[np.floating[Any]], rate: int) -> NDArray[np.float32]:
        """The flat spectrogram of one mono signal in units of 16-bit samples."""
        signal = resample(signal, rate, self.rate)
        return spectrogram(signal, self.frames, self.frame_length).ravel()

    def read_files(self, path: Path, options: Options) -> Dataset:
        files = find_files(path, SUFFIXES)
        shape = (self.frames, self.bins)
        return dataset_of_files(
            path, files, lambda file: self.row(*read_wav(file)), options, self, shape
        )


def fit_audio(path: Path, options: Options) -> Dataset:
    """Rows of a folder of recordings, prepared as the paper's FSDD."""
    return AudioPreparation().read_files(path, options)


def spectrogram(
    signal: NDArray[np.floating[Any]], frames: int = 48, frame_length: int = 94
) -> NDArray[np.float32]:
    """Log magnitudes of evenly spaced Hann frames, scaled to [0, 1]; silence gives zeros."""
    from scipy.signal import get_window

    if signal.size < frame_length:
        signal = np.pad(signal, (0, frame_length - signal.size))
    starts = np.linspace(0, signal.size - frame_length, frames).round().astype(np.intp)
    framed = signal[starts[:, None] + np.arange(frame_length)]  # (frames, frame_length)
    framed = framed * get_window("hann", frame_length)
    magnitudes = np.log1p(np.abs(np.fft.rfft(framed, axis=1)))
    low, high = magnitudes.min(), magnitudes.max()
    scaled = (magnitudes - low) / (high - low) if high > low else np.zeros_like(magnitudes)
    return np.asarray(scaled, dtype=np.float32)


def resample(signal: NDArray[np.floating[Any]], rate: int, to: int) -> NDArray[np.floating[Any]]:
    """The signal at another rate, by scipy's polyphase filter."""
    if rate == to:
        return signal
    from scipy.signal import resample_poly

    common = gcd(rate, to)
    return np.asarray(resample_poly(signal, to // common, rate // common))


def read_wav(source: str | os.PathLike[str] | io.BytesIO) -> tuple[NDArray[np.float64], int]:
    """Mono signal in units of 16-bit samples, and its rate, of any file that soundfile reads."""
    soundfile = need("soundfile")
    if not isinstance(source, io.BytesIO):
        source = regular_file(source)
    name = "the recording" if isinstance(source, io.BytesIO) else str(source)
    with reading(name, "a recording"), soundfile.SoundFile(source) as sound:
        if not 0 < sound.samplerate <= _MAX_RATE:
            raise FileFormatError(f"{name} declares a rate of {sound.samplerate} Hz")
        check_allocation(name, sound.frames * (sound.channels + 1) * 8)
        rate = int(sound.samplerate)
        blocks = sound.blocks(2**20, dtype="float64", always_2d=True)
        signal = np.concatenate([np.empty(0), *(block.mean(axis=1) for block in blocks)])
    if signal.size == 0:
        raise FileFormatError(f"{name} holds no samples")
    if not np.isfinite(signal).all():
        raise FileFormatError(f"{name} holds samples that aren't finite")
    return signal * _INT16, rate
