"""Targets by optimal transport: Sinkhorn-Knopp (Algorithm 1) and the temperature policy (2)."""

import math

import torch
from torch import Tensor

from selfview.distributed import WHOLE, Share

TEMPERATURE_RANGE = (0.1, 1.0)
TEMPERATURE_STEP = 0.1  # h_step
ENTROPY_TOLERANCE = 5e-3  # h_tol
POLICY_ROUNDS = 5

_DIGITS = 36  # that the scalings may have before they are folded back, in float32


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
    return _transport(logits, temperature, iterations, share)[0]


def _transport(
    logits: Tensor, temperature: float, iterations: int, share: Share
) -> tuple[Tensor, float]:
    """What `sinkhorn` returns, and its mean entropy, which costs little here."""
    m, k = logits.shape
    # In t rounds a scaling grows to no more than the larger side to the power of t + 1.
    block = max(1, int(_DIGITS / math.log10(max(m / share.weight, k, 10))) - 1)
    log_kernel = logits / temperature  # (batch, k)
    log_kernel -= log_kernel.amax(1, keepdim=True)
    done = 0
    while True:
        # Every row had its largest entry at 0, and now so has every column: none is empty, and
        # nothing below divides by zero, whatever the logits. What columns were raised by is taken
        # off their first scaling, so that the rounds are those of the kernel as it was.
        raised = -share.amax(log_kernel)
        log_kernel += raised
        kernel = log_kernel.exp()
        columns = torch.exp(-raised)  # (k,)
        for _ in range(min(block, iterations - done)):
            rows = torch.mv(kernel, columns).reciprocal_()  # (batch,)
            columns = share.sum(torch.mv(kernel.T, rows)).reciprocal_()
            done += 1
        if done == iterations:
            break
        log_kernel += columns.log_()
        log_kernel -= log_kernel.amax(1, keepdim=True)
    q = kernel.mul_(columns)
    sums = q.sum(1)
    q /= sums[:, None]
    # -log q is log(sums) - log_kernel - log(columns); a column that vanished has no share in it.
    surprise = sums.log() - torch.mv(q, columns.log().nan_to_num_(neginf=0.0))
    surprise -= (q * log_kernel).sum(1)
    return q, float(share.mean(surprise))


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
    known: dict[float, tuple[Tensor, float]] = {}  # the policy often goes to and fro

    def solve(temperature: float) -> tuple[Tensor, float]:
        if temperature not in known:
            known[temperature] = _transport(logits, temperature, iterations, share)
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
