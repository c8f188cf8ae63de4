"""The axes along which an embedding is given: learned ones are as good as any turn of them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ROWS = 5_000  # whose embeddings tell the axes
STREAM_ROWS = 1000  # the same after each pass over a stream
BATCH = 256  # rows embedded at a time

NEAREST = 30  # rows whose differences are whitened; of few rows, a fifth
RIDGE = 1.0  # added to their covariance, in units of its mean variance
LEAST = 1e-6  # the same, in units of the embedding's variance: nearest rows may be equal


def local_whitening(z: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of embeddings, and axes that count by how little near rows differ along them.

    First the embedding is whitened by half: with S its covariance, it is multiplied by
    ``S ** -1/4``, so that its singular values become their roots. Then, with C the covariance of
    the differences between rows and their nearest, and c its mean variance, it is multiplied by
    ``(C + c I) ** -1/2``. So distances are in units of those between near rows, but no direction is
    widened much only because near rows are equal in it. This is within-class covariance
    normalisation [1]_, with neighbours in place of classes. The new axes are the principal ones,
    sorted by standard deviation, and the largest entry of each is positive, so that the same
    embedding has the same axes. The mean square length of embeddings stays.

    Parameters
    ----------
    z : Tensor (n, dim)

    Returns
    -------
    Tensor (dim,), Tensor (dim, dim)
        ``(z - centre) @ axes`` are the new embeddings.

    References
    ----------
    .. [1] Hatch, Kajarekar, Stolcke, "Within-class covariance normalization for SVM-based speaker
       recognition", Interspeech 2006.

    Examples
    --------
    Four clusters, eight times as long in one direction as in the other, become rounder:

    >>> within = torch.tensor([[8.0, 0], [-8, 0], [0, 1], [0, -1]])
    >>> z = within + torch.tensor([[0.0, 50], [60, 0], [0, -50], [-60, 0]])[:, None]
    >>> centre, axes = local_whitening(z.flatten(0, 1))
    >>> lengths = torch.linalg.vector_norm(within @ axes, dim=1)
    >>> round((lengths.max() / lengths.min()).item(), 1)
    4.3
    """
    exact = z.double()
    centre = exact.mean(0)
    moved = exact - centre
    size = moved.square().mean()
    unit = torch.eye(z.shape[1], dtype=exact.dtype, device=z.device)
    least = LEAST * size + torch.finfo(z.dtype).tiny
    half = matrix_power(moved.T @ moved / len(z) + least * unit, -1 / 4)
    C = _local_covariance(moved @ half)
    C += (RIDGE * C.diagonal().mean() + least) * unit
    root = half @ matrix_power(C, -1 / 2)
    white = moved @ root
    turn = torch.linalg.eigh(white.T @ white)[1].flip(1)  # the largest first
    axes = root @ turn * (size / white.square().mean().clamp_min(1e-300)).sqrt()
    signs = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    axes = (axes * signs).to(z.dtype)
    return centre.to(z.dtype), axes.contiguous()  # as it will be read: rounding goes by layout


def matrix_power(covariance: Tensor, exponent: float) -> Tensor:
    """The symmetric matrix that is ``covariance ** exponent``."""
    values, vectors = torch.linalg.eigh(covariance)
    values = values.clamp_min(torch.finfo(torch.float32).tiny) ** exponent
    found: Tensor = vectors * values @ vectors.T
    return found


def _local_covariance(z: Tensor) -> Tensor:
    """Mean outer product of the differences between rows and their nearest: (dim, dim)."""
    count = max(1, min(NEAREST, len(z) // 5))
    total = z.new_zeros(z.shape[1], z.shape[1])
    for part in torch.split(z, BATCH):
        # A row is its own nearest, or equal to it.
        near = torch.cdist(part, z).topk(min(count + 1, len(z)), largest=False).indices
        differences = (part.unsqueeze(1) - z[near]).flatten(0, 1)
        total += differences.T @ differences
    return total / (len(z) * count)


@torch.no_grad()
def whiten(
    encoder: Any, take: Callable[[NDArray[np.intp]], Tensor], n: int, seed: int, rows: int
) -> None:
    """Let `encoder` give embeddings along the axes of `local_whitening`.

    Parameters
    ----------
    encoder : ScaledEncoder
    take : callable
        From row numbers to a batch.
    n : int
        Number of rows there are.
    seed : int
        Decides which rows tell the axes.
    rows : int
        How many of them.
    """
    some = np.sort(np.random.default_rng(seed).permutation(n)[:rows])
    parts = np.array_split(some, math.ceil(len(some) / BATCH))
    z = torch.cat([encoder.features(take(part)) for part in parts])
    if z.isfinite().all():  # else the verdict says what is wrong
        encoder.centre, encoder.axes = local_whitening(z.float())
