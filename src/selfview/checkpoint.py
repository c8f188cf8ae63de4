"""State on disk: atomic, pickle-free, and checked before it is believed.

A state is one safetensors file: named tensors, and JSON in its header. It is written beside its
place, flushed to the disk and renamed, so that at any moment the file is the old one or the new.
"""

import json
import os
import struct
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from selfview.errors import FileFormatError, SelfViewError

FORMAT = 1
_MAX_HEADER = 100 << 20  # bytes; the limit of the safetensors library itself


class CheckpointError(SelfViewError, OSError):
    """State can't be written to, or read from, its folder."""


def write_bytes(path: Path, data: bytes) -> None:
    """Put `data` at `path` so that a reader, or a crash, sees all of it or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CheckpointError(f"{path} can't be written: {reason}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    # The rename itself is durable only once the folder is.
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_state(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Write tensors and JSON-able `meta` to one file, atomically."""
    # Clones: safetensors refuses tensors that share memory, as tied weights do.
    plain = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    header = {"format": str(FORMAT), "meta": json.dumps(meta, allow_nan=True)}
    write_bytes(path, save_tensors(plain, metadata=header))


def read_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and `meta` of a file that `write_state` made.

    Raises
    ------
    FileFormatError
        If the file is missing, cut short, damaged, of a newer format, or not of this kind.
    """
    if path.exists() and not path.is_file():  # a pipe would block, a device may never end
        raise FileFormatError(f"{path} is not an ordinary file")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{path} can't be read: {error.strerror or error}") from error
    header = _header(path, data)
    version = header.get("format", "")
    if not (version.isdecimal() and len(version) < 10) or "meta" not in header:
        raise FileFormatError(f"{path} was not written by selfview")
    if int(version) > FORMAT:
        raise FileFormatError(
            f"{path} has format {version}; this selfview reads up to {FORMAT}. Update selfview"
        )
    try:
        meta = json.loads(header["meta"])
        tensors = load_tensors(data)
    except (SafetensorError, ValueError, RecursionError, RuntimeError, KeyError) as error:
        raise FileFormatError(f"{path} is damaged: {str(error)[:300]}") from error
    if not isinstance(meta, dict):
        raise FileFormatError(f"{path} is damaged: its description is not an object")
    return tensors, meta


def _header(path: Path, data: bytes) -> dict[str, str]:
    """The `__metadata__` of a safetensors file, with every size checked before it is used."""
    if len(data) < 8:
        raise FileFormatError(f"{path} is cut short: {len(data)} bytes")
    (length,) = struct.unpack("<Q", data[:8])
    if length > min(_MAX_HEADER, len(data) - 8):
        raise FileFormatError(f"{path} is cut short or damaged: its header claims {length} bytes")
    try:
        header = json.loads(data[8 : 8 + length])
        metadata = header.get("__metadata__", {})
        if not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("its header is not of the safetensors form")
    except (ValueError, RecursionError, AttributeError) as error:
        raise FileFormatError(f"{path} is damaged: {str(error)[:300]}") from error
    return dict(metadata)


def optimiser_tensors(optimiser: torch.optim.Optimizer, prefix: str) -> dict[str, Tensor]:
    """The moments of an optimiser as named tensors."""
    state = optimiser.state_dict()["state"]
    return {
        f"{prefix}.{index}.{name}": torch.as_tensor(value)
        for index, values in state.items()
        for name, value in values.items()
    }


def load_optimiser(
    optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor], prefix: str
) -> None:
    """Put the moments that `optimiser_tensors` named back into an optimiser."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith(f"{prefix}."):
            index, name = key.removeprefix(f"{prefix}.").split(".", 1)
            state.setdefault(int(index), {})[name] = tensor
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": state, "param_groups": groups})


class Checkpoints:
    """The states of one run in a folder, the newest two kept; without a folder, nothing is done."""

    INTERVAL = 10.0  # seconds between two states, at least; the last state is always written
    KEEP = 2

    def __init__(self, folder: str | Path | None, identity: Mapping[str, Any]) -> None:
        self.folder = None if folder is None else Path(folder)
        # Through JSON, as it will be read back.
        self.identity = json.loads(json.dumps(identity))
        self._written = time.monotonic()

    def latest(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The newest state that can be read, or None.

        Raises
        ------
        CheckpointError
            If the folder holds states of another run.
        """
        damaged: FileFormatError | None = None
        for path in reversed(self._paths()):
            try:
                tensors, meta = read_state(path)
            except FileFormatError as error:
                damaged = damaged or error
                continue
            if meta.get("identity") != self.identity:
                raise CheckpointError(
                    f"{self.folder} holds the checkpoint of another run (other data or "
                    "parameters): delete it or name another folder"
                )
            return tensors, meta
        if damaged:
            raise damaged
        return None

    def keep(
        self,
        network: nn.Module,
        optimisers: Sequence[torch.optim.Optimizer],
        meta: Mapping[str, Any],
        *,
        epoch: int,
        last: bool,
    ) -> None:
        """Write the state after `epoch`, if it is the last or the interval has passed."""
        if self.folder is None or not (last or time.monotonic() - self._written > self.INTERVAL):
            return
        tensors = {f"network.{name}": t for name, t in network.state_dict().items()}
        for i, optimiser in enumerate(optimisers):
            tensors |= optimiser_tensors(optimiser, f"optimiser.{i}")
        path = self.folder / f"checkpoint-{epoch:06d}.safetensors"
        write_state(path, tensors, {**meta, "identity": self.identity})
        for old in self._paths()[: -self.KEEP]:
            old.unlink(missing_ok=True)
        self._written = time.monotonic()

    def _paths(self) -> list[Path]:
        return [] if self.folder is None else sorted(self.folder.glob("checkpoint-*.safetensors"))


def restore(
    network: nn.Module,
    optimisers: Sequence[torch.optim.Optimizer],
    tensors: Mapping[str, Tensor],
) -> None:
    """Put the tensors of a state back into the network and the optimisers."""
    weights = {
        k.removeprefix("network."): t for k, t in tensors.items() if k.startswith("network.")
    }
    network.load_state_dict(weights)
    for i, optimiser in enumerate(optimisers):
        load_optimiser(optimiser, tensors, f"optimiser.{i}")
