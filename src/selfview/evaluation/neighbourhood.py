"""Measures of neighbourhoods: the paper's graph evaluation, trustworthiness, silhouette."""

import contextlib
import warnings
from collections.abc import Iterator

import numpy as np

from selfview import health
from selfview.errors import InputError, MissingDependencyError
from selfview.evaluation.inputs import Floats, Ints, careful_mean

NEIGHBOURS = 21
PERPLEXITY = 30
GRAPH_ROWS = 20_000  # more rows are subsampled: t-SNE beyond this takes minutes
BARNES_HUT_ROWS = 5_000  # below, openTSNE's grid of Fourier transforms is the slower way
PAIRWISE_ROWS = 5_000  # trustworthiness and silhouette hold all pairs in memory: 200 MB
TRUST_NEIGHBOURS = 5  # scikit-learn's default


def subsample(n: int, limit: int, seed: int) -> Ints:
    """At most `limit` row numbers, drawn without looking at the labels, in random order.

    Files are often sorted by class, and equal rows find their neighbours by row number: a collapsed
    embedding in the order of the file would score well.
    """
    return np.random.default_rng(seed).permutation(n)[:limit]


def majority_vote(
    points: Floats, codes: Ints, k: int = NEIGHBOURS, *, itself: bool = False
) -> Ints:
    """For each point the commonest code of its k nearest others; ties go to the lowest code.

    With `itself` a point is one of its own k nearest: what it votes for is no evidence.
    """
    from sklearn.neighbors import NearestNeighbors

    k = min(k, len(points) - 1)
    search = NearestNeighbors(n_neighbors=k, n_jobs=-1).fit(points)
    # (n, k); without points, each one's own is left out
    others = search.kneighbors(points if itself else None, return_distance=False)
    votes = np.zeros((len(points), int(codes.max()) + 1), dtype=np.int32)
    np.add.at(votes, (np.arange(len(points))[:, None], codes[others]), 1)
    return np.asarray(votes.argmax(axis=1), dtype=np.int64)


def tsne_layout(Z: Floats, seed: int) -> Floats:
    """A 2-d t-SNE of the rows (openTSNE, perplexity 30 or a third of the rows, exact neighbours).

    It depends on the rows, their order and the seed alone. It takes one thread: a second one saves
    a tenth of the time, and loses many times that when the machine is busy.
    """
    try:
        from openTSNE import TSNEEmbedding, affinity, nearest_neighbors
    except ImportError as error:
        raise MissingDependencyError(
            "the graph measure needs openTSNE: pip install 'selfview[graph]', or leave 'graph' "
            "out of measures"
        ) from error
    from sklearn.neighbors import NearestNeighbors

    # The search for bandwidths depends on the scale, so rows are scaled to a root mean square of 1;
    # rounding to float32 makes Z and 1000 * Z exactly the same rows.
    rows = Z - careful_mean(Z)
    rows /= np.sqrt(np.square(rows).sum(axis=1).mean()) or 1.0
    rows = rows.astype(np.float32).astype(np.float64)
    perplexity = min(PERPLEXITY, (len(rows) - 1) / 3)
    search = NearestNeighbors(n_neighbors=max(1, int(3 * perplexity)), n_jobs=-1).fit(rows)
    distances, neighbours = search.kneighbors()
    with _quiet():
        affinities = affinity.PerplexityBasedNN(
            knn_index=nearest_neighbors.PrecomputedNeighbors(neighbours, distances),
            perplexity=perplexity,
            n_jobs=1,
        )
        embedding = TSNEEmbedding(
            _first_layout(rows, seed),
            affinities,
            n_jobs=1,
            random_state=seed,
            negative_gradient_method="fft" if len(rows) > BARNES_HUT_ROWS else "bh",
        )
        embedding.optimize(250, exaggeration=12, momentum=0.8, inplace=True)
        embedding.optimize(500, momentum=0.8, inplace=True)
    return np.asarray(embedding, dtype=np.float64)


def _first_layout(rows: Floats, seed: int) -> Floats:
    """The first two principal components, small, with a jitter that separates equal rows."""
    from sklearn.decomposition import PCA

    padded = np.column_stack([rows, np.zeros(len(rows))])  # one feature has one component only
    start = PCA(n_components=2, random_state=seed).fit_transform(padded)
    start *= 1e-4 / (start[:, 0].std() or 1.0)
    return np.asarray(start + np.random.default_rng(seed).normal(scale=1e-6, size=start.shape))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    import logging

    logger = logging.getLogger("openTSNE")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def graph_accuracy(Z: Floats, codes: Ints, seed: int) -> dict[str, float]:
    """Share of rows whose label wins the vote of their 21 nearest neighbours in a 2-d t-SNE."""
    rows = subsample(len(Z), GRAPH_ROWS, seed)
    points = tsne_layout(Z[rows], seed)
    return {
        "graph_accuracy": float(np.mean(majority_vote(points, codes[rows]) == codes[rows])),
        "graph_rows": rows.size,
    }


def silhouette(Z: Floats, codes: Ints, seed: int) -> dict[str, float]:
    """Mean silhouette of the classes, of at most 5,000 rows; from -1 to 1, higher is tighter."""
    from sklearn.metrics import silhouette_score

    rows = subsample(len(Z), PAIRWISE_ROWS, seed)
    classes = np.unique(codes[rows]).size
    if not 2 <= classes < rows.size:  # the subsample or test part may have lost a rare class
        return {"silhouette": float("nan"), "silhouette_rows": rows.size}
    score = float(silhouette_score(Z[rows], codes[rows]))
    return {"silhouette": score, "silhouette_rows": rows.size}


def trustworthiness(X: Floats, Z: Floats, seed: int) -> dict[str, float]:
    """How far the 5 nearest neighbours in Z are neighbours in X too; 1 is perfect."""
    from sklearn.manifold import trustworthiness as score

    rows = subsample(len(Z), PAIRWISE_ROWS, seed)
    neighbours = min(TRUST_NEIGHBOURS, (rows.size - 1) // 2)
    if neighbours < 1:
        raise InputError(f"trustworthiness needs at least 3 rows, got {rows.size}")
    value = float(score(X[rows], Z[rows], n_neighbors=neighbours))
    return {"trustworthiness": value, "trustworthiness_rows": rows.size}


def effective_rank(Z: Floats) -> dict[str, float]:
    """The effective rank, from 1 to the number of features; 0 for a constant Z."""
    return {"effective_rank": health.effective_rank(Z)}
