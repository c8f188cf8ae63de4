"""The model file: `model.safetensors` with a model's tensors, and its description in the header.

It is one file, so that a model is never written in part. What a file says is checked before it is
used; nothing in it is executed.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from selfview.errors import FileFormatError, InputError
from selfview.saving.tensor_file import numbers_of, read_state, write_state

FILE = "model.safetensors"
OWN_ENCODER = "own"
VERSION = 1  # of the description; raise it when an older selfview would misread a new file
MAX_FEATURES = 2**28  # of a row: a gigabyte of float32
MAX_AXES = 8

Meta = dict[str, Any]


def write_model(folder: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Write a model's tensors and its description."""
    write_state(folder / FILE, tensors, {**meta, "version": VERSION})


def read_model(path: Path, name: str) -> tuple[dict[str, Tensor], Meta]:
    """Tensors and description of a model of the class `name`."""
    tensors, meta = read_state(path)
    version = meta.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise FileFormatError(f"{path} is damaged: {str(version)[:50]!r} is not a version")
    if version > VERSION:
        raise FileFormatError(
            f"{path} holds a model of version {version}; this selfview reads up to {VERSION}. "
            "Update selfview"
        )
    if meta.get("class") != name:
        held = str(meta.get("class"))[:50]
        raise InputError(f"{path} holds a model of {held}, not of {name}")
    return tensors, meta


def plain_parameters(model: Any) -> dict[str, Any]:
    """The constructor's parameters as JSON can hold them.

    A callback is left out, as None, and neighbours of the rows that were fitted, as "auto".
    """
    return {name: _plain(value) for name, value in model.get_params(deep=False).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, nn.Module):
        return OWN_ENCODER
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, torch.device | Path):
        return str(value)
    if isinstance(value, np.random.RandomState):
        return None  # its draw is kept as the seed
    if callable(value):
        return None
    return "auto" if hasattr(value, "shape") else value


def reason(error: Exception) -> str:
    """What an error says, on one line of at most 300 characters: files may be hostile."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:300] + " ..."


# What building a model from a damaged description may raise.
DAMAGE = (
    *(KeyError, TypeError, ValueError, IndexError, AttributeError),
    *(RuntimeError, ArithmeticError, MemoryError),
)


def row_shape(meta: Meta) -> tuple[int, ...]:
    """The shape of a row that a description tells."""
    shape = tuple(size(side) for side in meta["shape_in"])
    if not 0 < len(shape) <= MAX_AXES or math.prod(shape) > MAX_FEATURES:
        raise ValueError(f"rows of shape {shape} can't be")
    return shape


def feature_names(meta: Meta, n_features: int) -> Any:
    """The names of the columns that a description tells, or None."""
    names = meta["feature_names_in"]
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != n_features:
        raise ValueError("its column names are not as many as its columns")
    return np.array([str(name) for name in names], dtype=object)


def size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise ValueError(f"{str(value)[:50]} is not a size")
    return value


def epochs(value: Any) -> int:
    return 0 if value == 0 and type(value) is int else size(value)  # a stream plans none


def seed(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{str(value)[:50]} is not a seed")
    return value


def history(rows: Any) -> list[dict[str, float]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("its history is not a list of rows")
    return [numbers_of(row) for row in rows]


def check_shapes(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    expected = network.state_dict()
    if missing := sorted(expected.keys() ^ tensors.keys()):
        raise ValueError(f"its tensors don't fit its description ({', '.join(missing[:3])})")
    for name, tensor in expected.items():
        found = tensors[name]
        if found.shape != tensor.shape or found.dtype != tensor.dtype:
            raise ValueError(
                f"{name} has shape {tuple(found.shape)}, its description says {tuple(tensor.shape)}"
            )
