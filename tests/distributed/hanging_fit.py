"""`selfview ...` as torchrun starts it, in which one process hangs in the middle of an epoch.

Usage: torchrun ... hanging_fit.py ARGUMENTS... ; the second process hangs at its first start.
"""

import os
import time
from datetime import timedelta

from selfview import distributed, stragglers
from selfview.cli import main
from selfview.saving.checkpoints import Checkpoints
from selfview.training import loop

HANGING = (2, 1)  # epoch and step, from 0


def hanging(step_seed):
    def hung(seed, epoch, step):
        if (epoch, step) == HANGING:
            time.sleep(3600)
        return step_seed(seed, epoch, step)

    return hung


if __name__ == "__main__":
    stragglers.PATIENCE = 4.0
    distributed.TIMEOUT = timedelta(seconds=40)
    Checkpoints.INTERVAL = 0.0  # a state after every step
    if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        loop.step_seed = hanging(loop.step_seed)
    main()
