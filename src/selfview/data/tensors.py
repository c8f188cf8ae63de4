"""Tensors of .safetensors and .pt files, by name; a pickle is never executed."""

import json
import math
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from selfview.data import guard
from selfview.data.cache import map_blocks
from selfview.data.dataset import Array
from selfview.data.guard import reading, regular_file
from selfview.data.npy import native
from selfview.errors import FileFormatError

_TYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4",
    "U64": "<u8", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2",
}  # fmt: skip
_MOST_HEAD = 100_000_000  # bytes, safetensors' own limit


def safetensors_axes(path: Path) -> dict[str, int]:
    """The tensors of a .safetensors file, with their number of axes."""
    with reading(path, "a .safetensors file"):
        return {name: len(about["shape"]) for name, about in sorted(_head(path)[0].items())}


def safetensors_array(path: Path, name: str) -> Array:
    """One tensor of a .safetensors file: in memory if small, else mapped."""
    where = f"{path} [{name}]"
    with reading(where, "a tensor"):
        tensors, start = _head(path)
        about = tensors[name]
        kind, shape, (begin, end) = about["dtype"], tuple(about["shape"]), about["data_offsets"]
        if kind not in _TYPES:
            raise FileFormatError(f"{where} holds values of type {kind}, which aren't read")
        dtype = np.dtype(_TYPES[kind])
        if math.prod(shape) * dtype.itemsize != end - begin or start + end > path.stat().st_size:
            raise FileFormatError(f"{where} declares {shape} of {kind}, which the file can't hold")
        if min(shape, default=0) < 1:
            raise FileFormatError(f"{where} is empty: its shape is {shape}")
        array = np.memmap(path, dtype, "r", start + begin, shape)
        if array.nbytes > guard.IN_MEMORY:
            return map_blocks(array, "wide", "f4", _widened) if kind == "BF16" else array
        return native(_widened(0, array) if kind == "BF16" else np.array(array))


def _widened(_start: int, block: Array) -> Array:
    """bfloat16, read as whole numbers, in float32, of which it is the upper half."""
    return np.asarray(np.left_shift(block.astype(np.uint32), 16).view(np.float32))


def _head(source: Path) -> tuple[dict[str, Any], int]:
    """The file's list of tensors, and where their bytes start."""
    path = regular_file(source)
    with reading(path, "a .safetensors file"), path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > min(_MOST_HEAD, path.stat().st_size):
            raise FileFormatError(f"{path} is no .safetensors file: its head is too long")
        head = json.loads(stream.read(length))
        return {k: v for k, v in head.items() if k != "__metadata__"}, 8 + length


def pt_axes(path: Path) -> dict[str, int]:
    """The tensors of a .pt file, with their number of axes; a lone one is called as the file."""
    return {name: tensor.ndim for name, tensor in sorted(_tensors(path).items())}


def pt_array(path: Path, name: str) -> Array:
    """One tensor of a .pt file, mapped."""
    where = f"{path} [{name}]"
    with reading(where, "a tensor"):
        tensor = _tensors(path)[name].detach()
        if tensor.is_sparse or tensor.is_quantized or tensor.is_complex():
            raise FileFormatError(f"{where} must be a dense tensor of real numbers")
        if tensor.untyped_storage().nbytes() > path.stat().st_size:
            raise FileFormatError(f"{where} declares more than the file holds")
        return native((tensor.float() if tensor.element_size() == 2 else tensor).numpy())


def _tensors(source: Path) -> dict[str, Any]:
    """The tensors of what `torch.save` wrote: one, or a dictionary or list of them."""
    path = regular_file(source)
    with reading(path, "a file of torch.save"):
        import torch

        try:
            held = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except pickle.UnpicklingError as error:
            raise FileFormatError(
                f"{path} can't be read: it holds Python objects, which are never loaded, or is "
                "damaged. Save tensors alone, torch.save({'X': tensor}, path)"
            ) from error
        if isinstance(held, torch.Tensor):
            return {path.stem: held}
        if isinstance(held, list | tuple):
            held = dict(enumerate(held))
        if not isinstance(held, Mapping):
            raise FileFormatError(f"{path} holds a {type(held).__name__}, not tensors")
        return {str(k): v for k, v in held.items() if isinstance(v, torch.Tensor)}
