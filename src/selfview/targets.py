"""Targets by optimal transport: Sinkhorn-Knopp (Algorithm 1) and the temperature policy (2)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from selfview.distributed import WHOLE, Share

TEMPERATURE_RANGE = (0.1, 1.0)
TEMPERATURE_STEP = 0.1  # h_step
ENTROPY_TOLERANCE = 5e-3  # h_tol
POLICY_ROUNDS = 5

# Scalings are folded back into the exponent of the kernel after so many rounds, or before they can
# leave the range of float32.
_ROUNDS, _DIGITS = 10, 38
# Up to such scalings of the columns, what vanishes in float32 beside a row's largest entry is lost
# to nobody.
_LARGE = 1e20
_CACHED = 1 << 18  # entries of a kernel that a processor keeps at hand: 1 MiB of float32


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
    if iterations <= _ROUNDS:
        kernel = torch.softmax(logits / temperature, dim=1)
        parts = _parts(kernel)
        columns = _scale(parts, logits.new_ones(logits.shape[1]), iterations, share)
        if columns.amax() < _LARGE:  # also false for NaN
            return _assigned(kernel, parts, columns)
    return _far_apart(logits, temperature, iterations, share)


def _far_apart(logits: Tensor, temperature: float, iterations: int, share: Share) -> Tensor:
    """`sinkhorn` for any finite logits and any number of rounds."""
    m, k = logits.shape
    # In t rounds no scaling grows beyond the larger side to the power of t.
    safe = max(1, int(_DIGITS / math.log10(max(m / share.weight, k, 10))))
    log_columns = logits.new_zeros(k)
    while True:
        kernel = torch.add(log_columns, logits, alpha=1 / temperature)  # (batch, k)
        parts = _parts(kernel)
        for part in parts:
            part -= part.amax(1, keepdim=True)
        # Every row has its largest entry at 0, and so will every column: none is empty, and nothing
        # below divides by zero, whatever the logits. What columns are raised by is taken off their
        # first scaling, so that the rounds are those of the kernel as it was.
        raised = -share.amax(kernel)
        for part in parts:
            part.add_(raised).exp_()
        rounds = min(iterations, _ROUNDS)
        columns = _scale(parts, torch.exp(-raised), rounds, share)
        if rounds > safe and not (columns.isfinite() & (columns > 0)).all():
            rounds = safe
            columns = _scale(parts, torch.exp(-raised), rounds, share)
        iterations -= rounds
        if iterations == 0:
            break
        log_columns += raised + columns.log_()
    return _assigned(kernel, parts, columns)


def _parts(kernel: Tensor) -> Sequence[Tensor]:
    """Rows of a kernel that fit into a processor's cache: they are read once a round, not twice."""
    return torch.split(kernel, max(1, _CACHED // kernel.shape[1])) if kernel.is_cpu else [kernel]


def _scale(parts: Sequence[Tensor], columns: Tensor, rounds: int, share: Share) -> Tensor:
    """The scaling of the columns after so many rounds of a kernel that comes in parts."""
    if columns.is_cpu:
        return _scale_arrays([part.numpy() for part in parts], columns.numpy(), rounds, share)
    for _ in range(rounds):
        sums = torch.zeros_like(columns)
        for part in parts:
            sums.addmv_(part.T, torch.mv(part, columns).reciprocal_())
        columns = share.sum(sums).reciprocal_()
    return columns


def _scale_arrays(
    parts: Sequence[NDArray[Any]], columns: NDArray[Any], rounds: int, share: Share
) -> Tensor:
    """`_scale` by NumPy, whose calls cost less than half of PyTorch's: most of it is calls."""
    first, *others = [(part, np.empty(len(part), part.dtype)) for part in parts]
    alone = share is WHOLE
    with np.errstate(all="ignore"):
        for _ in range(rounds):
            sums = _column_sums(*first, columns)
            for other in others:
                sums += _column_sums(*other, columns)
            if not alone:
                sums = share.sum(torch.from_numpy(sums)).numpy()
            columns = np.reciprocal(sums, out=sums)
    return torch.from_numpy(columns)


def _column_sums(kernel: Any, rows: Any, columns: Any) -> Any:
    """Sums of the columns of a scaled kernel once its rows sum to 1; `rows` is room for these."""
    np.dot(kernel, columns, out=rows)
    return np.dot(np.reciprocal(rows, out=rows), kernel)


def _assigned(kernel: Tensor, parts: Sequence[Tensor], columns: Tensor) -> Tensor:
    """The kernel with scaled columns and rows that sum to 1, in its own memory."""
    for part in parts:
        part *= columns
        part /= part.sum(1, keepdim=True)
    return kernel


def entropy(q: Tensor, share: Share = WHOLE) -> Tensor:
    """Mean entropy of the rows of `q`, in nats."""
    log_q = q.clamp_min(torch.finfo(q.dtype).tiny).log_()  # finite where q is 0, as is the product
    return -share.mean((q * log_q).sum(1))


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
            q = sinkhorn(logits, temperature, iterations, share)
            known[temperature] = q, float(entropy(q, share))
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
