"""A training under way: what its steps change and how far it is, as a state on disk and back."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from selfview.errors import FileFormatError
from selfview.saving.checkpoints import State
from selfview.saving.tensor_file import numbers_of
from selfview.training.loop import EpochProgress, Phase, all_finite, not_finite
from selfview.training.optimiser import Adam

History = list[dict[str, float]]


def seed_of(state: State) -> int:
    """The seed of the run that a state is of."""
    seed = state.meta.get("seed")
    if not isinstance(seed, int):
        raise FileFormatError(f"{state.path} is damaged: it has no seed")
    return seed


class TrainingState:
    """A network, its phases and optimisers (one each), and the epochs and steps that are done.

    `history` has a row for each epoch that is done.
    """

    def __init__(
        self,
        network: Any,
        phases: Sequence[Phase],
        seed: int,
        optimisers: list[Adam] | None = None,
        history: Sequence[dict[str, float]] = (),
    ) -> None:
        self.network = network
        self.phases = phases
        self.seed = seed
        self.optimisers = optimisers or [Adam(phase.parameters) for phase in phases]
        self.history: History = list(history)
        self.part = EpochProgress()  # of the next epoch
        self.stopped: str | None = None  # by what, if before the last epoch
        self._count_from(self.history[-1]["seconds"] if self.history else 0.0)

    def _count_from(self, seconds: float) -> None:
        self._start = time.monotonic() - seconds

    @property
    def seconds(self) -> float:
        """Seconds of training, those before a stop included."""
        return time.monotonic() - self._start

    @property
    def place(self) -> tuple[int, int]:
        """Epochs done, and steps of the next one."""
        return len(self.history), self.part.steps

    def end_epoch(self, row: dict[str, float]) -> None:
        """Note that an epoch ended with the metrics of `row`; one that it lacks keeps its value."""
        before = self.history[-1] if self.history else {}
        self.history.append(before | row | {"seconds": self.seconds})
        self.part = EpochProgress()

    def end_part(self) -> None:
        """Count the part of an epoch in which training stopped, if there is one, as an epoch."""
        if self.part.steps:
            self.end_epoch(self.part.row(len(self.history)))

    def check(self) -> None:
        """Raise if a weight, a statistic or a moment is no longer a number."""
        tensors = [*self._tensors().values()]
        if not all_finite([t for t in tensors if t.is_floating_point()]):
            epoch = len(self.history) - (self.part.steps == 0)
            what = "a weight or a batch-norm statistic became infinite or NaN"
            raise not_finite(what, epoch, self.phases)

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {f"network.{name}": t for name, t in self.network.state_dict().items()}
        for i, optimiser in enumerate(self.optimisers):
            tensors |= optimiser.tensors(f"optimiser.{i}")
        return tensors

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that is needed to go on from here with the same bits; checked to be finite."""
        self.check()
        meta = {
            "seed": self.seed,
            "history": self.history,
            "steps": self.part.steps,
            "sums": dict(self.part.sums),
            "counts": dict(self.part.counts),
            "seconds": self.seconds,
        }
        return self._tensors(), meta

    def resume(self, state: State) -> None:
        """Go to where a state was taken."""
        weights = {
            name.removeprefix("network."): tensor
            for name, tensor in state.tensors.items()
            if name.startswith("network.")
        }
        try:
            self.network.load_state_dict(weights)
            for i, optimiser in enumerate(self.optimisers):
                optimiser.load(state.tensors, f"optimiser.{i}")
            self.history = [numbers_of(row) for row in state.meta["history"]]
            self.part = EpochProgress(
                int(state.meta["steps"]),
                numbers_of(state.meta["sums"]),
                numbers_of(state.meta["counts"]),
            )
            self._count_from(float(state.meta["seconds"]))
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise FileFormatError(
                f"{state.path} does not fit this model: {reason}. Delete it or name another folder"
            ) from error


def loss_of(history: Sequence[Mapping[str, float]]) -> float:
    """The loss of the last epoch; of a method with several, that of its first phase."""
    names = ("loss", "reconstruction")
    return next((history[-1][name] for name in names if name in history[-1]), math.nan)


def steps_of(history: Sequence[Mapping[str, float]]) -> int:
    """Optimiser steps in the epochs that are done."""
    return int(sum(row.get("steps", 0) for row in history))
