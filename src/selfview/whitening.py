"""The axes along which an embedding is given: learned ones are as good as any turn of them."""

import torch
from torch import Tensor

EVENED = 0.5  # power by which the spreads of the axes are brought together
LEAST = (
    1e-3  # of the largest spread, below which an axis is taken for noise and not widened further
)


def partial_whitening(z: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of embeddings, and the axes along which they are uncorrelated.

    Axes are sorted by spread, the first keeps its own, and each of the others gets the geometric
    mean of its own and the first one's: a distance is not a matter of two or three axes alone. The
    largest entry of each is positive, so that the same embedding has the same axes.

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
    tensor([6.0000, 3.4641])
    """
    exact = z.double()
    centre = exact.mean(0)
    variances, turn = torch.linalg.eigh((exact - centre).T @ (exact - centre))
    spreads, turn = variances.clamp_min(0).sqrt().flip(0), turn.flip(1)  # the largest first
    signs = turn.gather(0, turn.abs().argmax(0, keepdim=True)).sign()
    widths = (spreads / spreads[0].clamp_min(torch.finfo(z.dtype).tiny)).clamp_min(LEAST)
    axes = (turn * signs * widths**-EVENED).to(z.dtype)
    return centre.to(z.dtype), axes.contiguous()  # as it will be read: rounding goes by layout
