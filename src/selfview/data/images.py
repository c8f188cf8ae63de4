"""Images: (channels, height, width) in [0, 1], from folders of files, IDX files or arrays."""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from selfview.data.array_files import read_idx
from selfview.data.arrays import as_images, dataset_of_array, read_array_file
from selfview.data.dataset import Dataset, Options
from selfview.data.folders import dataset_of_files, find_files
from selfview.data.guard import check_allocation, need, notify, reading, regular_file
from selfview.data.preparation import ArrayPreparation, Preparation
from selfview.errors import FileFormatError, InputError

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
LARGEST = 128  # pixels of the longer side, unless another size is asked for
_MAX_PIXELS = 100_000_000
_IDX_NAME = re.compile(r"(-|\.)idx\d?(-u?byte)?(\.gz)?$|ubyte(\.gz)?$", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class ImagePreparation(Preparation):
    """Images of one size; bytes are divided by 255, another size is resized (bilinear)."""

    channels: int
    height: int
    width: int
    transposed_idx: bool = False

    kind: ClassVar[str] = "images"
    suffixes: ClassVar[str] = ".png, .jpg, .webp or .bmp files, a folder of them, or IDX .gz"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.channels, self.height, self.width)

    def consistent(self) -> bool:
        return self.channels in (1, 3) and self.height * self.width <= _MAX_PIXELS

    def read_files(self, path: Path, options: Options) -> Dataset:
        if path.is_file() and is_idx(path):
            return _read_idx_images(path, self)
        return self.read_images(path, options)

    def read_images(self, path: Path, options: Options, hint: str = "") -> Dataset:
        """Rows of image files; the note that some are resized ends with the hint."""
        files = find_files(path, SUFFIXES)
        resized: list[str] = []

        def row(file: Path) -> NDArray[np.float32]:
            image = open_image(file, self.channels)
            if image.size != (self.width, self.height):
                resized.append(file.name)
                bilinear = need("PIL.Image").Resampling.BILINEAR
                image = image.resize((self.width, self.height), bilinear)
            return pixels(image)

        dataset = dataset_of_files(path, files, row, options, self)
        if not resized:
            return dataset
        note = notify(
            f"{path}: resized {len(resized):,} of {len(files):,} images to "
            f"{self.width} x {self.height} ({resized[0]} is the first){hint}"
        )
        return replace(dataset, messages=(*dataset.messages, note))


def fit_images(path: Path, options: Options) -> Dataset:
    """Rows of a folder of images, at one common size unless one is given."""
    files = find_files(path, SUFFIXES)
    sizes: list[tuple[int, int]] = []
    colour = False
    for file in files:
        try:
            with _opened(file) as image:
                sizes.append(image.size)
                colour = colour or _is_colour(image)
        except (FileFormatError, InputError):
            continue  # named, with its reason, when its row is read
    # If every file is bad, the reading below says so.
    width, height = options.image_size or common_size(sizes or [(1, 1)])
    if width < 1 or height < 1:
        raise InputError(f"image_size must be positive, got {(width, height)}")
    hint = f"; they have {_sizes(sizes)}, and --image-size WIDTHxHEIGHT sets another"
    how = ImagePreparation(3 if colour else 1, height, width)
    return how.read_images(path, options, "" if options.image_size else hint)


def common_size(sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """A width and height for images of many: that of most of them, else near their median.

    The longer side is at most `LARGEST`; a size that not even half of the images have is rounded to
    a multiple of 8.

    >>> common_size([(30, 20), (31, 22), (640, 480)])
    (32, 24)
    """
    (most, count), *_ = Counter(sizes).most_common(1)
    middle = most if 2 * count >= len(sizes) else np.median(sizes, axis=0).tolist()
    shrink = min(1.0, LARGEST / max(middle))
    if shrink == 1.0 and middle is most:
        return most
    width, height = (max(8, 8 * round(side * shrink / 8)) for side in middle)
    return int(width), int(height)


def _sizes(sizes: Sequence[tuple[int, int]]) -> str:
    ordered = sorted({*sizes}, key=lambda size: size[0] * size[1])
    if len(ordered) < 2:
        return "".join(f"{width} x {height}" for width, height in ordered)
    ends = " to ".join(f"{width} x {height}" for width, height in (ordered[0], ordered[-1]))
    return f"{len(ordered):,} sizes ({ends})"


def fit_array(path: Path, options: Options) -> Dataset:
    """Rows of an array file; 3 and 4 axes are images."""
    return _with_preparation(read_array_file(path, options))


def fit_idx(path: Path, options: Options) -> Dataset:
    """Rows of an IDX file of images (3 axes) or vectors (2 axes)."""
    array = read_idx(path)
    if array.size == 0:
        raise FileFormatError(f"{path} is empty: its shape is {array.shape}")
    return _with_preparation(dataset_of_array(path, array, options.skip_bad))


def _with_preparation(dataset: Dataset) -> Dataset:
    shape = dataset.shape
    how = ImagePreparation(*shape) if len(shape) == 3 else ArrayPreparation(shape)
    return replace(dataset, preparation=how)


def is_idx(path: Path) -> bool:
    """Whether the name is that of an IDX file, such as ``train-images-idx3-ubyte.gz``."""
    return path.suffix.lower() == ".gz" or bool(_IDX_NAME.search(path.name))


def _read_idx_images(path: Path, preparation: ImagePreparation) -> Dataset:
    array = read_idx(path, transposed=preparation.transposed_idx)
    if array.ndim != 3 or (1, *array.shape[1:]) != preparation.shape:
        raise InputError(
            f"{path} holds rows of shape {array.shape[1:]}, needed are images of "
            f"{preparation.height} x {preparation.width}"
        )
    return Dataset(
        name=path.name, X=as_images(array), source=f"path {path}", preparation=preparation
    )


def open_image(source: str | os.PathLike[str], channels: int) -> Any:
    """A decoded image of 1 or 3 channels; 16-bit grey becomes 8-bit."""
    with _opened(source) as image:
        if image.mode.startswith("I") or image.mode == "F":
            with reading(source, "an image"):
                values = np.asarray(image, dtype=np.float64) / 257.0
                image = need("PIL.Image").fromarray(values.clip(0, 255).round().astype(np.uint8))
        with reading(source, "an image"):
            if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
                rgba = image.convert("RGBA")  # transparent means black, not the colour below
                canvas = need("PIL.Image").new("RGBA", rgba.size, (0, 0, 0, 255))
                image = need("PIL.Image").alpha_composite(canvas, rgba)
            return image.convert("L" if channels == 1 else "RGB")


def pixels(image: Any) -> NDArray[np.float32]:
    """(channels, height, width) in [0, 1]."""
    array = np.asarray(image, dtype=np.float32) / np.float32(255)
    return array[None] if array.ndim == 2 else np.ascontiguousarray(array.transpose(2, 0, 1))


def _opened(source: str | os.PathLike[str]) -> Any:
    """The image, its header read and its declared size checked; only of these formats."""
    image_module = need("PIL.Image")
    path = regular_file(source)
    with reading(path, "an image"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pillow's own bomb warning: the limit below is stricter
        image = image_module.open(path, formats=_FORMATS)
    width, height = image.size
    if width * height > _MAX_PIXELS:
        raise FileFormatError(f"{path} declares {width} x {height} pixels, over {_MAX_PIXELS:,}")
    check_allocation(path, width * height * 4)
    return image


def _is_colour(image: Any) -> bool:
    return image.mode not in ("1", "L", "LA", "I", "F") and not image.mode.startswith("I;")
