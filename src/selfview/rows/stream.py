"""A stream of rows that is learned from in passes: what a pass knows of the rows before it."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from selfview.rows.base import Rows
from selfview.rows.in_memory import TensorRows

WINDOW_ROWS = 16_384  # the newest, among which neighbours are looked for
WINDOW_BYTES = 64 << 20  # which they may take
ROWS_PER_NEIGHBOUR = 100  # in the window: the tenth nearest of a few hundred rows is not near


@dataclass(frozen=True)
class Stream:
    """The newest rows, and how far training is.

    A stream has no known end, so that all schedules of it go by the steps that are done.
    """

    window: Rows  # the rows of this pass first, then the newest of earlier ones
    passes: int  # done before this one
    steps: int  # of the optimiser, in those
    batches: int  # of this pass

    @classmethod
    def pass_over(
        cls, rows: Rows, recent: Tensor | None, *, passes: int, steps: int, batches: int
    ) -> Self:
        """A pass over `rows`, which come after the `recent` ones, if there are any."""
        room = _room(rows) - rows.n
        if recent is None or room <= 0:
            return cls(rows, passes, steps, batches)
        window = torch.cat([rows.take(slice(0, rows.n)).cpu(), recent[:room]])
        return cls(TensorRows(window), passes, steps, batches)

    def step(self, epoch: float) -> float:
        """Optimiser steps done at a place between passes, or within this one."""
        return self.steps + (epoch - self.passes) * self.batches

    def neighbours(self, count: int) -> int:
        """How many nearest rows are near, of `count` in a large window."""
        return max(1, min(count, self.window.n // ROWS_PER_NEIGHBOUR))

    def recent(self) -> Tensor:
        """Rows for the next pass to remember."""
        return self.window.take(slice(0, min(self.window.n, _room(self.window)))).cpu()


def _room(rows: Rows) -> int:
    return max(1, min(WINDOW_ROWS, WINDOW_BYTES // (4 * rows.n_features)))
