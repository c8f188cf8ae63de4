"""A fitted encoder for other programs: ONNX, TorchScript, or plain weights with a description.

Beside the file stands `<file>.json`, which says what goes in and what comes out, and the
preparation of the rows where one is known: all that a program in another language needs.
"""

import copy
import json
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from selfview.errors import InputError, MissingDependencyError, SelfViewError
from selfview.networks import encoders
from selfview.networks.convolution import Convolution, Flatten
from selfview.saving.files import write_bytes, write_object
from selfview.saving.layers import ExportError, described_layers, rebuilt_layers


class Preparation(Protocol):
    """How rows were made from files."""

    def save(self, path: Path) -> None:
        """Write it to a folder."""


class Encoding(Protocol):
    """A fitted model with an encoder."""

    encoder: Any
    shape_in_: tuple[int, ...]
    embedding_dim_: int

    @property
    def encoder_(self) -> nn.Module:
        """The fitted encoder."""

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embed rows."""


TOLERANCE = 1e-5  # largest difference from `transform`, over the embedding's size if above 1
SUFFIXES = {"onnx": ".onnx", "torchscript": ".pt", "safetensors": ".safetensors"}
INPUT, OUTPUT = "rows", "embedding"
_TRIED = (1, 2, 7)  # rows in a batch, when an export is verified

Embed = Callable[[NDArray[np.float32]], NDArray[np.float32]]


class Exported(nn.Module):
    """Rows, shaped as `transform` takes them, to their embedding."""

    def __init__(self, encoder: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.encoder = encoder
        self.shape = shape

    def forward(self, rows: Tensor) -> Tensor:
        z: Tensor = self.encoder(rows.reshape(-1, *self.shape))
        return z


def export(
    model: Encoding,
    path: str | Path,
    format: str = "onnx",
    *,
    preparation: Preparation | None = None,
) -> dict[str, Any]:
    """Write the encoder of a fitted model for use without selfview.

    What was written is run and compared with `transform` before this returns.

    Parameters
    ----------
    model : SelfView, or a baseline that learns a network
        Fitted.
    path : str or Path
        File to write; `<path>.json` beside it describes input, output and, for "safetensors",
        every layer.
    format : {"onnx", "torchscript", "safetensors"}, default "onnx"
        ONNX with a free number of rows; TorchScript for ``torch.jit.load``; or the weights.
    preparation : Preparation or None, default None
        How the rows were made from files: written beside, as ``preparation.json``.

    Returns
    -------
    dict
        The description that was written.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from selfview import SelfView, export
    >>> X = np.random.default_rng(0).normal(size=(64, 5))
    >>> model = SelfView(2, epochs=1, random_state=0, verbose=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export(model, f"{folder}/encoder.safetensors", "safetensors")["output"]["shape"]
    ['batch', 2]
    """
    if format not in SUFFIXES:
        raise InputError(f"format must be one of {', '.join(map(repr, SUFFIXES))}, got {format!r}")
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file, such as {path / 'encoder'}")
    module = _module(model)
    rows = _trial_rows(model)
    writer = {"onnx": _onnx, "torchscript": _torchscript, "safetensors": _safetensors}[format]
    content, again, layers = writer(module, rows)
    difference = _verify(model, rows, again)
    description = {
        "format": format,
        "model": type(model).__name__,
        "input": {"name": INPUT, "dtype": "float32", "shape": ["batch", *model.shape_in_]},
        "output": {"name": OUTPUT, "dtype": "float32", "shape": ["batch", model.embedding_dim_]},
        **({"network_input": ["batch", *module.shape], "layers": layers} if layers else {}),
        "preparation": None if preparation is None else "preparation.json",
        "largest_difference": difference,
    }
    write_bytes(path, content)
    write_object(path.with_name(path.name + ".json"), description)
    if preparation is not None:
        preparation.save(path.parent)
    return description


def _module(model: Encoding) -> Exported:
    if not hasattr(type(model), "encoder_"):
        name = type(model).__name__
        raise InputError(f"{name} has no network to export: save it with its own save()")
    encoder = _plain(copy.deepcopy(model.encoder_).cpu().float().eval())
    shape = encoders.input_shape(model.shape_in_, model.encoder)
    return Exported(encoder.requires_grad_(False), shape).eval()


def _plain(encoder: nn.Module) -> nn.Module:
    """The same function by layers of PyTorch's own, the first and last of which take its maps."""
    for parent in list(encoder.modules()):
        for name, layer in parent.named_children():
            if isinstance(layer, Convolution | Flatten):
                setattr(parent, name, layer.plain())
    if not isinstance(encoder, encoders.ScaledEncoder):
        return encoder
    first = next(part for part in encoder if isinstance(part, nn.Linear | nn.Conv2d))
    with torch.no_grad():
        first.weight /= encoder.scale
        if encoder.shift.ndim and first.bias is not None:
            first.bias -= first.weight @ encoder.shift
        last = encoder[-1]
        assert isinstance(last, nn.Linear)
        last.weight.copy_(encoder.axes.T @ last.weight)
        last.bias.copy_((last.bias - encoder.centre) @ encoder.axes)
    return nn.Sequential(*encoder)


def _trial_rows(model: Encoding) -> NDArray[np.float32]:
    """Rows of the size that the model was fitted on, and zeros."""
    generator = np.random.default_rng(0)
    rows = np.abs(generator.normal(size=(sum(_TRIED), *model.shape_in_)))
    length = 10 * float(getattr(model, "epsilon_", 1.0))  # epsilon is about a tenth of the norm
    norms = np.sqrt((rows**2).sum(axis=tuple(range(1, rows.ndim)), keepdims=True))
    rows *= length / norms
    rows[0] = 0
    return np.asarray(rows, np.float32)


def _verify(model: Encoding, rows: NDArray[np.float32], again: Embed | None) -> float | None:
    """Largest difference between what was written and `transform`, over several batches."""
    if again is None:
        return None
    worst, start = 0.0, 0
    for size in _TRIED:
        part = rows[start : start + size]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that these rows have no column names
            expected = model.transform(part)
        found = again(part)
        if found.shape != expected.shape:
            raise ExportError(
                f"the exported encoder gives {found.shape} for {size} rows, not {expected.shape}: "
                "it may depend on the number of rows it was traced with"
            )
        scale = max(1.0, float(np.abs(expected).max()))
        worst = max(worst, float(np.abs(found - expected).max()) / scale)
        start += size
    if not worst <= TOLERANCE:
        raise ExportError(
            f"the exported encoder differs from transform by {worst:.2g}: it can't be traced "
            "(does a custom encoder branch on its input, or draw random numbers?)"
        )
    return worst


def _onnx(module: Exported, rows: NDArray[np.float32]) -> tuple[bytes, Embed | None, None]:
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "ONNX needs onnx and onnxscript: pip install 'selfview[export]'"
        ) from error
    with _tracing("ONNX", module), tempfile.TemporaryDirectory() as folder:
        program: Any = torch.onnx.export(
            module,
            (torch.from_numpy(rows[:3]),),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            input_names=[INPUT],
            output_names=[OUTPUT],
            verbose=False,
        )
        file = Path(folder) / "encoder.onnx"
        program.save(str(file), external_data=False)  # one file, weights and all
        content = file.read_bytes()
    try:
        import onnxruntime
    except ImportError:
        return content, None, None
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return content, lambda x: np.asarray(session.run([OUTPUT], {INPUT: x})[0]), None


