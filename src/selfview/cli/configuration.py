"""config.json: all that is needed to repeat a fit, and what it ran on."""

import hashlib
import platform
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from selfview.data.folders import check_local
from selfview.errors import FileFormatError, InputError
from selfview.estimator.devices import resolve_device, resolve_precision
from selfview.rows.conversion import as_rows
from selfview.rows.in_memory import SparseRows
from selfview.saving.checkpoints import differences
from selfview.saving.files import read_object, write_object
from selfview.saving.model_file import OWN_ENCODER, plain_parameters

FORMAT = 1
FILE = "config.json"
# Not of the run but of one process of it.
_PASSING = ("checkpoint", "on_epoch", "verbose")


@dataclass(frozen=True)
class Config:
    """A fit: which data, read how, fitted with which parameters; and where that was done."""

    data: str  # a dataset's name, or an absolute path
    options: dict[str, Any] = field(default_factory=dict)  # of `selfview.data.read`
    parameters: dict[str, Any] = field(default_factory=dict)  # of `SelfView`
    command: str = ""
    rows: dict[str, Any] = field(default_factory=dict)  # how many, their shape and checksum
    environment: dict[str, Any] = field(default_factory=dict)
    selfview: str = ""

    def write(self, folder: Path) -> None:
        """Put config.json into `folder`."""
        write_object(folder / FILE, {"format": FORMAT, **asdict(self)})

    def differences(self, other: "Config") -> list[str]:
        """What of `other` is not as in this one and may change the bits, in words."""
        then, now = ({"selfview": c.selfview, **c.environment} for c in (self, other))
        found = differences(then, {name: now.get(name) for name in then})
        if self.data == other.data and self.rows != other.rows:
            found.append(f"the rows of {self.data} have changed")
        return found


def describe(
    model: Any,
    X: Any,
    *,
    data: str,
    options: Mapping[str, Any],
    command: str,
    groups: Any = None,
) -> Config:
    """The configuration of fitting `model`, as it stands, to `X` and its groups."""
    from selfview import __version__

    parameters = plain_parameters(model)
    for name in _PASSING:
        parameters.pop(name)
    return Config(
        data=str(Path(data).resolve()) if Path(data).exists() else data,
        options=dict(options),
        parameters=parameters,
        command=command,
        rows=fingerprint(X, groups),
        environment=environment(model),
        selfview=__version__,
    )


def environment(model: Any) -> dict[str, Any]:
    """What the bits of a fit depend on besides data and parameters."""
    import torch

    device = resolve_device(model.device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit says it
        precision = resolve_precision(model.precision, device)
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": torch.get_num_threads(),
        "device": str(device),
        "precision": precision,
        "machine": platform.machine(),
        "vectors": torch.backends.cpu.get_cpu_capability(),
    }


def fingerprint(X: Any, groups: Any = None) -> dict[str, Any]:
    """Number, shape and SHA-256 of rows: equal for equal rows, however they are stored.

    Groups are part of the SHA-256.
    """
    rows = as_rows(X)
    digest = hashlib.sha256()
    if isinstance(rows, SparseRows):
        # Made dense, a large matrix would take minutes.
        matrix = rows.matrix.astype(np.float32)
        matrix.sum_duplicates()
        for part in (matrix.indptr, matrix.indices):
            digest.update(part.astype("<i8").tobytes())
        digest.update(matrix.data.astype("<f4").tobytes())
    else:
        for _, x in rows.chunks():
            digest.update(x.contiguous().numpy().astype("<f4", copy=False).data)
    if groups is not None:
        digest.update("\n".join(map(str, groups)).encode())
    return {"n": rows.n, "shape": list(rows.shape), "sha256": digest.hexdigest()}


def read_config(path: Path) -> Config:
    """The configuration in a config.json, or in that of a run folder; checked, never executed."""
    check_local(path)
    path = path / FILE if path.is_dir() else path
    content = read_object(path)
    if not isinstance(content.get("data"), str):
        raise FileFormatError(f"{path} is not the config.json of a run: it names no data")
    if content.get("format") != FORMAT:
        raise FileFormatError(
            f"{path} has format {content.get('format')!r}; this selfview reads {FORMAT}"
        )
    parts = {}
    for name in ("options", "parameters", "rows", "environment"):
        parts[name] = content.get(name, {})
        if not isinstance(parts[name], dict):
            raise FileFormatError(f"{path} is not the config.json of a run: {name} is no object")
    _check_names(path, parts["options"], parts["parameters"])
    words = {name: str(content.get(name, "")) for name in ("command", "selfview")}
    everything: dict[str, Any] = {"data": content["data"], **parts, **words}
    return Config(**everything)


def _check_names(path: Path, options: dict[str, Any], parameters: dict[str, Any]) -> None:
    from inspect import signature

    from selfview.data import read
    from selfview.method import SelfView

    known = {
        "option": set(signature(read).parameters) - {"source"},
        "parameter": set(signature(SelfView).parameters) - set(_PASSING),
    }
    for kind, names in (("option", options), ("parameter", parameters)):
        if wrong := sorted(set(names) - known[kind]):
            raise InputError(f"{path}: there is no {kind} {wrong[0]!r}")
    for name, value in options.items():
        if isinstance(value, list):  # JSON has no pairs
            options[name] = tuple(value)
    if parameters.get("encoder") == OWN_ENCODER:
        raise InputError(f"{path} is of a run with a custom encoder: repeat it from Python")
