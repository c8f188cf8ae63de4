"""Stragglers: which process keeps the others of its group waiting.

Every process counts the collective operations that it has begun, and the seconds that it has spent
in them. A thread of it writes both to the group's store, and reads those of the others.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PATIENCE = 60.0  # seconds that the others wait for a process before it is named
SLOW = 0.5  # of their time that the others wait for a slow process
logger = logging.getLogger("selfview.distributed")


@dataclass
class Progress:
    """What this process has done for its group; the straggler that it last saw."""

    begun: int = 0  # collective operations
    waited: float = 0.0  # seconds in them
    straggler: str = ""

    @contextmanager
    def collective(self) -> Iterator[None]:
        """The time in which this process waits for others."""
        self.begun += 1
        start = time.monotonic()
        try:
            yield
        finally:
            self.waited += time.monotonic() - start


PROGRESS = Progress()


@dataclass(frozen=True)
class Look:
    """The progress of all processes at a time."""

    time: float
    begun: NDArray[np.float64]  # (size,)
    waited: NDArray[np.float64]  # (size,)


def stragglers(first: Look, last: Look) -> tuple[list[int], str]:
    """The ranks that kept the others waiting between two looks, and a sentence that names them.

    A process is silent if it was behind at the first look and has begun nothing since. It is slow
    if the others spent much of the time waiting, and it did not.
    """
    seconds = last.time - first.time
    silent = (first.begun < first.begun.max()) & (last.begun == first.begun)
    if silent.any() and not silent.all():
        ranks = np.flatnonzero(silent).tolist()
        reason = f"the others have waited for {seconds:.0f} s"
        return ranks, f"process {', '.join(map(str, ranks))} is silent: {reason}"
    share = np.minimum(1, (last.waited - first.waited) / seconds)
    slowest = int(share.argmin())
    others = float(np.median(np.delete(share, slowest)))
    if others - share[slowest] > SLOW:
        reason = f"the others waited for {others:.0%} of the last {seconds:.0f} s"
        return [slowest], f"process {slowest} is slow: {reason}"
    return [], ""


@contextmanager
def watched(rank: int, size: int, store: Any) -> Iterator[None]:
    """Name stragglers for the time being, in a log message of the first process that is none.

    Parameters
    ----------
    rank, size : int
    store : torch.distributed.Store
        Used by nothing else: a store answers one thread at a time.
    """
    ended = threading.Event()
    _publish(rank, store)
    thread = threading.Thread(target=_watch, args=(rank, size, store, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=5)  # it may wait for a store whose host is gone


def _watch(rank: int, size: int, store: Any, ended: threading.Event) -> None:
    looks: deque[Look] = deque()
    reported: list[int] = []
    while not ended.wait(PATIENCE / 10):
        try:
            _publish(rank, store)
            looks.append(_look(size, store))
        except RuntimeError:  # the store is gone: the group ends
            return
        while len(looks) > 1 and looks[-1].time - looks[1].time >= PATIENCE:
            looks.popleft()
        if looks[-1].time - looks[0].time < PATIENCE:
            continue
        found, PROGRESS.straggler = stragglers(looks[0], looks[-1])
        speaker = next((r for r in range(size) if r not in found), None)
        if found and found != reported and rank == speaker:
            logger.warning(PROGRESS.straggler)
        reported = found


def _publish(rank: int, store: Any) -> None:
    store.set(str(rank), f"{PROGRESS.begun} {PROGRESS.waited}")


def _look(size: int, store: Any) -> Look:
    values = store.multi_get([str(rank) for rank in range(size)])
    begun, waited = np.array([value.split() for value in values], float).T
    return Look(time.monotonic(), begun, waited)
