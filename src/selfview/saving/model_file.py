"""A fitted model as a folder: `model.safetensors`, with its description in the file's header.

One file, so that a model is there or not, and never half. Loading builds the network from the
description on no memory at all, compares every shape with what the file holds, and only then
takes the tensors; nothing is executed.

The description carries the version of its form. `UPGRADES` brings an older one to the present form,
a version at a time; a test loads a model of every version that there was (tests/fixtures).
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from selfview.errors import FileFormatError, InputError
from selfview.estimator.plan import Run
from selfview.networks import encoders
from selfview.rows.base import Summary
from selfview.saving.checkpoints import read_state, write_state
from selfview.training.state import figures_of

if TYPE_CHECKING:
    from selfview.estimator.base import Embedder

FILE = "model.safetensors"
OWN_ENCODER = "own"
VERSION = 5
MAX_FEATURES = 2**28  # of a row: a gigabyte of float32
MAX_AXES = 8

Meta = dict[str, Any]

Model = tuple[dict[str, Tensor], Meta]  # tensors and description


def _from_1(tensors: dict[str, Tensor], meta: Meta) -> Model:
    """Version 2 draws second views from neighbours, has no `lengths`, and scales its input."""
    if meta.get("class") != "SelfView":
        return tensors, meta
    given = dict(meta["parameters"])
    given.pop("lengths", None)
    if given.get("encoder") != OWN_ENCODER:
        tensors = {**tensors, "encoder.scale": torch.tensor(1.0)}
    return tensors, {**meta, "parameters": {**given, "neighbours": 0}}


def _from_2(tensors: dict[str, Tensor], meta: Meta) -> Model:
    """Version 3 has a `contrast`, and another encoder for images where none is named."""
    given = dict(meta["parameters"])
    if meta.get("class") == "SelfView":
        given["contrast"] = 0
    if given.get("encoder") == "auto" and len(meta["shape_in"]) in (2, 3):
        given["encoder"] = "cnn"
    return tensors, {**meta, "parameters": given}


def _from_3(tensors: dict[str, Tensor], meta: Meta) -> Model:
    """Version 4 has again another encoder for images where none is named."""
    given = dict(meta["parameters"])
    if given.get("encoder") == "auto" and len(meta["shape_in"]) in (2, 3):
        given["encoder"] = "cnn" if given.get("recipe") == "paper" else "small-cnn"
    return tensors, {**meta, "parameters": given}


def _from_4(tensors: dict[str, Tensor], meta: Meta) -> Model:
    """Version 5 gives the embedding along axes of its own."""
    given = dict(meta["parameters"])
    if meta.get("class") != "SelfView":
        return tensors, meta
    if given.get("encoder") != OWN_ENCODER:
        dim = _size(given["n_components"])
        tensors = {**tensors, "encoder.centre": torch.zeros(dim), "encoder.axes": torch.eye(dim)}
    return tensors, {**meta, "parameters": {**given, "axes": "learned"}}


# From each version to the next. The first models had no version in their description, and are
# otherwise as those of version 1.
UPGRADES: dict[int, Callable[[dict[str, Tensor], Meta], Model]] = {
    0: lambda tensors, meta: (tensors, meta),
    1: _from_1,
    2: _from_2,
    3: _from_3,
    4: _from_4,
}

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
    write_model(folder, network.state_dict(), meta)


def write_model(folder: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Write a model's tensors and its description, of this version."""
    write_state(folder / FILE, tensors, {**meta, "version": VERSION})


def read_model(path: Path, name: str) -> tuple[dict[str, Tensor], Meta]:
    """Tensors and description, brought to this version, of a model of the class `name`."""
    tensors, meta = read_state(path)
    version = meta.get("version", 0)
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise FileFormatError(f"{path} is damaged: {str(version)[:50]!r} is not a version")
    if version > VERSION:
        raise FileFormatError(
            f"{path} holds a model of version {version}; this selfview reads up to {VERSION}. "
            "Update selfview"
        )
    if meta.get("class") != name:
        held = str(meta.get("class"))[:50]
        raise InputError(f"{path} holds a model of {held}, not of {name}")
    try:
        for older in range(version, VERSION):
            tensors, meta = UPGRADES[older](tensors, meta)
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path} is damaged: {reason(error)}") from error
    return tensors, meta


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
    tensors, meta = read_model(path, cls.__name__)
    parameters = meta.get("parameters")
    own = isinstance(parameters, dict) and parameters.get("encoder") == OWN_ENCODER
    if own and encoder is None:
        raise InputError(
            f"the model in {folder} was fitted with an own encoder: pass one of the same "
            f"architecture, {cls.__name__}.load({str(folder)!r}, encoder=...)"
        )
    try:
        given = dict(meta["parameters"])
        if own:
            given["encoder"] = encoder
        model = cls(**given)
        model._check_parameters()
        shape_in = row_shape(meta)
        shape = encoders.input_shape(shape_in, model.encoder)
        summary = Summary(spreads=_spreads(tensors, math.prod(shape)))
        run = Run(shape, summary, _epochs(meta["epochs"]), _seed(meta["seed"]), torch.device("cpu"))
        # Without memory: sizes in a hostile description cost nothing until they are believed.
        with torch.device("meta"):
            network = model._network(run)
        _check_shapes(network, tensors)
        network.load_state_dict(tensors, assign=True)
        history, health = _history(meta["history"]), dict(meta["health"])
        model._become(network.eval(), shape_in, run, history, health)
        names = feature_names(meta, model.n_features_in_)
        if names is not None:
            model.feature_names_in_ = names
    except DAMAGE as error:
        or_not = " (or the encoder passed is not the one it was fitted with)" if own else ""
        raise FileFormatError(f"{path} is damaged{or_not}: {reason(error)}") from error
    return model


def _spreads(tensors: Mapping[str, Tensor], columns: int) -> tuple[float, ...]:
    """Some for all columns if the encoder divides each by its own; their values come later."""
    scale = tensors.get("encoder.scale")
    if scale is None or scale.ndim == 0:
        return ()
    if scale.shape != (columns,):
        raise ValueError(f"{scale.numel()} spreads for {columns} columns")
    return (1.0,) * columns


def reason(error: Exception) -> str:
    """What an error says, in so many words that a hostile file can't fill the screen."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:300] + " ..."


# What building a model from a description that lies may raise.
DAMAGE = (
    *(KeyError, TypeError, ValueError, IndexError, AttributeError),
    *(RuntimeError, ArithmeticError, MemoryError),
)


def row_shape(meta: Meta) -> tuple[int, ...]:
    """The shape of a row that a description tells."""
    shape = tuple(_size(side) for side in meta["shape_in"])
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


def _size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise ValueError(f"{str(value)[:50]} is not a size")
    return value


def _epochs(value: Any) -> int:
    return 0 if value == 0 and type(value) is int else _size(value)  # a stream plans none


def _seed(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{str(value)[:50]} is not a seed")
    return value


def _history(rows: Any) -> list[dict[str, float]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("its history is not a list of rows")
    return [figures_of(row) for row in rows]


def _check_shapes(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    expected = network.state_dict()
    if missing := sorted(expected.keys() ^ tensors.keys()):
        raise ValueError(f"its tensors don't fit its description ({', '.join(missing[:3])})")
    for name, tensor in expected.items():
        found = tensors[name]
        if found.shape != tensor.shape or found.dtype != tensor.dtype:
            raise ValueError(
                f"{name} has shape {tuple(found.shape)}, its description says {tuple(tensor.shape)}"
            )
