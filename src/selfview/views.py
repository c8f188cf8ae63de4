"""The views that the model makes of its own input (the paper's Section III, Eq. 2 and Algorithm 3).

A view is the input moved by a step of known length: in the direction that changes the model's own
prediction the most (virtual adversarial training), or in a random one. Nothing here knows what the
rows are, and nothing is left behind: gradients, batch-norm statistics and modes stay as they were.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from selfview.distributed import WHOLE_BATCH, BatchShard

Network = Callable[[Tensor], Tensor]

# How each of the two views is made.
VIEWS = {
    "adversarial": ("adversarial", "adversarial"),
    "random": ("random", "random"),
    "random+adversarial": ("random", "adversarial"),
    "none": ("none", "none"),
}


@contextmanager
def frozen_batch_norm_stats(network: nn.Module) -> Iterator[None]:
    """Run passes that leave the batch-norm running statistics of `network` as they were."""
    norms: list[Any] = [m for m in network.modules() if getattr(m, "track_running_stats", False)]
    try:
        for norm in norms:
            norm.track_running_stats = False
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True


def scaled(vectors: Tensor, length: float | Tensor) -> Tensor:
    """Every row of `vectors` brought to the given Euclidean length; a zero row stays zero."""
    flat = vectors.flatten(1).float()
    norms = torch.linalg.vector_norm(flat, dim=1, keepdim=True)
    if not flat.is_cpu or norms.amin() < 1e-12 or norms.amax() > 1e12:
        # Squares would vanish in float32, or overflow. (Elsewhere than on a processor the question
        # would cost more than the answer saves.) Division by a power of two rounds nothing.
        flat = flat / _power_of_two(flat.abs().amax(1, keepdim=True))
        norms = torch.linalg.vector_norm(flat, dim=1, keepdim=True).clamp_min(1e-12)
    return flat.mul(length / norms).view_as(vectors)


def _power_of_two(sizes: Tensor) -> Tensor:
    """The largest power of two not above each of `sizes` (float32): its exponent bits alone."""
    powers = (sizes.view(torch.int32) & 0x7F800000).view(torch.float32)
    return powers.clamp_min(torch.finfo(torch.float32).tiny)


def in_unit(step: Tensor, unit: Tensor | None) -> Tensor:
    """A step whose length was counted in units of the columns, if they have any, in the rows'."""
    return step if unit is None else unit * step


def moved(x: Tensor, steps: Tensor, unit: Tensor | None = None) -> Tensor:
    """(batch, count, *shape): rows, each moved by as many steps as `steps` has for it."""
    return x.unsqueeze(1) + in_unit(steps, unit).view(len(x), -1, *x.shape[1:])


def random_perturbation(
    x: Tensor, length: float | Tensor, generator: torch.Generator, shard: BatchShard = WHOLE_BATCH
) -> Tensor:
    """A step of the given length in a direction that is uniform on the sphere, for every row."""
    noise = shard.draw(torch.randn, x.shape, generator=generator, device=x.device, dtype=x.dtype)
    return scaled(noise, length)


def _random_starts(
    x: Tensor, length: float, generator: torch.Generator, shard: BatchShard, count: int
) -> Tensor:
    """(batch, count, *shape): random steps, for every row some that are independent of each other.

    Random numbers are drawn for hardly more than one of them: the second of a row is the first of
    the next.
    """

    def sample(shape: tuple[int, ...], **options: Any) -> Tensor:
        rows, *others = shape
        steps = scaled(torch.randn(rows + count - 1, *others, **options), length)
        return steps.unfold(0, count, 1).movedim(-1, 1)

    return shard.draw(sample, x.shape, generator=generator, device=x.device, dtype=x.dtype)


def divergence(p: Tensor, logits: Tensor) -> Tensor:
    """Sum over rows of KL(p || softmax(logits)), less the entropy of `p`, which has no gradient."""
    return -(p * F.log_softmax(logits.float(), dim=1)).sum()


def adversarial_perturbation(
    network: Network,
    x: Tensor,
    p: Tensor,
    *,
    epsilon: float,
    xi: float,
    generator: torch.Generator,
    power_iterations: int = 1,
    shard: BatchShard = WHOLE_BATCH,
    count: int = 1,
    unit: Tensor | None = None,
) -> Tensor:
    """The step of length `epsilon` that changes the prediction `p` of `x` the most (Algorithm 3).

    Parameters
    ----------
    network : callable
        From rows to logits. With a `count`, as many moved copies of a row stand together.
    x : Tensor (batch, *shape)
    p : Tensor (batch, k)
        The network's probabilities for `x`, without gradient.
    epsilon, xi : float
        Length of the perturbation, and of the random start at which the gradient is taken.
    generator : torch.Generator
        Source of the random start of the power iteration.
    power_iterations : int
        The paper takes one. More converge to the top eigenvector of the Fisher information when
        `xi` is small.
    shard : BatchShard
        Which rows of the batch these are, if several processes hold it.
    count : int
        Perturbations for every row, each from a random start of its own.
    unit : Tensor (n_features,), optional
        Of the columns, in which lengths are counted; that of the rows if there is none.

    Returns
    -------
    Tensor (batch * count, *shape)
        The steps of a row stand together.
    """
    steps = _random_starts(x, xi, generator, shard, count)
    p = p.repeat_interleave(count, 0)
    for left in reversed(range(power_iterations)):
        inputs = moved(x, steps, unit).flatten(0, 1).requires_grad_()
        with torch.enable_grad():
            change = divergence(p, network(inputs))
        (gradient,) = torch.autograd.grad(change, inputs)
        steps = scaled(in_unit(gradient, unit), xi if left else epsilon)
    return in_unit(steps, unit)
