"""Progress of a training run: a bar on a terminal, plain lines elsewhere, nothing when silent."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_LINES = 10  # of a whole run, where there is no terminal

Watcher = Callable[[Mapping[str, float]], None]
_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(watcher: Watcher | None) -> Iterator[None]:
    """Within it, `watcher` is called with the figures of every epoch of every fit."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def follow(
    rows: Iterable[dict[str, float]], *, headline: str, epochs: range, verbose: int
) -> Iterator[dict[str, float]]:
    """Pass on the rows of a run, and show each as it comes.

    Everything goes to standard error, so that standard output stays the program's own.
    """
    rows = _shown(rows)
    if not verbose:
        yield from rows
        return
    from rich.console import Console  # not for fits that say nothing

    console = Console(stderr=True)
    console.print(headline, highlight=False, soft_wrap=True)
    yield from _bar(rows, epochs, console) if console.is_terminal else _lines(rows, epochs)


def _shown(rows: Iterable[dict[str, float]]) -> Iterator[dict[str, float]]:
    watcher = _WATCHER.get()
    for row in rows:
        if watcher is not None:
            watcher(row)
        yield row


def _bar(
    rows: Iterable[dict[str, float]], epochs: range, console: "Console"
) -> Iterator[dict[str, float]]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(bar_width=8),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=epochs.stop, completed=epochs.start, figures="")
        for row in rows:
            bar.update(task, advance=1, figures=describe(row))
            yield row


def _lines(rows: Iterable[dict[str, float]], epochs: range) -> Iterator[dict[str, float]]:
    start = time.monotonic()
    every = max(1, len(epochs) // PLAIN_LINES)
    for done, row in enumerate(rows, 1):
        if done % every == 0 or done == len(epochs):
            left = (time.monotonic() - start) / done * (len(epochs) - done)
            line = f"epoch {int(row['epoch'])}/{epochs.stop}  {describe(row)}  {left:.0f} s left"
            print(line, file=sys.stderr, flush=True)  # noqa: T201
        yield row


def describe(row: Mapping[str, float]) -> str:
    """The figures of an epoch in one line."""
    hidden = {"epoch", "steps", "seconds", "marginal_error"}
    if "loss_over_log_k" in row:
        hidden.add("loss")  # which has the contrast in it, if that is on
    return " ".join(
        f"{name.replace('_over_', '/').replace('_', ' ')} {value:.2f}"
        for name, value in row.items()
        if name not in hidden
    )
