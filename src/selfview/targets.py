"""Targets by optimal transport: Sinkhorn-Knopp (Algorithm 1) and the temperature policy (2)."""

import math

import torch
from torch import Tensor

from selfview.distributed import WHOLE_BATCH, BatchShard

TEMPERATURE_RANGE = (0.1, 1.0)
TEMPERATURE_STEP = 0.1  # h_step
ENTROPY_TOLERANCE = 5e-3  # h_tol
POLICY_ROUNDS = 5
# After so many rounds the scalings go into the exponent of the kernel. A round widens their range
# by at most batch * k, so that float64 holds them in batches of any size.
ROUNDS = 20


def sinkhorn(
    logits: Tensor, temperature: float, iterations: int, shard: BatchShard = WHOLE_BATCH
) -> Tensor:
    """Soft assignment of rows to prototypes in which all prototypes are used equally.

    The kernel exp(logits / temperature) is scaled in turn to row sums 1/batch and column sums 1/k,
    `iterations` times; then the rows are made distributions (Algorithm 1, Eq. 5).

    Parameters
    ----------
    logits : Tensor (batch, k)
    temperature : float
    iterations : int
    shard : BatchShard, default the whole batch
        Which rows of the batch these are, if several processes hold it: column sums are over all.

    Returns
    -------
    Tensor (batch, k)
        Rows sum to 1. Finite for any finite logits, any batch and any k.

    Examples
    --------
    >>> import torch
    >>> q = sinkhorn(torch.tensor([[4.0, 0.0], [3.0, 0.0]]), temperature=1.0, iterations=100)
    >>> [round(column, 3) for column in q.mean(0).tolist()]
    [0.5, 0.5]
    """
    log_v = logits.new_zeros(logits.shape[1], dtype=torch.float64)  # (k,)
    for done in range(0, iterations, ROUNDS):
        # In place, as it may be gigabytes.
        kernel = logits.to(torch.float64, copy=True).div_(temperature).add_(log_v)  # (batch, k)
        # The largest entry of every row and every column becomes 1: no sum below is zero, whatever
        # the logits. Rows are scaled anyway; what columns gain is taken off v.
        kernel -= kernel.amax(1, keepdim=True)
        gain = -shard.amax(kernel)
        kernel.add_(gain).exp_()
        v = torch.exp(-gain)
        for _ in range(min(ROUNDS, iterations - done)):
            u = 1 / (kernel @ v)  # the constants 1/batch and 1/k cancel in the end
            v = 1 / shard.sum(kernel.T @ u)
        log_v += gain + v.log()
    q = kernel.mul_(v)
    q /= q.sum(1, keepdim=True)
    return q.to(logits.dtype)


def entropy(q: Tensor, shard: BatchShard = WHOLE_BATCH) -> Tensor:
    """Mean entropy of the rows of `q`, in nats."""
    log_q = q.clamp_min(torch.finfo(q.dtype).tiny).log_()  # finite where q is 0, as is the product
    return -shard.mean((q * log_q).sum(1))


def marginal_error(q: Tensor, shard: BatchShard = WHOLE_BATCH) -> float:
    """Largest relative deviation of a prototype's share from 1/k."""
    return float((shard.mean(q, 0) * q.shape[1] - 1).abs().max())


def scheduled_entropy(final: float, k: int, progress: float) -> float:
    """Target entropy after a share of the warm-up: from log k to `final` by a cosine (Eq. 8)."""
    scale = (math.cos(math.pi * min(progress, 1.0)) + 1) / 2
    return final + (math.log(k) - final) * scale


def adapt_temperature(
    logits: Tensor,
    temperature: float,
    target_entropy: float,
    iterations: int,
    shard: BatchShard = WHOLE_BATCH,
) -> tuple[Tensor, float]:
    """Targets whose mean entropy is near `target_entropy`, and the temperature that gave them.

    The temperature changes by 0.1 at a time within [0.1, 1], at most five times (Algorithm 2): down
    if the entropy is above its aim by more than 0.005, up if it is below by as much.

    Parameters
    ----------
    logits : Tensor (batch, k)
    temperature : float
        The one to begin with.
    target_entropy : float
        In nats; log k if rows are assigned to all prototypes alike.
    iterations : int
        Of Sinkhorn-Knopp.
    shard : BatchShard, default the whole batch
        Which rows of the batch these are, if several processes hold it.

    Returns
    -------
    Tensor (batch, k), float

    Examples
    --------
    >>> logits = torch.randn(64, 8, generator=torch.Generator().manual_seed(0))
    >>> q, temperature = adapt_temperature(logits, 1.0, target_entropy=1.0, iterations=10)
    >>> round(temperature, 1)
    0.5
    """
    low, high = TEMPERATURE_RANGE
    known: dict[float, tuple[Tensor, float]] = {}  # the policy often goes to and fro

    def solve(temperature: float) -> tuple[Tensor, float]:
        if temperature not in known:
            q = sinkhorn(logits, temperature, iterations, shard)
            known[temperature] = q, float(entropy(q, shard))
        return known[temperature]

    q, found = solve(temperature)
    for _ in range(POLICY_ROUNDS):
        excess = found - target_entropy
        if excess > ENTROPY_TOLERANCE:
            moved = max(temperature - TEMPERATURE_STEP, low)
        elif excess < -ENTROPY_TOLERANCE:
            moved = min(temperature + TEMPERATURE_STEP, high)
        else:
            break
        # At an end of the range the same targets would only be computed again.
        if moved == temperature:
            break
        temperature = moved
        q, found = solve(temperature)
    return q, temperature
