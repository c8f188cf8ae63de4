"""The training loop. It knows batches, phases and optimisers, and no method.

All randomness of a step comes from a generator seeded by (seed, epoch, step), and the order of the
rows by (seed, epoch). So there is no random state to carry: a run that stops after any step goes on
with the same bits.
"""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from selfview.distributed import ALONE, WHOLE_BATCH, BatchShard, Group
from selfview.errors import TrainingError as TrainingError
from selfview.training.optimiser import Adam
from selfview.training.seeding import seed_layers

HIGH_RATE = 0.1  # of Adam: every weight moves by about so much in a step


@dataclass(frozen=True)
class Step:
    """What a loss may look at."""

    batch: Tensor  # (batch, *shape)
    epoch: float  # epochs done before this step, with fraction
    generator: torch.Generator
    rows: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))  # their numbers
    number: int = 0  # of the step: those done before it, if all epochs have as many
    shard: BatchShard = WHOLE_BATCH  # which rows of a batch these are, if several processes hold it


Loss = Callable[[Step], tuple[Tensor, Mapping[str, float]]]


@dataclass(frozen=True)
class Phase:
    """One optimiser's turn in every step: a loss, what it moves, and how fast.

    A method is an ordered list of phases. `loss` returns the loss and metrics for the history;
    `learning_rate` is a function of the epoch (with fraction).
    """

    name: str
    parameters: Sequence[nn.Parameter]
    loss: Loss
    learning_rate: Callable[[float], float]


@dataclass(frozen=True)
class EpochProgress:
    """The part of an epoch that is done: a place between two steps, from where training goes on."""

    steps: int = 0
    sums: Mapping[str, float] = field(default_factory=dict)  # of the epoch's metrics so far
    counts: Mapping[str, float] = field(default_factory=dict)  # steps that gave each of them

    def row(self, epoch: int) -> dict[str, float]:
        """Number of the epoch, counted from 1, and of its steps; means of its metrics."""
        means = {name: total / self.counts[name] for name, total in self.sums.items()}
        return {"epoch": epoch + 1, "steps": self.steps, **means}


