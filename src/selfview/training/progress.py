"""Progress of a training run: a bar on a terminal, plain lines elsewhere, nothing when silent."""

import statistics
import sys
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Self

PLAIN_LINES = 10  # of a whole run, where there is no terminal
WARM_STEPS = 2  # the first steps allocate memory, choose kernels and search for neighbours
TIMED_STEPS = 5
WORTH_TIMING = 20  # steps; a shorter fit is over before a forecast would be


def seconds_per_step(times: list[float]) -> float:
    """Median seconds of a step, from the times at which steps ended; the first are left out."""
    return statistics.median(b - a for a, b in pairwise(times[WARM_STEPS:]))


class Progress:
    """What a run shows on standard error, so that standard output stays the program's own.

    The headline comes after a few steps, with a forecast that these steps give. `epochs` are those
    of this run, with so many optimiser `steps` each. The forecast counts from `started`, the
    `time.monotonic()` at which preparation began. With `verbose` 0 nothing is shown.
    """

    def __init__(
        self, headline: str, *, epochs: range, steps: int, verbose: int, started: float
    ) -> None:
        self._headline: str | None = headline if verbose else None
        self._epochs, self._steps, self._verbose = epochs, steps, verbose
        self._started, self._times = started, [time.monotonic()]
        self._first_epoch = time.monotonic()
        self._bar: Any = None  # of rich, on a terminal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def after_step(self) -> None:
        """Note that an optimiser step ended."""
        if self._headline is not None:
            self._times.append(time.monotonic())
            if len(self._times) > WARM_STEPS + TIMED_STEPS + 1:
                self._show_headline()

    def after_epoch(self, row: Mapping[str, float]) -> None:
        """Show the metrics of an epoch that ended."""
        self.after_step()  # the epoch's last
        steps = self._steps * len(self._epochs)
        waits = self._headline and steps >= WORTH_TIMING and row["epoch"] < self._epochs.stop
        if not self._verbose or waits:
            return
        self._show_headline()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], advance=1, metrics=describe(row))
            return
        done = int(row["epoch"]) - self._epochs.start
        every = max(1, len(self._epochs) // PLAIN_LINES)
        if done % every == 0 or done == len(self._epochs):
            left = (time.monotonic() - self._first_epoch) / done * (len(self._epochs) - done)
            place = f"epoch {int(row['epoch'])}/{self._epochs.stop}"
            print(f"{place}  {describe(row)}  {left:.0f} s left", file=sys.stderr, flush=True)  # noqa: T201

    def _show_headline(self) -> None:
        if self._headline is None:
            return
        from rich.console import Console  # only for fits that show something

        console = Console(stderr=True)
        console.print(self._headline + self._forecast(), highlight=False, soft_wrap=True)
        self._headline = None
        if console.is_terminal:
            self._bar = _bar(console)
            self._bar.add_task(
                "", total=self._epochs.stop, completed=self._epochs.start, metrics=""
            )
            self._bar.start()

    def _forecast(self) -> str:
        steps = self._steps * len(self._epochs)
        if steps < WORTH_TIMING or len(self._times) <= WARM_STEPS + TIMED_STEPS:
            return ""
        left = (steps - len(self._times) + 1) * seconds_per_step(self._times)
        return f"; about {duration(self._times[-1] - self._started + left)}"


def _bar(console: Any) -> Any:
    from rich import progress

    return progress.Progress(
        progress.TextColumn("epoch"),
        progress.MofNCompleteColumn(),
        progress.BarColumn(bar_width=8),
        progress.TextColumn("{task.fields[metrics]}"),
        progress.TimeRemainingColumn(compact=True),
        progress.TextColumn("left"),
        console=console,
    )


def describe(row: Mapping[str, float]) -> str:
    """The metrics of an epoch in one line."""
    hidden = {"epoch", "steps", "seconds", "marginal_error"}
    if "loss_over_log_k" in row:
        hidden.add("loss")  # which includes InfoNCE, if that is on
    return " ".join(
        f"{name.replace('_over_', '/').replace('_', ' ')} {value:.2f}"
        for name, value in row.items()
        if name not in hidden
    )


def duration(seconds: float) -> str:
    """A time in the unit that people would take.

    Examples
    --------
    >>> duration(7.2), duration(150), duration(9000)
    ('7 s', '2.5 min', '2.5 h')
    """
    if seconds < 1:
        return "a second"
    for unit, length in (("s", 1), ("min", 60), ("h", 3600), ("days", 86400)):
        value = seconds / length
        if value < 100 or unit == "days":
            break
    return f"{value:.0f} {unit}" if value >= 10 or unit == "s" else f"{value:.1f} {unit}"
