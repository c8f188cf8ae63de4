"""Checkpoints: the states of one run in a folder, of which the newest two are kept."""

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from torch import Tensor

from selfview.errors import CheckpointError, FileFormatError, TrainingError
from selfview.saving.files import locked
from selfview.saving.interrupts import HeldInterrupts
from selfview.saving.tensor_file import read_state, write_state

ROUNDING = 1e-9  # relative: sums differ by less between numbers of threads, and processors
_NAME = re.compile(r"checkpoint-(\d{6,})-(\d{9,})\.safetensors")


def differences(kept: Any, given: Any, name: str = "its description") -> list[str]:
    """What differs between two JSON values beyond rounding, each as "name was this, is that".

    Examples
    --------
    >>> differences({"n": 9, "mean_norm": 0.3}, {"n": 8, "mean_norm": 0.1 + 0.2})
    ['n was 9, is 8']
    """
    if isinstance(kept, dict) and isinstance(given, dict):
        names = dict.fromkeys([*given, *kept])
        return [each for n in names for each in differences(kept.get(n), given.get(n), n)]
    if isinstance(kept, list) and isinstance(given, list) and len(kept) == len(given):
        pairs = enumerate(zip(kept, given, strict=True))
        return [each for i, pair in pairs for each in differences(*pair, f"{name}[{i}]")]
    same = kept == given
    if isinstance(kept, float) and isinstance(given, float):
        same = same or math.isclose(kept, given, rel_tol=ROUNDING)
    return [] if same else [f"{name} was {_short(kept)}, is {_short(given)}"]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def load_or_make(
    path: Path | None, about: Mapping[str, Any], make: Callable[[], dict[str, Tensor]]
) -> dict[str, Tensor]:
    """Tensors from the file at `path` if its description is `about`, else made and written there.

    `about` is what the tensors depend on, as JSON can hold it. Without a path nothing is written.
    """
    found = load_if_same(path, about)
    if found is None:
        found = make()
        write_kept(path, about, found)
    return found


def load_if_same(path: Path | None, about: Mapping[str, Any]) -> dict[str, Tensor] | None:
    """Tensors from the file at `path`, if it is there and its description is `about`."""
    if path is not None:
        with suppress(FileFormatError):
            tensors, meta = read_state(path)
            if not differences(meta, _as_read(about)):
                return tensors
    return None


def write_kept(path: Path | None, about: Mapping[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write tensors with their description; nothing without a path."""
    if path is not None:
        write_state(path, tensors, _as_read(about))


def _as_read(about: Mapping[str, Any]) -> Any:
    """What JSON makes of it."""
    return json.loads(json.dumps(about))


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
        """The newest state that can be read, or None; CheckpointError for one of another run."""
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

            def save_if_due() -> None:
                if interrupts.pending or time.monotonic() > self._next:
                    self.keep(training)
                interrupts.release()

            try:
                yield save_if_due
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