def n_batches(n: int, batch_size: int) -> int:
    """Batches an epoch: as few as keep each within `batch_size`, but none of a single row."""
    return max(1, min(math.ceil(n / batch_size), n // 2))


def batches(
    n: int, batch_size: int, seed: int, epoch: int, blocks: tuple[int, int] | None = None
) -> list[NDArray[np.intp]]:
    """Row numbers of an epoch's batches: all rows once, shuffled.

    Sizes differ by at most one, so there is no small last batch, whose transport and batch norm
    would be poor. For rows on disk, `blocks` says how many rows are read together and how many are
    kept: blocks of consecutive rows are shuffled, then the rows of as many blocks as are kept.
    """
    random = np.random.default_rng([seed, epoch])
    block, kept = blocks or (1, n)
    order = random.permutation(n) if block == 1 or kept >= n else _windows(n, block, kept, random)
    return np.array_split(order, n_batches(n, batch_size))


def _windows(n: int, block: int, kept: int, random: np.random.Generator) -> NDArray[np.intp]:
    count = math.ceil(n / block)
    # Windows of equal size: a small last one would hold few blocks, and its batches few kinds.
    windows = np.array_split(random.permutation(count), math.ceil(count / max(1, kept // block)))
    order, done = np.empty(n, np.intp), 0
    for window in windows:
        rows = (window[:, None] * block + np.arange(block)).ravel()
        rows = random.permutation(rows[rows < n])
        order[done : done + len(rows)] = rows
        done += len(rows)
    return order


def step_seed(seed: int, epoch: int, step: int) -> int:
    return int(np.random.SeedSequence([seed, epoch, step]).generate_state(1, np.uint64)[0]) >> 1


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """The context in which forward passes run at the given precision."""
    if precision == "bfloat16":
        # All threads of a process share one cache of weights, and clear it: whether it has a weight
        # decides how gradients of two passes are rounded, and so the bits of a fit.
        return torch.autocast(device.type, dtype=torch.bfloat16, cache_enabled=False)
    return nullcontext()


def train(
    phases: Sequence[Phase],
    optimisers: Sequence[Adam],
    take: Callable[[NDArray[np.intp]], Tensor],
    n: int,
    *,
    epochs: range,
    batch_size: int,
    seed: int,
    device: torch.device,
    precision: str = "float32",
    start: EpochProgress = EpochProgress(),  # noqa: B008 (it is frozen)
    after_step: Callable[[EpochProgress], bool | None] = lambda _: None,
    group: Group = ALONE,
    blocks: tuple[int, int] | None = None,
) -> Generator[dict[str, float], None, None]:
    """Train, an epoch each time a row of metrics is asked for.

    Parameters
    ----------
    phases, optimisers : sequences of equal length
    take : callable
        From row numbers to a batch on `device`.
    n : int
        Number of rows.
    epochs : range
        The epochs to run; not from 0 when a run goes on.
    batch_size, seed : int
    device : torch.device
    precision : {"float32", "bfloat16"}, default "float32"
        Of the forward and backward passes; weights and optimiser stay in float32.
    start : EpochProgress, default nothing
        What is done already of the first epoch.
    after_step : callable, default does nothing
        Called between two steps of an epoch with the part that is done; after an epoch's last step
        its row of metrics is yielded instead. Training ends if it returns True.
    group : Group, default this process alone
        The processes that train together, each on its share of every batch.
    blocks : (int, int) or None, default None
        Of rows on disk: how many are read, and how many shuffled, together.

    Yields
    ------
    dict
        Number of the epoch and of its steps; means of the losses and of every metric that they
        return, over the steps that gave it.
    """
    generator = torch.Generator(device)
    with ExitStack() as stack:
        losses = [
            stack.enter_context(group.objective(phase.loss, phase.parameters)) for phase in phases
        ]
        for epoch in epochs:
            sums, counts = dict(start.sums), dict(start.counts)
            order = batches(n, batch_size, seed, epoch, blocks)
            for i, index in enumerate(order):
                if i < start.steps:
                    continue
                draw = step_seed(seed, epoch, i)
                generator.manual_seed(draw)
                # For layers that draw by themselves, as dropout does: not the same in each process.
                seed_layers(draw + group.rank)
                shard = group.shard(len(index))
                own = index[shard.rows]
                number = epoch * len(order) + i
                step = Step(take(own), epoch + i / len(order), generator, own, number, shard)
                for phase, optimiser, objective in zip(phases, optimisers, losses, strict=True):
                    with autocast(device, precision):
                        loss, metrics = objective(step)
                    means = group.means({phase.name: loss.item(), **metrics}, shard, device)
                    if not math.isfinite(means[phase.name]):
                        what = f"the {phase.name} became {means[phase.name]}"
                        raise not_finite(what, step.epoch, [phase])
                    gradients = group.gradients(loss, phase.parameters, shard)
                    _descend(phase, optimiser, gradients, step.epoch)
                    for name, value in means.items():
                        sums[name] = sums.get(name, 0.0) + value
                        counts[name] = counts.get(name, 0) + 1
                part = EpochProgress(i + 1, dict(sums), dict(counts))
                if i + 1 < len(order) and after_step(part):
                    return
            start = EpochProgress()
            yield EpochProgress(len(order), sums, counts).row(epoch)


def _descend(
    phase: Phase,
    optimiser: Adam,
    gradients: Sequence[Tensor | None],
    epoch: float,
) -> None:
    if not all_finite([g for g in gradients if g is not None]):
        # Before the step: a weight that is not a number would stay one.
        raise not_finite(f"the gradient of the {phase.name} became infinite or NaN", epoch, [phase])
    optimiser.step(gradients, phase.learning_rate(epoch))
    for parameter in phase.parameters:
        parameter.grad = None  # where several processes sum up gradients


def all_finite(tensors: Sequence[Tensor]) -> bool:
    """Is every entry a finite number? At the cost of a sum, and of one wait for the device."""
    sums = [tensor.detach().sum(dtype=torch.float32) for tensor in tensors]
    if not sums or torch.stack(sums).isfinite().all():
        return True
    # A sum of finite numbers may overflow; the exact search is for the failing case alone.
    return all(bool(tensor.isfinite().all()) for tensor in tensors)


def not_finite(what: str, epoch: float, phases: Sequence[Phase]) -> TrainingError:
    """The error of a training in which `what` happened, with what to change."""
    rate = max(phase.learning_rate(epoch) for phase in phases)
    remedy = "or epsilon, or scale the data (sklearn.preprocessing.StandardScaler)"
    if rate > HIGH_RATE:
        remedy = f"from the {rate:.3g} that it has come to"
    return TrainingError(f"{what} in epoch {int(epoch) + 1}. Lower learning_rate {remedy}")
