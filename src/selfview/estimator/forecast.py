"""How long a fit will take and what memory it needs, told by a few real steps on a copy."""

import copy
import itertools
import math
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from selfview.estimator.plan import Run
from selfview.estimator.seeding import own_randomness
from selfview.rows.base import Rows
from selfview.rows.conversion import as_rows
from selfview.training.loop import TrainingError, adam, n_batches, train

if TYPE_CHECKING:
    from selfview.estimator.base import Embedder

WARM_STEPS = 2  # the first steps allocate, and pick kernels
TIMED_STEPS = 5
WORTH_TIMING = 20  # steps; a shorter fit is over before a forecast would be
TRANSFORM_ROWS = 1024  # rows embedded to time `transform`


@dataclass(frozen=True)
class Forecast:
    """What a fit would do."""

    rows: int
    shape: tuple[int, ...]
    unlike: bool  # columns are of unlike units, and counted by their spreads
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


def forecast(model: "Embedder", X: Any) -> Forecast:
    """What `model.fit_transform(X)` would do, in numbers; `model` stays unfitted.

    Parameters
    ----------
    model : Embedder
    X : rows as in `fit`
    """
    model._check_parameters()
    rows = as_rows(X)
    run = model._run(rows)
    network = model._new_network(run)
    steps = run.epochs * n_batches(rows.n, model.batch_size)
    each = seconds_a_step(model, rows, run, network)
    embedding = _seconds_a_row(network.encoder, rows, run) * rows.n
    epsilon = getattr(network, "epsilon", None)
    weights = sum(p.numel() * p.element_size() for p in network.parameters())
    peak = peak_memory()
    return Forecast(
        rows=rows.n,
        shape=rows.shape,
        unlike=bool(run.summary.spreads),
        encoder=encoder_name(network.encoder),
        parameters=sum(p.numel() for p in network.parameters()),
        epsilon=None if epsilon is None else float(epsilon),
        epochs=run.epochs,
        steps=steps,
        device=str(run.device),
        precision=run.precision,
        threads=torch.get_num_threads(),
        seconds=None if each is None else each * steps + embedding,
        # What a few steps took, a second copy of weights and moments in a checkpoint being
        # written, and the embedding.
        memory=None if peak is None else peak + 6 * weights + 4 * rows.n * model.n_components,
    )


def seconds_a_step(model: "Embedder", rows: Rows, run: Run, network: nn.Module) -> float | None:
    """Seconds that a step takes: a few are done on a copy of `network` and timed.

    None where they can't be: among several processes, all of which would have to join in, or if
    the first steps already fail, which the fit itself will then say.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return None
    trial = copy.deepcopy(network).train()
    phases = model._phases(trial, run)
    size = math.ceil(rows.n / n_batches(rows.n, model.batch_size))
    middle = run.epochs // 2  # where warm-ups are over
    with own_randomness(run.seed):
        epochs = train(
            phases,
            [adam(phase) for phase in phases],
            lambda index: run.batch(rows, index),
            size,  # rows of the trial, so that its epochs are of one step
            epochs=range(middle, middle + WARM_STEPS + TIMED_STEPS),
            batch_size=size,
            seed=run.seed,
            device=run.device,
            precision=run.precision,
        )
        times = [time.perf_counter()]
        try:
            times += [time.perf_counter() for _ in epochs]
        except TrainingError:
            return None
    spans = [b - a for a, b in itertools.pairwise(times)]
    return statistics.median(spans[WARM_STEPS:])


def in_words(model: "Embedder", rows: Rows, run: Run, network: nn.Module, epochs: int) -> str:
    """What to add to the first line of a fit of so many epochs; nothing if it will be short."""
    steps = epochs * n_batches(rows.n, model.batch_size)
    each = None if steps < WORTH_TIMING else seconds_a_step(model, rows, run, network)
    return "" if each is None else f"; about {duration(each * steps)}"


def duration(seconds: float) -> str:
    """A time in the unit that people would take.

    Examples
    --------
    >>> duration(7.2), duration(150), duration(9000)
    ('7 s', '2.5 min', '2.5 h')
    """
    if seconds < 1:
        return "a second"
    for unit, length in (("s", 1), ("min", 60), ("h", 3600), ("days", 86400)):
        value = seconds / length
        if value < 100 or unit == "days":
            break
    return f"{value:.0f} {unit}" if value >= 10 or unit == "s" else f"{value:.1f} {unit}"


def encoder_name(encoder: nn.Module) -> str:
    """ "perceptron", "convolutional" or the class of an own module."""
    if any(isinstance(m, nn.Conv2d) for m in encoder.modules()):
        return "convolutional"
    return "perceptron" if isinstance(encoder, nn.Sequential) else type(encoder).__name__


def peak_memory() -> int | None:
    """The most bytes that this process has held so far; None where the system doesn't tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


@torch.inference_mode()
def _seconds_a_row(encoder: nn.Module, rows: Rows, run: Run) -> float:
    x: Tensor = run.batch(rows, slice(0, min(rows.n, TRANSFORM_ROWS)))
    training = encoder.training
    encoder.eval()(x[:2])
    start = time.perf_counter()
    encoder(x)
    spent = time.perf_counter() - start
    encoder.train(training)
    return spent / len(x)
