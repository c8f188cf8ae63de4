"""The views that the model makes of its own input (the paper's Section III, Eq. 2 and Algorithm 3).

A view is a row plus a perturbation of known length: in the direction that changes the model's own
prediction the most (virtual adversarial training), or in a random one. Gradients, batch-norm
statistics and modes of the network stay as they were.
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
    """`vectors` with rows of the given Euclidean length; a zero row stays zero."""
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


def in_row_units(perturbation: Tensor, unit: Tensor | None) -> Tensor:
    """A perturbation in the unit of the rows, whose length was in the columns' `unit`, if any."""
    return perturbation if unit is None else unit * perturbation


def perturbed(x: Tensor, perturbations: Tensor, unit: Tensor | None = None) -> Tensor:
    """(batch, count, *shape): each row plus each of its perturbations."""
    return x.unsqueeze(1) + in_row_units(perturbations, unit).view(len(x), -1, *x.shape[1:])


def random_perturbation(
    x: Tensor, length: float | Tensor, generator: torch.Generator, shard: BatchShard = WHOLE_BATCH
) -> Tensor:
    """For every row a perturbation of the given length, uniform on the sphere."""
    noise = shard.draw(torch.randn, x.shape, generator=generator, device=x.device, dtype=x.dtype)
    return scaled(noise, length)


def _random_starts(
    x: Tensor, length: float, generator: torch.Generator, shard: BatchShard, count: int
) -> Tensor:
    """(batch, count, *shape): random perturbations, those of a row independent of each other.

    The second of a row is the first of the next, so that random numbers are drawn for one only.
    """

    def sample(shape: tuple[int, ...], **options: Any) -> Tensor:
        rows, *others = shape
        drawn = scaled(torch.randn(rows + count - 1, *others, **options), length)
        return drawn.unfold(0, count, 1).movedim(-1, 1)

    return shard.draw(sample, x.shape, generator=generator, device=x.device, dtype=x.dtype)


def cross_entropy(p: Tensor, logits: Tensor) -> Tensor:
    """Sum over rows of the cross-entropy; it has the gradient of KL(p || softmax(logits))."""
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
    """The adversarial perturbation of virtual adversarial training (VAT): Eq. 2, Algorithm 3.

    ``r = epsilon * g / |g|``, where ``g`` is the gradient of ``KL(p || softmax(network(x + d)))``
    with respect to a random ``d`` of length `xi`: about the direction in which the prediction `p`
    changes most.

    Parameters
    ----------
    network : callable
        From rows to logits. With a `count`, it gets as many perturbed copies of each row.
    x : Tensor (batch, *shape)
    p : Tensor (batch, k)
        The network's probabilities for `x`, without gradient.
    epsilon, xi : float
        Length of the perturbation, and of the random start at which the gradient is taken.
    generator : torch.Generator
        Source of the random start of the power iteration.
    power_iterations : int, default 1
        More than the paper's one converge to the top eigenvector of the Fisher information when
        `xi` is small.
    shard : BatchShard, default the whole batch
        Which rows of the batch these are, if several processes hold it.
    count : int, default 1
        Perturbations for every row, each from a random start of its own.
    unit : Tensor (n_features,) or None, default None
        Of the columns, in which lengths are counted. None: that of the rows.

    Returns
    -------
    Tensor (batch * count, *shape)
        All perturbations of a row, then those of the next.

    Examples
    --------
    >>> network, x = torch.nn.Linear(2, 3), torch.zeros(5, 2)
    >>> p, draw = torch.softmax(network(x), 1).detach(), torch.Generator().manual_seed(0)
    >>> r = adversarial_perturbation(network, x, p, epsilon=0.5, xi=0.1, generator=draw)
    >>> torch.linalg.vector_norm(r, dim=1)
    tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000])
    """
    r = _random_starts(x, xi, generator, shard, count)
    p = p.repeat_interleave(count, 0)
    for left in reversed(range(power_iterations)):
        inputs = perturbed(x, r, unit).flatten(0, 1).requires_grad_()
        with torch.enable_grad():
            change = cross_entropy(p, network(inputs))
        (gradient,) = torch.autograd.grad(change, inputs)
        r = scaled(in_row_units(gradient, unit), xi if left else epsilon)
    return in_row_units(r, unit)
