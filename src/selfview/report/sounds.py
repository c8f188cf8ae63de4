"""Recordings that a page can play: 8 kHz, 4 bits a sample (IMA ADPCM), the first seconds."""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.data import Dataset
from selfview.data.audio import read_wav, resample
from selfview.data.guard import need, tar_members
from selfview.data.named import entry_of, locate
from selfview.errors import SelfViewError
from selfview.report.pictures import evenly_spaced

RATE = 8000
SECONDS = 3.0

Signals = Callable[[int], tuple[NDArray[Any], int]]


@dataclass(frozen=True)
class Sounds:
    """Clips one after the other; `starts` (one more than clips) says where each begins."""

    data: bytes
    starts: NDArray[np.int32]
    rows: NDArray[np.int32]


def record(dataset: Dataset, budget: int) -> Sounds | None:
    """Clips of evenly spaced recordings within a budget of bytes; None if they aren't there."""
    signals = _signals(dataset)
    if signals is None:
        return None
    n = len(dataset)
    try:
        tried = [len(_clip(*signals(int(i)))) for i in evenly_spaced(n, 32)]
        rows = evenly_spaced(n, int(budget / np.mean(tried)))
        clips = [_clip(*signals(int(i))) for i in rows]
    except SelfViewError:  # moved or changed since: the page does without
        return None
    starts = np.cumsum([0, *map(len, clips)])
    kept = int(np.searchsorted(starts, budget, side="right")) - 1
    kept = max(1, kept)
    return Sounds(b"".join(clips[:kept]), starts[: kept + 1].astype(np.int32), rows[:kept])


def _signals(dataset: Dataset) -> Signals | None:
    """How to read the recording of a row, for the two ways in which a dataset names it."""
    names = dataset.ids
    if names is None:
        return None
    if dataset.source.startswith("path "):
        base = Path(dataset.source.removeprefix("path "))
        return lambda i: read_wav(base / str(names[i]) if base.is_dir() else base)
    if dataset.name != "fsdd":
        return None
    archive = locate(entry_of(dataset.name))[0][0]
    found = {
        PurePosixPath(name).name: content
        for name, content in tar_members(archive, lambda n: re.search(r"\.wav$", n) is not None)
    }
    return lambda i: read_wav(io.BytesIO(found[str(names[i])]))


def _clip(signal: NDArray[Any], rate: int) -> bytes:
    """The blocks of an IMA ADPCM .wav file, without its head."""
    soundfile = need("soundfile")
    signal = resample(signal[: int(SECONDS * rate)], rate, RATE)
    peak = np.abs(signal).max() or 1.0
    stream = io.BytesIO()
    soundfile.write(stream, 0.9 * signal / peak, RATE, format="WAV", subtype="IMA_ADPCM")
    data = stream.getvalue()
    place = 12
    while data[place : place + 4] != b"data":
        place += 8 + int.from_bytes(data[place + 4 : place + 8], "little")
    size = int.from_bytes(data[place + 4 : place + 8], "little")
    return data[place + 8 : place + 8 + size]
