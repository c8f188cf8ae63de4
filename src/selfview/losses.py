"""The training objective. Losses know no trainer and no network."""

import torch
from torch import Tensor
from torch.nn import functional as F

from selfview.distributed import WHOLE, Share


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
    """KL(q2 || p1) + KL(q1 || p2): each view predicts the target of the other (Eq. 6)."""
    return kl(q2, logits1) + kl(q1, logits2)


def info_nce(z1: Tensor, z2: Tensor, share: Share = WHOLE) -> Tensor:
    """How badly the two views of a row are told from those of the batch's other rows.

    Cross-entropy of finding a row's other view among all, either way, where embeddings at the
    distance d are alike by 1 / (1 + d^2). By its heavy tail, unlike rows may be anywhere far away
    [1]_.

    References
    ----------
    .. [1] Böhm, Berens, Kobak, "Unsupervised visualization of image datasets using contrastive
       learning", ICLR 2023; van der Maaten, Hinton, "Visualizing data using t-SNE", JMLR 9, 2008.

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
        centre = share.mean(z1.detach(), 0)
        z1, z2 = z1 - centre, z2 - centre
        all1, all2 = share.gather(z1), share.gather(z2)
        own = torch.arange(len(all1), device=z1.device)[share.rows]
        there, back = _likeness(z1, all2), _likeness(z2, all1)
        return (F.cross_entropy(there, own) + F.cross_entropy(back, own)) / 2


def _likeness(a: Tensor, b: Tensor) -> Tensor:
    squares = a.square().sum(1, keepdim=True) + b.square().sum(1) - 2 * a @ b.T
    return -torch.log1p(squares.clamp_min(0))
