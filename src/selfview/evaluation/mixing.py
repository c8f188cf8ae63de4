"""How well the rows of several groups (speakers, donors, days) are mixed in an embedding."""

import numpy as np

from selfview.evaluation.inputs import Floats, Ints
from selfview.evaluation.neighbourhood import (
    GRAPH_ROWS,
    majority_vote,
    silhouette,
    subsample,
    tsne_layout,
)

PERPLEXITY = 30  # of LISI, as its authors take it
BISECTIONS = 50  # of the search for a bandwidth


def mixing_scores(Z: Floats, groups: Ints, seed: int) -> dict[str, float]:
    """Agreement of neighbourhoods with the groups: low for the first two, high for the third.

    `group_graph_accuracy` is the graph vote by group (the share of the largest group, if they are
    mixed wholly), `group_silhouette` the silhouette by group (0 or less), `ilisi` the mean
    effective number of groups around a row (the number of groups, if they are of one size).
    """
    rows = subsample(len(Z), GRAPH_ROWS, seed)
    codes = groups[rows]
    vote = majority_vote(tsne_layout(Z[rows], seed), codes)
    return {
        "group_graph_accuracy": float(np.mean(vote == codes)),
        "group_silhouette": silhouette(Z, groups, seed)["silhouette"],
        "ilisi": float(lisi(Z[rows], codes).mean()),
        "n_groups": int(groups.max()) + 1,
    }


def lisi(Z: Floats, codes: Ints, perplexity: float = PERPLEXITY) -> Floats:
    """Local inverse Simpson's index of every row: the effective number of codes around it [1]_.

    ``1 / sum_c p_c ** 2``, where p_c is the weight of code c among the row's ``3 * perplexity``
    nearest rows, by a Gaussian whose bandwidth gives the distribution that perplexity.

    Parameters
    ----------
    Z : array (n, dim)
    codes : array (n,) of int from 0
    perplexity : float, default 30
        At most a third of the other rows.

    References
    ----------
    .. [1] Korsunsky et al., "Fast, sensitive and accurate integration of single-cell data with
       Harmony", Nature Methods 16, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.random.default_rng(0).normal(size=(300, 2))
    >>> float(lisi(Z + 99 * (np.arange(300) < 150)[:, None], np.arange(300) // 150).max().round(3))
    1.0
    """
    from sklearn.neighbors import NearestNeighbors

    perplexity = min(perplexity, (len(Z) - 1) / 3)
    count = max(1, int(3 * perplexity))
    distances, near = NearestNeighbors(n_neighbors=count).fit(Z).kneighbors()
    weights = _gaussian_weights(distances, perplexity)  # (n, count)
    shares = np.zeros((len(Z), int(codes.max()) + 1))
    np.add.at(shares, (np.arange(len(Z))[:, None], codes[near]), weights)
    return np.asarray(1 / np.square(shares).sum(axis=1))


def _gaussian_weights(distances: Floats, perplexity: float) -> Floats:
    """Rows of ``exp(-beta * d)`` that sum to 1, beta found so that their perplexity is as asked."""
    shifted = distances - distances[:, :1]
    scale = shifted.mean(axis=1, keepdims=True)
    shifted = np.divide(shifted, scale, out=np.zeros_like(shifted), where=scale > 0)
    low, high = np.full((len(shifted), 1), -30.0), np.full((len(shifted), 1), 30.0)  # of log beta
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        weights = np.exp(-np.exp(middle) * shifted)
        weights /= weights.sum(axis=1, keepdims=True)
        entropy = -(weights * np.log(np.clip(weights, 1e-300, None))).sum(axis=1, keepdims=True)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    return np.asarray(weights)
