"""The axes along which an embedding is given: learned ones are as good as any turn of them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ROWS = 20_000  # whose embeddings tell the axes
STREAM_ROWS = 1000  # the same after each pass over a stream
BATCH = 256  # rows embedded at a time

POWER = 0.25  # of the whitening: 0 turns the axes only, 1 gives all the same standard deviation
LEAST = 1e-3  # of the largest standard deviation, below which an axis is noise, and not widened


def partial_whitening(z: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of embeddings, and the axes along which they are uncorrelated.

    Axes are the principal ones, sorted by standard deviation. Each is divided by its standard
    deviation, relative to the first one's, to the power 0.25: a distance is not a matter of two or
    three axes alone. The largest entry of each is positive, so that the same embedding has the same
    axes.

    Parameters
    ----------
    z : Tensor (n, dim)

    Returns
    -------
    Tensor (dim,), Tensor (dim, dim)
        ``(z - centre) @ axes`` are the new embeddings.

    Examples
    --------
    >>> z = torch.tensor([[3.0, 3.0], [-3.0, -3.0], [1.0, -1.0], [-1.0, 1.0]])
    >>> centre, axes = partial_whitening(z)
    >>> torch.linalg.vector_norm((z - centre) @ axes, dim=0)
    tensor([6.0000, 2.6321])
    """
    exact = z.double()
    centre = exact.mean(0)
    variances, turn = torch.linalg.eigh((exact - centre).T @ (exact - centre))
    stds, turn = variances.clamp_min(0).sqrt().flip(0), turn.flip(1)  # the largest first
    signs = turn.gather(0, turn.abs().argmax(0, keepdim=True)).sign()
    widths = (stds / stds[0].clamp_min(torch.finfo(z.dtype).tiny)).clamp_min(LEAST)
    axes = (turn * signs * widths**-POWER).to(z.dtype)
    return centre.to(z.dtype), axes.contiguous()  # as it will be read: rounding goes by layout


@torch.no_grad()
def whiten(
    encoder: Any, take: Callable[[NDArray[np.intp]], Tensor], n: int, seed: int, rows: int
) -> None:
    """Let `encoder` give embeddings along the axes of `partial_whitening`.

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
        encoder.centre, encoder.axes = partial_whitening(z.float())
