"""Targets by optimal transport: Sinkhorn-Knopp (Algorithm 1) and the temperature policy (2)."""

import math

import torch
from torch import Tensor

from selfview.distributed import WHOLE, Share

TEMPERATURE_RANGE = (0.1, 1.0)
TEMPERATURE_STEP = 0.1  # h_step
ENTROPY_TOLERANCE = 5e-3  # h_tol
POLICY_ROUNDS = 5

# Scalings are folded back into the kernel's exponent after so many rounds, before they can leave
# the range of float32.
_ROUNDS_PER_BLOCK = 10


def sinkhorn(logits: Tensor, temperature: float, iterations: int, share: Share = WHOLE) -> Tensor:
    """Soft assignment of rows to prototypes in which all prototypes are used equally.

    The kernel exp(logits / temperature) is scaled in turn to row sums 1/batch and column sums 1/k,
    `iterations` times; then the rows are made distributions (Eq. 5).

    Parameters
    ----------
    logits : Tensor (batch, k)
    temperature : float
    iterations : int
    share : Share
        Which rows of the batch these are, if several processes hold it: column sums are over all.

    Returns
    -------
    Tensor (batch, k)
        Rows sum to 1. Finite for any finite logits.

    Examples
    --------
    >>> import torch
    >>> q = sinkhorn(torch.tensor([[4.0, 0.0], [3.0, 0.0]]), temperature=1.0, iterations=100)
    >>> [round(column, 3) for column in q.mean(0).tolist()]
    [0.5, 0.5]
    """
    log_kernel = logits / temperature  # (batch, k)
    log_columns = torch.zeros_like(log_kernel[0])  # (k,)
    while iterations > 0:
        # The first round of a block in the log domain: then no row or column of the kernel is
        # empty, whatever the logits, and the cheap rounds that follow can't divide by zero.
        log_rows = -torch.logsumexp(log_kernel + log_columns, dim=1, keepdim=True)  # (batch, 1)
        log_columns = -share.logsumexp(log_kernel + log_rows)
        kernel = (log_kernel + log_rows + log_columns).exp_()
        columns = torch.ones_like(log_columns)
        rounds = min(iterations, _ROUNDS_PER_BLOCK)
        for _ in range(rounds - 1):
            rows = torch.mv(kernel, columns).reciprocal_()
            columns = share.sum(torch.mv(kernel.T, rows)).reciprocal_()
        log_columns += columns.log_()
        iterations -= rounds
    return torch.softmax(log_kernel + log_columns, dim=1)


def entropy(q: Tensor, share: Share = WHOLE) -> Tensor:
    """Mean entropy of the rows of `q`, in nats."""
    rows: Tensor = torch.special.entr(q).sum(dim=1)
    return share.mean(rows)


def marginal_error(q: Tensor, share: Share = WHOLE) -> float:
    """Largest relative deviation of a prototype's share from 1/k."""
    return float((share.mean(q, 0) * q.shape[1] - 1).abs().max())


def scheduled_entropy(final: float, k: int, progress: float) -> float:
    """Target entropy after a share of the warm-up: from log k to `final` by a cosine (Eq. 8)."""
    scale = (math.cos(math.pi * min(progress, 1.0)) + 1) / 2
    return final + (math.log(k) - final) * scale


def adapt(
    logits: Tensor,
    temperature: float,
    target_entropy: float,
    iterations: int,
    share: Share = WHOLE,
) -> tuple[Tensor, float]:
    """Targets whose mean entropy is near `target_entropy`, and the temperature that gave them.

    The temperature moves in steps of 0.1 within [0.1, 1], at most five times (Algorithm 2).
    """
    low, high = TEMPERATURE_RANGE
    q = sinkhorn(logits, temperature, iterations, share)
    for _ in range(POLICY_ROUNDS):
        excess = float(entropy(q, share)) - target_entropy
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
        q = sinkhorn(logits, temperature, iterations, share)
    return q, temperature
