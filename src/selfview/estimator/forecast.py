"""How long a fit takes and what memory it needs, measured by a few steps of a trial."""

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from selfview.errors import TrainingError
from selfview.training.progress import TIMED_STEPS, WARM_STEPS, seconds_per_step

TRIAL_STEPS = WARM_STEPS + TIMED_STEPS


@dataclass(frozen=True)
class Forecast:
    """What a fit would do."""

    rows: int
    shape: tuple[int, ...]
    rescaled: bool  # columns are of different scale, and divided by their standard deviations
    encoder: str
    parameters: int
    epsilon: float | None
    epochs: int
    steps: int  # in all
    device: str
    precision: str
    threads: int
    seconds: float | None  # None where steps can't be timed
    memory: int | None  # bytes, at the peak; None where the system doesn't tell


def timed_steps(steps: Iterable[object]) -> float | None:
    """Seconds that one of `steps` takes; None if they fail, which the fit itself will then say."""
    times = [time.perf_counter()]
    try:
        times += [time.perf_counter() for _ in steps]
    except TrainingError:
        return None
    return seconds_per_step(times)


@torch.inference_mode()
def timed_rows(encoder: nn.Module, take: Callable[[slice], Tensor], n: int) -> float:
    """Seconds that embedding a row takes."""
    x = take(slice(0, n))
    encoder(x[:2])
    start = time.perf_counter()
    encoder(x)
    return (time.perf_counter() - start) / len(x)


def encoder_name(encoder: nn.Module) -> str:
    """ "perceptron", "convolutional" or the class of a custom module."""
    if any(isinstance(m, nn.Conv2d) for m in encoder.modules()):
        return "convolutional"
    return "perceptron" if isinstance(encoder, nn.Sequential) else type(encoder).__name__


def peak_memory() -> int | None:
    """The most bytes that this process has held so far; None where the system doesn't tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
