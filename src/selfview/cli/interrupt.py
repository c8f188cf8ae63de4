"""Ctrl-C and SIGTERM: a line that says what was kept, and the exit code that shells expect."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import typer


class Terminated(KeyboardInterrupt):
    """SIGTERM came: ended like Ctrl-C, so that what is kept then is kept now."""


@contextmanager
def ended_cleanly(last_words: Callable[[], str]) -> Iterator[None]:
    """Within it, Ctrl-C exits with 130 and SIGTERM with 143, after one line on standard error."""
    try:
        before = signal.signal(signal.SIGTERM, _terminate)
    except ValueError:  # not the main thread: signals are somebody else's
        before = None
    try:
        yield
    except KeyboardInterrupt as error:
        typer.echo(f"selfview: {last_words()}", err=True)
        raise typer.Exit(143 if isinstance(error, Terminated) else 130) from error
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise Terminated
