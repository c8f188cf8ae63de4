"""A fitted model as a folder: `model.safetensors`, with its description in the file's header.

One file, so that a model is there or not, and never half. Loading builds the network from the
description on no memory at all, compares every shape with what the file holds, and only then
takes the tensors; nothing is executed.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import nn

from selfview import networks
from selfview.checkpoint import read_state, write_state
from selfview.errors import FileFormatError, InputError
from selfview.rows import Summary
from selfview.run import Run

if TYPE_CHECKING:
    from selfview.estimator import Embedder

FILE = "model.safetensors"
OWN_ENCODER = "own"

E = TypeVar("E", bound="Embedder")


def save(model: "Embedder", folder: Path) -> None:
    """Write a fitted model to `folder`."""
    network = model._fitted_network()
    names = getattr(model, "feature_names_in_", None)
    meta = {
        "class": type(model).__name__,
        "parameters": plain_parameters(model),
        "shape_in": list(model.shape_in_),
        "epochs": model.epochs_,
        "seed": model.seed_,
        "feature_names_in": None if names is None else [str(name) for name in names],
        "history": model.history_,
        "health": model.health_,
    }
    write_state(folder / FILE, network.state_dict(), meta)


def plain_parameters(model: "Embedder") -> dict[str, Any]:
    """The constructor's parameters as JSON can hold them."""
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
    return value


def load(cls: type[E], folder: Path, encoder: nn.Module | None) -> E:
    """Read a model of the class `cls` from `folder`."""
    path = folder / FILE
    tensors, meta = read_state(path)
    if meta.get("class") != cls.__name__:
        raise InputError(f"{path} holds a model of {meta.get('class')}, not of {cls.__name__}")
    try:
        given = dict(meta["parameters"])
        if given.get("encoder") == OWN_ENCODER:
            if encoder is None:
                raise InputError(
                    f"the model in {folder} was fitted with an own encoder: pass one of the same "
                    f"architecture, {cls.__name__}.load({str(folder)!r}, encoder=...)"
                )
            given["encoder"] = encoder
        model = cls(**given)
        model._check_parameters()
        shape_in = tuple(_size(side) for side in meta["shape_in"])
        shape = networks.input_shape(shape_in, model.encoder)
        run = Run(shape, Summary(), _size(meta["epochs"]), int(meta["seed"]), torch.device("cpu"))
        # Without memory: sizes in a hostile description cost nothing until they are believed.
        with torch.device("meta"):
            network = model._network(run)
        _check_shapes(network, tensors)
        network.load_state_dict(tensors, assign=True)
        names = meta["feature_names_in"]
        model._become(network.eval(), shape_in, run, list(meta["history"]), dict(meta["health"]))
        if names is not None:
            model.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError, OverflowError, MemoryError) as error:
        raise FileFormatError(f"{path} is damaged: {error}") from error
    return model


def _size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise ValueError(f"{value!r} is not a size")
    return value


def _check_shapes(network: nn.Module, tensors: dict[str, torch.Tensor]) -> None:
    expected = network.state_dict()
    if missing := sorted(expected.keys() ^ tensors.keys()):
        raise ValueError(f"its tensors don't fit its description ({', '.join(missing[:3])})")
    for name, tensor in expected.items():
        found = tensors[name]
        if found.shape != tensor.shape or found.dtype != tensor.dtype:
            raise ValueError(
                f"{name} has shape {tuple(found.shape)}, its description says {tuple(tensor.shape)}"
            )
