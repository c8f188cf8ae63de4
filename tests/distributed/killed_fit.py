"""`selfview ...` as torchrun starts it, in which one process is killed in the middle of an epoch.

Usage: torchrun ... killed_fit.py JOURNAL ARGUMENTS... ; every process notes the steps that it takes
in a file of its own beside JOURNAL.
"""

import os
import signal
import sys

from selfview.cli import main
from selfview.saving.checkpoints import Checkpoints
from selfview.training import loop

KILLED = (3, 1)  # epoch and step, from 0


def noting(step_seed, journal, doomed):
    def noted(seed, epoch, step):
        with open(journal, "a") as file:
            file.write(f"{epoch} {step}\n")
        if doomed and (epoch, step) == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        return step_seed(seed, epoch, step)

    return noted


if __name__ == "__main__":
    rank, restart = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
    Checkpoints.INTERVAL, Checkpoints.SHARE = 0.0, 1e9  # a state after every step
    doomed = rank == "1" and restart == "0"
    loop.step_seed = noting(loop.step_seed, f"{sys.argv[1]}-{rank}-{restart}", doomed)
    sys.argv[1:] = sys.argv[2:]
    main()
