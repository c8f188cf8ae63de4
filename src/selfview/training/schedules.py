"""Learning-rate schedules: functions of the epoch, with fraction."""

import math
from collections.abc import Callable

DROP_EPOCH = 1000  # of the paper: its learning rate drops then, however many epochs are run
DROP = 1e-4 / 5e-4  # what is left of it
RISE_SHARE = 0.05  # of the epochs, for a learning rate to rise
FLOOR = 0.01  # of the highest learning rate, at the end
STREAM_RISE = 12  # steps in which the rate of a stream rises
STREAM_PEAK = 50  # steps after which it falls
RISE_START = 1e-3  # epochs, so that the first step is not of length zero


def dropping_rate(start: float) -> Callable[[float], float]:
    """The paper's learning rate: `start`, and a fifth of it from epoch 1,000 on.

    A fit of fewer epochs is the paper's own, cut off.
    """
    return lambda epoch: start * (1.0 if epoch < DROP_EPOCH else DROP)


def cosine_rate(peak: float, epochs: int) -> Callable[[float], float]:
    """Up to `peak` in the first twentieth of the epochs, then down to a hundredth by a cosine.

    Not to zero, so that training which goes on beyond its epochs still learns.
    """

    def rate(epoch: float) -> float:
        done = (epoch + RISE_START) / epochs
        if done < RISE_SHARE:
            return peak * done / RISE_SHARE
        fall = (1 + math.cos(math.pi * min((done - RISE_SHARE) / (1 - RISE_SHARE), 1))) / 2
        return peak * (FLOOR + (1 - FLOOR) * fall)

    return rate


def stream_rate(peak: float, step: float) -> float:
    """Learning rate of a stream after so many steps: up to `peak`, then down by 1 / sqrt(step).

    It needs no end to be known, and what is learned up to any step is of use there.
    """
    rise = min(1.0, (step + 1) / STREAM_RISE)
    return peak * rise * min(1.0, math.sqrt(STREAM_PEAK / (step + 1)))
