"""The losses: KL divergence, SwAV's swapped prediction, InfoNCE. Tensors in, tensors out."""

import torch
from torch import Tensor
from torch.nn import functional as F

from selfview.distributed import WHOLE_BATCH, BatchShard


def finite_log(q: Tensor) -> Tensor:
    """Logarithm of probabilities, finite also at 0, where its product with them is to be 0."""
    return q.clamp_min(torch.finfo(q.dtype).tiny).log()


def kl(q: Tensor, logits: Tensor) -> Tensor:
    """Mean over rows of KL(q || softmax(logits)); no gradient reaches `q`.

    Computed in float32 or better, whatever the precision of the logits.
    """
    q = q.detach()
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    log_p = F.log_softmax(logits, dim=1)
    rows: Tensor = (q * (finite_log(q) - log_p)).sum(dim=1)
    return rows.mean()


def swapped_kl(q1: Tensor, logits1: Tensor, q2: Tensor, logits2: Tensor) -> Tensor:
    """SwAV's swapped prediction, ``KL(q2 || p1) + KL(q1 || p2)``, ``p = softmax(logits)`` (Eq. 6).

    Each view predicts the target of the other.

    Parameters
    ----------
    q1, q2 : Tensor (batch, k)
        Targets of the two views, without gradient.
    logits1, logits2 : Tensor (batch, k)
        Predictions for the two views.

    Examples
    --------
    >>> q = torch.full((2, 4), 0.25)
    >>> swapped_kl(q, torch.zeros(2, 4), q, torch.zeros(2, 4)).item()
    0.0
    """
    return kl(q2, logits1) + kl(q1, logits2)


def info_nce(
    z1: Tensor,
    z2: Tensor,
    shard: BatchShard = WHOLE_BATCH,
    *,
    power: float = 1.0,
    attraction: float = 1.0,
) -> Tensor:
    """InfoNCE with a Cauchy (Student-t) kernel, as in InfoNC-t-SNE [1]_.

    With the similarity ``s(a, b) = (1 + |a - b|^2) ** -power`` of embeddings, and the two views
    ``a_i`` and ``b_i`` of row i, it is the mean over rows and both directions of::

        log(sum_j s(a_i, b_j)) - attraction * log(s(a_i, b_i))

    The heavy tail of the kernel leaves it open how far apart different rows are.

    Parameters
    ----------
    z1, z2 : Tensor (batch, dim)
        Embeddings of the two views.
    shard : BatchShard, default the whole batch
        Which rows of the batch these are, if several processes hold it.
    power : float, default 1.0
        Of the kernel: an inverse temperature.
    attraction : float, default 1.0
        Weight of the views' own similarity; above 1 clusters become tighter.

    References
    ----------
    .. [1] Damrich, Böhm, Hamprecht, Kobak, "From t-SNE to UMAP with contrastive learning", ICLR
       2023; Böhm, Berens, Kobak, "Unsupervised visualization of image datasets using contrastive
       learning", ICLR 2023.

    Examples
    --------
    >>> near, far = torch.zeros(2, 3), torch.tensor([[0.0, 0, 0], [99, 0, 0]])
    >>> info_nce(near, near).item() > info_nce(far, far).item()
    True
    """
    # Squares of differences as differences of squares need more digits than bfloat16 has.
    with torch.autocast(z1.device.type, enabled=False):
        kind = torch.promote_types(z1.dtype, torch.float32)
        z1, z2 = z1.to(kind), z2.to(kind)
        centre = shard.mean(z1.detach(), 0)
        z1, z2 = z1 - centre, z2 - centre
        all1, all2 = shard.gather(z1), shard.gather(z2)
        there = _cauchy(z1, all2, power)  # (batch, whole batch)
        back = there.T if len(all1) == len(z1) else _cauchy(z2, all1, power)
        repulsion = (finite_log(there.sum(1)) + finite_log(back.sum(1))).mean() / 2
        alike = -power * torch.log1p((z1 - z2).square().sum(1)).mean()
        return repulsion - attraction * alike


def _cauchy(a: Tensor, b: Tensor, power: float) -> Tensor:
    """Similarities (1 + |a - b|^2) ** -power of all pairs."""
    norms = a.square().sum(1, keepdim=True) + b.square().sum(1)
    squares = torch.addmm(norms, a, b.T, alpha=-2).clamp_min(0)
    return torch.exp(-power * torch.log1p(squares))
