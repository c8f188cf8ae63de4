"""Signs of a healthy or collapsed run, in numbers and in words."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

MIN_PROTOTYPE_USE = 0.1
MIN_EFFECTIVE_RANK = 1.5
MAX_ENTROPY = 0.98


def effective_rank(z: Tensor) -> float:
    """exp of the entropy of the covariance's spectrum: how many directions the embedding fills.

    Between 1 (a line, or a point) and the number of columns (equal variance in all directions).
    """
    values = torch.linalg.svdvals((z - z.mean(0)).double()).square()
    total = values.sum()
    if not total > 0:
        return 1.0
    return float(torch.special.entr(values / total).sum().exp())


def prototype_use(p: Tensor) -> float:
    """Perplexity of the mean assignment over k: 1 if all prototypes are used equally."""
    return float(torch.special.entr(p.double().mean(0)).sum().exp()) / p.shape[1]


def relative_entropy(p: Tensor) -> float:
    """Mean entropy of the rows of `p` over log k: 1 if no row is told from another."""
    return float(torch.special.entr(p.double()).sum(1).mean()) / math.log(p.shape[1])


def verdict(figures: Mapping[str, float], n_components: int) -> tuple[bool, str]:
    """Is the run sound, and a sentence that says so or what to change."""
    if not all(map(math.isfinite, figures.values())):
        return False, "not finite: scale the data or lower learning_rate"
    rank = figures["effective_rank"]
    if n_components > 1 and rank < MIN_EFFECTIVE_RANK:
        # Only SelfView has prototypes, and with them an epsilon.
        remedy = "Lower epsilon, or train" if "prototype_use" in figures else "Train"
        return False, (
            f"collapsed: the embedding fills {rank:.1f} of {n_components} directions. {remedy} "
            "for more epochs"
        )
    if figures.get("prototype_use", 1.0) < MIN_PROTOTYPE_USE:
        return False, (
            f"collapsed: the rows share {figures['prototype_use']:.0%} of the prototypes. Lower "
            "n_prototypes or epsilon, or raise sinkhorn_iterations"
        )
    if figures.get("entropy_over_log_k", 0.0) > MAX_ENTROPY:
        return False, (
            "nothing learned: the predictions are as uncertain as at the start. Lower epsilon, or "
            "train for more epochs"
        )
    return True, "healthy: no collapse of the embedding or of the prototypes"
