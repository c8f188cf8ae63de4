"""Small pictures of rows: many to a sheet, so that ten thousand take a few megabytes."""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.errors import MissingDependencyError

SIDE = 32  # pixels at most; more can't be seen under a pointer
SHEET = 1024  # pictures to a sheet, decoded when first looked at
_QUALITIES = (None, 80, 60, 40)  # of WebP; None loses nothing


@dataclass(frozen=True)
class Sheets:
    """Sheets of WebP, `across` pictures of `width` x `height` a line, for the rows `rows`."""

    sheets: tuple[bytes, ...]
    rows: NDArray[np.int32]
    width: int
    height: int
    across: int


def evenly_spaced(n: int, count: int) -> NDArray[np.int32]:
    """`count` of the numbers below `n`, evenly spaced; all if `count` is not below `n`."""
    return np.linspace(0, n - 1, min(n, max(1, count))).round().astype(np.int32)


def draw_sheets(images: Any, shape: tuple[int, ...], budget: int, *, side: int = SIDE) -> Sheets:
    """Pictures of rows of shape (height, width) or (channels, height, width), in so many bytes.

    The first quality that fits the budget is taken; if none does, fewer rows get a picture, evenly
    spaced. Pictures that are larger than `side` are made smaller.
    """
    n = len(images)
    tried = evenly_spaced(n, SHEET)
    sample = _bytes_of(images, tried, shape, side)
    low, high = _range(images, tried)
    for quality in _QUALITIES:
        each = len(_sheet(_to_bytes(sample, low, high), quality)) / len(tried)
        if each * n <= 0.95 * budget:
            break
    rows = evenly_spaced(n, int(0.95 * budget / each))
    parts = []
    for start in range(0, len(rows), SHEET):
        block = _bytes_of(images, rows[start : start + SHEET], shape, side)
        parts.append(_sheet(_to_bytes(block, low, high), quality))
    height, width = sample.shape[1:3]
    return Sheets(tuple(parts), rows, width, height, _across(SHEET))


def _across(count: int) -> int:
    return int(np.ceil(np.sqrt(count)))


def _range(images: Any, rows: NDArray[np.int32]) -> tuple[float, float]:
    """What is black and what is white: 0 and 1 if the values lie between, else their extremes."""
    values = np.asarray(images[rows])
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    return low, high if high > low else low + 1


def _bytes_of(
    images: Any, rows: NDArray[np.int32], shape: tuple[int, ...], side: int
) -> NDArray[np.float32]:
    """Rows as (count, height, width, 1 or 3), shrunk by averaging blocks of pixels."""
    pixels = np.asarray(images[rows], dtype=np.float32).reshape(len(rows), *shape)
    if len(shape) == 2:
        pixels = pixels[:, None]
    if pixels.shape[1] not in (1, 3):
        pixels = pixels.mean(axis=1, keepdims=True)
    step = int(np.ceil(max(pixels.shape[2:]) / side))
    if step > 1:
        pixels = _shrunk(_shrunk(pixels, 2, step), 3, step)
    return pixels.transpose(0, 2, 3, 1)


def _shrunk(pixels: NDArray[np.float32], axis: int, step: int) -> NDArray[np.float32]:
    starts = np.arange(0, pixels.shape[axis], step)
    sizes = np.diff([*starts, pixels.shape[axis]]).reshape(
        [-1 if i == axis else 1 for i in range(4)]
    )
    return np.asarray(np.add.reduceat(pixels, starts, axis=axis) / sizes, dtype=np.float32)


def _to_bytes(pixels: NDArray[np.float32], low: float, high: float) -> NDArray[np.uint8]:
    scaled = np.clip((pixels - low) / (high - low), 0, 1)
    return np.asarray(np.rint(255 * scaled), dtype=np.uint8)


def _sheet(pictures: NDArray[np.uint8], quality: int | None) -> bytes:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError(
            "pictures in a report need pillow: pip install 'selfview[plots]'"
        ) from error
    count, height, width, channels = pictures.shape
    across = _across(SHEET)
    down = -(-count // across)
    full = np.zeros((down * across, height, width, channels), dtype=np.uint8)
    full[:count] = pictures
    sheet = full.reshape(down, across, height, width, channels).swapaxes(1, 2)
    sheet = sheet.reshape(down * height, across * width, channels)
    image = Image.fromarray(sheet[..., 0] if channels == 1 else sheet).convert("RGB")
    stream = io.BytesIO()
    if quality is None:
        image.save(stream, "WEBP", lossless=True, method=3)
    else:
        image.save(stream, "WEBP", quality=quality, method=3)
    return stream.getvalue()