def _torchscript(module: Exported, rows: NDArray[np.float32]) -> tuple[bytes, Embed, None]:
    import io

    with _tracing("TorchScript", module):
        jit: Any = torch.jit  # untyped
        traced = jit.trace(module, torch.from_numpy(rows[:3]))
        buffer = io.BytesIO()
        jit.save(traced, buffer)
        loaded = jit.load(io.BytesIO(buffer.getvalue()))
    return buffer.getvalue(), _caller(loaded), None


def _safetensors(
    module: Exported,
    rows: NDArray[np.float32],  # noqa: ARG001
) -> tuple[bytes, Embed, list[dict[str, Any]]]:
    from safetensors.torch import load, save

    layers = described_layers(module.encoder)
    tensors = {
        name: tensor.contiguous().clone()
        for name, tensor in module.encoder.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
    content = save(tensors)
    # From what a reader gets and nothing else: if a layer isn't fully described, it shows here.
    rebuilt = Exported(rebuilt_layers(json.loads(json.dumps(layers)), load(content)), module.shape)
    return content, _caller(rebuilt), layers


def _caller(module: Any) -> Embed:
    def embed(x: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            out: NDArray[np.float32] = module(torch.from_numpy(x)).numpy()
            return out

    return embed


@contextmanager
def _tracing(format: str, module: Exported) -> Iterator[None]:
    """Where PyTorch traces: without its chatter, and with an error that says what to do."""
    chatter = logging.getLogger("torch.onnx")
    level = chatter.level
    try:
        chatter.setLevel(logging.ERROR)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # that TorchScript is old, among others
            yield
    except SelfViewError:
        raise
    except Exception as error:  # the tracers raise of all kinds
        name = type(module.encoder).__name__
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else repr(error)
        raise ExportError(f"the encoder ({name}) can't be traced to {format}: {reason}") from error
    finally:
        chatter.setLevel(level)
