"""Ctrl-C at a moment when the state of training is whole."""

import signal
import threading
from types import FrameType
from typing import Any, Self


class HeldInterrupts:
    """Within it a Ctrl-C waits until `release` is called, at the latest until the end.

    A second Ctrl-C doesn't wait. Only the main thread is ever interrupted, so that elsewhere
    nothing is done.
    """

    def __init__(self) -> None:
        self.pending = False
        self._before: Any = None  # the handler that a Ctrl-C goes to in the end

    def __enter__(self) -> Self:
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(before):
            self._before = before
            signal.signal(signal.SIGINT, self._hold)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        self.release()

    def release(self) -> None:
        """Let an interrupt that came meanwhile have its way: as a rule, a KeyboardInterrupt."""
        if self.pending:
            self.pending = False
            self._before(signal.SIGINT, None)

    def _hold(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.pending = True
        signal.signal(signal.SIGINT, self._before)
