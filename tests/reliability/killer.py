"""A process that starts fits, kills them, and starts them again until one comes to its end.

    python killer.py FOLDER ENDING ...

First a fit that nothing stops writes its model to FOLDER/whole. Then the endings, in order, are
those of further fits: a number is the share of the first one's time after which SIGKILL comes from
outside; "interrupt:" and a number, the same with SIGINT; a word is the moment of writing a state at
which a fit kills itself. Each fit goes on where the one before was stopped; when one comes to its
end, its model is FOLDER/0, and the next starts anew towards FOLDER/1. Fits are forked from a
process that has imported all there is to import, so that a kill costs no start of an interpreter.
"""

import json
import os
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

import torch._dynamo  # noqa: F401 (else every child imports it, at its first step)
from safetensors.torch import save_file
from small_fits import rows, small_model

from selfview.neighbours.search import Neighbours
from selfview.saving import files
from selfview.saving.checkpoints import Checkpoints

MOMENTS = (
    "half-written",
    "before-sync",
    "before-rename",
    "after-rename",
    "before-the-old-are-removed",
)


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


class HalfWriter:
    """A file that takes half of what it is given and dies."""

    def __init__(self, file):
        self.file = file

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, data):
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        die()


def arm(moment):
    """Make the third state that is written the last thing that this process does."""
    fsync, replace, fdopen, seen = os.fsync, os.replace, os.fdopen, []

    def third():
        seen.append(1)
        return len(seen) >= 3

    if moment == "half-written":
        files.os.fdopen = lambda *a: HalfWriter(fdopen(*a)) if third() else fdopen(*a)
    elif moment == "before-sync":
        files.os.fsync = lambda handle: die() if third() else fsync(handle)
    elif moment == "before-rename":
        files.os.replace = lambda *a: die() if third() else replace(*a)
    elif moment == "after-rename":
        files.os.replace = lambda *a: (replace(*a), die() if third() else None)
    elif moment == "before-the-old-are-removed":
        Path.unlink = lambda self, **kwargs: die()
    else:
        raise ValueError(moment)


def fit(checkpoint, out, ending):
    """In the child."""
    # Every few steps; or never, so that only an interrupt keeps a state.
    Checkpoints.INTERVAL = 1e6 if ending.startswith("interrupt") else 0.05
    if ending in MOMENTS:
        Checkpoints.INTERVAL = 0.0  # every step, so that the third comes soon
        arm(ending)
    try:
        model = small_model(checkpoint=checkpoint).fit(rows())
    except KeyboardInterrupt:
        os._exit(130)
    save_file(model.network_.state_dict(), out)
    out.with_suffix(".json").write_text(json.dumps(model.history_))
    os._exit(0)


def run(checkpoint, out, ending="", second=1.0):
    """One fit and its end: the exit code, negative if a signal ended it."""
    child = os.fork()
    if child == 0:
        try:
            fit(checkpoint, out, ending)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    if ending and ending not in MOMENTS:
        until = time.monotonic() + second * float(ending.rpartition(":")[2])
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:  # before its time: nothing to kill
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.002)
        os.kill(child, signal.SIGINT if ending.startswith("interrupt") else signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main():
    warnings.simplefilter("ignore")
    folder, endings = Path(sys.argv[1]), sys.argv[2:]
    start = time.monotonic()
    run(folder / "unused", folder / "whole")
    whole = time.monotonic() - start
    ends, number = [], 0
    for ending in [*endings, ""]:
        state = folder / f"state-{number}"
        code = run(state, folder / f"{number}", ending, whole)
        kept = sorted(path.name for path in state.iterdir()) if state.is_dir() else []
        kept = [name for name in kept if name != Neighbours.FILE]
        ends.append({"ending": ending, "code": code, "kept": kept})
        number += code == 0
    print(json.dumps(ends))  # noqa: T201


if __name__ == "__main__":
    main()
