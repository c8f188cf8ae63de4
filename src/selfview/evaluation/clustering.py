"""k-means and its agreement with the classes."""

import warnings

import numpy as np
import numpy.typing as npt

from selfview.evaluation.inputs import Floats, Ints

INITIALISATIONS = 20


def kmeans(Z: Floats, k: int, seed: int) -> Ints:
    """Cluster of each row: the best of 20 k-means++ starts by inertia, on Z as it is."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    model = KMeans(n_clusters=k, n_init=INITIALISATIONS, random_state=seed)
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: a collapsed embedding, and the scores say it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(model.fit_predict(Z), dtype=np.int64)


def matched_accuracy(codes: npt.ArrayLike, clusters: npt.ArrayLike) -> float:
    """Share of rows that agree under the best one-to-one matching of clusters and classes.

    >>> matched_accuracy([0, 0, 1, 1], [7, 7, 3, 7])
    0.75
    """
    from scipy.optimize import linear_sum_assignment

    _, rows = np.unique(np.asarray(codes), return_inverse=True)
    _, columns = np.unique(np.asarray(clusters), return_inverse=True)
    counts = np.zeros((rows.max() + 1, columns.max() + 1), dtype=np.int64)
    np.add.at(counts, (rows, columns), 1)
    matched = counts[linear_sum_assignment(counts, maximize=True)].sum()
    return float(matched / rows.size)


def clustering_scores(Z: Floats, codes: Ints, seed: int, k: int) -> dict[str, float]:
    """ACC, NMI (arithmetic) and ARI of k-means with k clusters, as many as classes."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    clusters = kmeans(Z, min(k, len(Z)), seed)
    return {
        "kmeans_acc": matched_accuracy(codes, clusters),
        "kmeans_nmi": float(normalized_mutual_info_score(codes, clusters)),
        "kmeans_ari": float(adjusted_rand_score(codes, clusters)),
    }
