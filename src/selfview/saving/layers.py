"""The layers of an encoder as JSON, for programs that read its weights alone."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from selfview.errors import SelfViewError


class ExportError(SelfViewError):
    """The encoder can't be put into the format."""


_LAYERS: dict[type[nn.Module], tuple[str, ...]] = {
    nn.Flatten: (),
    nn.ReLU: (),
    nn.Linear: ("in_features", "out_features"),
    nn.BatchNorm1d: ("num_features", "eps"),
    nn.BatchNorm2d: ("num_features", "eps"),
    nn.Conv2d: (
        *("in_channels", "out_channels", "kernel_size", "stride", "padding"),
        *("dilation", "groups"),
    ),
}


def described_layers(encoder: nn.Module) -> list[dict[str, Any]]:
    """Every layer in order: its kind, its sizes, and the names of its tensors."""
    return [_layer(name, part) for name, part in _flat(encoder)]


def rebuilt_layers(layers: list[dict[str, Any]], tensors: dict[str, Tensor]) -> nn.Sequential:
    """The encoder that a description and its tensors say."""
    parts = []
    for layer in layers:
        kind = getattr(nn, layer["type"])
        sizes = {field: layer[field] for field in _LAYERS[kind]}
        if kind in (nn.Linear, nn.Conv2d):
            sizes["bias"] = "bias" in layer
        part: nn.Module = kind(**sizes)
        names = [name for name in part.state_dict() if name in layer]
        part.load_state_dict({name: tensors[layer[name]] for name in names}, strict=False)
        parts.append(part)
    return nn.Sequential(*parts).eval()


def _flat(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The layers of nested Sequentials in order, each with the name of its weights."""
    if not isinstance(module, nn.Sequential):
        yield prefix, module
        return
    for name, part in module.named_children():
        yield from _flat(part, f"{prefix}.{name}".lstrip("."))


def _layer(name: str, layer: nn.Module) -> dict[str, Any]:
    """A layer as JSON: its kind, its sizes, and the names of its tensors."""
    kind = type(layer)
    if kind not in _LAYERS:
        known = ", ".join(k.__name__ for k in _LAYERS)
        raise ExportError(
            f"weights alone can't describe a layer of {kind.__name__} (only {known}, one after "
            "another): take the format onnx or torchscript"
        )
    sizes = {field: getattr(layer, field) for field in _LAYERS[kind]}
    tensors = [t for t in layer.state_dict() if t != "num_batches_tracked"]
    return {"type": kind.__name__, **sizes, **{t: f"{name}.{t}" for t in tensors}}
