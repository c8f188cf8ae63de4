"""State on disk: atomic, pickle-free, and checked before it is believed.

A state is one safetensors file: named tensors, and JSON in its header. It is written beside its
place, flushed to the disk and renamed, so that at any moment the file is the old one or the new.
"""

import json
import math
import re
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from selfview.errors import CheckpointError as CheckpointError
from selfview.errors import FileFormatError, TrainingError
from selfview.saving.files import locked
from selfview.saving.files import write_bytes as write_bytes
from selfview.saving.interrupts import HeldInterrupts

FORMAT = 1
_MAX_HEADER = 100 << 20  # bytes; the limit of the safetensors library itself
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # of Adam, for each weight
ROUNDING = 1e-9  # relative: sums differ by less between numbers of threads, and processors
_NAME = re.compile(r"checkpoint-(\d{6,})-(\d{9,})\.safetensors")


def write_state(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Write tensors and JSON-able `meta` to one file, atomically."""
    write_bytes(path, pack_state(tensors, meta))


def pack_state(tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> bytes:
    """Tensors and JSON-able `meta` as the content of a file."""
    # Clones: safetensors refuses tensors that share memory, as tied weights do.
    plain = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    header = {"format": str(FORMAT), "meta": json.dumps(meta, allow_nan=True)}
    return save_tensors(plain, metadata=header)


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
    return unpack_state(path, data)


def unpack_state(path: Path, data: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and `meta` of the content of the file at `path`, as `read_state` gives them."""
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
    """Put the moments that `optimiser_tensors` named back into an optimiser.

    Raises
    ------
    ValueError
        If moments and weights don't belong together.
    """
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith(f"{prefix}."):
            index, name = key.removeprefix(f"{prefix}.").split(".", 1)
            shape = weights[int(index)].shape if 0 <= int(index) < len(weights) else None
            if name not in MOMENTS or tensor.shape != (() if name == "step" else shape):
                raise ValueError(f"{key} of shape {tuple(tensor.shape)} belongs to no weight")
            state.setdefault(int(index), {})[name] = tensor
    if any(len(moments) < len(MOMENTS) for moments in state.values()):
        raise ValueError("a weight lacks some of its moments")
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": state, "param_groups": groups})


def differences(kept: Any, given: Any, name: str = "its description") -> list[str]:
    """What differs between two JSON values beyond rounding, each as "name was this, is that".

    Examples
    --------
    >>> differences({"n": 9, "mean_norm": 0.3}, {"n": 8, "mean_norm": 0.1 + 0.2})
    ['n was 9, is 8']
    """
    if isinstance(kept, dict) and isinstance(given, dict):
        names = dict.fromkeys([*given, *kept])
        return [told for n in names for told in differences(kept.get(n), given.get(n), n)]
    if isinstance(kept, list) and isinstance(given, list) and len(kept) == len(given):
        pairs = enumerate(zip(kept, given, strict=True))
        return [told for i, pair in pairs for told in differences(*pair, f"{name}[{i}]")]
    same = kept == given
    if isinstance(kept, float) and isinstance(given, float):
        same = same or math.isclose(kept, given, rel_tol=ROUNDING)
    return [] if same else [f"{name} was {_short(kept)}, is {_short(given)}"]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


@dataclass(frozen=True)
class State:
    """What a file of a run holds."""

    path: Path
    tensors: dict[str, Tensor]
    meta: dict[str, Any]


class Training(Protocol):
    """What `Checkpoints` asks of a training: its place, and its state there."""

    @property
    def place(self) -> tuple[int, int]:
        """Epochs done, and steps of the next one."""

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors, and what JSON can hold."""


class Checkpoints:
    """The states of one run in a folder, the newest two kept; without a folder, nothing is done.

    Used with `with`: within it the folder is this run's alone.
    """

    INTERVAL = 10.0  # seconds between two states, at least; the last state is always written
    KEEP = 2

    def __init__(self, folder: str | Path | None, identity: Mapping[str, Any]) -> None:
        self.folder = None if folder is None else Path(folder)
        # Through JSON, as it will be read back.
        self.identity = json.loads(json.dumps(identity))
        self._next = time.monotonic() + self.INTERVAL
        self._lock = ExitStack()

    def __enter__(self) -> Self:
        if self.folder is not None:
            self._lock.enter_context(locked(self.folder))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # Only after a good end: behind states that can't be read an older one may be needed.
        if kind is None:
            self._remove_old()
        self._lock.close()

    def latest(self) -> State | None:
        """The newest state that can be read, or None.

        Raises
        ------
        CheckpointError
            If the folder holds states of another run.
        """
        damaged: FileFormatError | None = None
        for path in reversed(self._paths()):
            try:
                state = State(path, *read_state(path))
            except FileFormatError as error:
                damaged = damaged or error
                continue
            if differ := differences(state.meta.get("identity"), self.identity):
                more = f" and {len(differ) - 3} more" if len(differ) > 3 else ""
                raise CheckpointError(
                    f"{self.folder} holds the checkpoint of another run: {'; '.join(differ[:3])}"
                    f"{more}. Delete it or name another folder"
                )
            return state
        if damaged:
            raise damaged
        return None

    @contextmanager
    def watch(self, training: Training) -> Iterator[Callable[[], None]]:
        """A function to call between steps: it keeps the state if it is time, or on Ctrl-C."""
        if self.folder is None:
            yield lambda: None
            return
        with HeldInterrupts() as interrupts:

            def offer() -> None:
                if interrupts.pending or time.monotonic() > self._next:
                    self.keep(training)
                interrupts.release()

            try:
                yield offer
            except (TrainingError, CheckpointError) as error:
                raise type(error)(f"{error}. {self._last_good()}") from error

    def _last_good(self) -> str:
        paths = self._paths()
        if not paths:
            return "No state had been kept yet"
        return (
            f"The last good state is {paths[-1]}: a fit with the same parameters goes on from "
            "there, one with others needs another folder"
        )

    def keep(self, training: Training) -> None:
        """Write the state now."""
        if self.folder is None:
            return
        start = time.monotonic()
        tensors, meta = training.state()
        epochs, steps = training.place
        path = self.folder / f"checkpoint-{epochs:06d}-{steps:09d}.safetensors"
        write_state(path, tensors, {**meta, "identity": self.identity})
        self._remove_old()
        now = time.monotonic()
        # A state that takes seconds to write is written less often: a tenth of the time at most.
        self._next = now + self.INTERVAL * max(1.0, now - start)

    def _remove_old(self) -> None:
        for old in self._paths()[: -self.KEEP]:
            old.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        """Oldest first."""
        if self.folder is None:
            return []
        places = {path: _NAME.fullmatch(path.name) for path in self.folder.glob("checkpoint-*")}
        found = {path: tuple(map(int, place.groups())) for path, place in places.items() if place}
        return sorted(found, key=found.__getitem__)
