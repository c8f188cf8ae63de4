"""Ctrl-C and SIGTERM: a line that says what was kept, and the exit code that shells expect."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import typer


class Terminated(KeyboardInterrupt):
    """SIGTERM came, where Ctrl-C is switched off."""


@contextmanager
def exit_on_interrupt(last_words: Callable[[], str]) -> Iterator[None]:
    """Within it, Ctrl-C exits with 130 and SIGTERM with 143, after one line on standard error."""
    terminated = False

    def terminate(_number: int, _frame: FrameType | None) -> None:
        # As a Ctrl-C, so that what holds that one back until the state is whole holds this too.
        nonlocal terminated
        terminated = True
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as for jobs in the background
            raise Terminated
        signal.raise_signal(signal.SIGINT)

    try:
        before = signal.signal(signal.SIGTERM, terminate)
    except ValueError:  # not the main thread: signals are somebody else's
        before = None
    try:
        yield
    except KeyboardInterrupt as error:
        typer.echo(f"selfview: {last_words()}", err=True)
        raise typer.Exit(143 if terminated else 130) from error
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
