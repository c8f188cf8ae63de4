"""The training objective. Losses know no trainer and no network."""

import torch
from torch import Tensor
from torch.nn import functional as F


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
