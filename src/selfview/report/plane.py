"""Where the rows lie on the map: a plane made from their embedding, never from their labels."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from selfview.errors import InputError, MissingDependencyError

LAYOUTS = ("auto", "tsne", "pca")
TSNE_ROWS = 5_000  # more would take longer than many a fit; the others join their neighbours
_VOTERS = 5

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plane:
    """A point for each row, the name of the method, and a sentence on how it was done."""

    points: Floats  # (n, 2)
    method: str
    note: str


def lay_out(Z: NDArray[np.floating], method: str = "auto", seed: int = 0) -> Plane:
    """The rows of an embedding (n, dim) in the plane, by "tsne" or "pca".

    "auto" is t-SNE where openTSNE is installed and there are ten rows or more.

    >>> lay_out(np.eye(4), method="pca").points.shape
    (4, 2)
    """
    if method not in LAYOUTS:
        raise InputError(f"layout must be one of {', '.join(LAYOUTS)}, got {method!r}")
    rows = np.asarray(Z, dtype=np.float64)
    installed = find_spec("openTSNE") is not None
    if method == "tsne" and not installed:
        raise MissingDependencyError("a t-SNE map needs openTSNE: pip install 'selfview[graph]'")
    if method == "pca" or not installed or len(rows) < 10 or not np.ptp(rows, axis=0).any():
        return _pca(rows)
    from selfview.evaluation.neighbourhood import tsne_layout

    return _tsne(rows, seed, tsne_layout)


def principal(rows: Floats, count: int) -> tuple[Floats, float]:
    """The first principal components (n, count), zeros where there are fewer, and their share."""
    from scipy.linalg import eigh

    centred = rows - rows.mean(axis=0)
    values, vectors = eigh(centred.T @ centred)
    kept = min(count, rows.shape[1])
    axes = vectors[:, ::-1][:, :kept]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(kept)] < 0, -1, 1)
    parts = np.zeros((len(rows), count))
    parts[:, :kept] = centred @ axes
    total = values.clip(0).sum()
    return parts, float(values[::-1][:kept].clip(0).sum() / total) if total > 0 else 1.0


def turned(points: Floats) -> Floats:
    """The points (n, 2) turned so that a square around them is smallest: a map fills its frame.

    >>> turned(np.array([[0.0, 0.0], [1.0, 0.0]])).round(2)
    array([[0.  , 0.  ],
           [0.71, 0.71]])
    """
    angles = np.deg2rad(np.arange(0, 90, 5))
    turns = [np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]) for a in angles]
    return min((points @ turn for turn in turns), key=lambda p: float(np.ptp(p, axis=0).max()))


def _pca(rows: Floats) -> Plane:
    points, share = principal(rows, 2)
    note = f"The first two principal components of the embedding; they hold {share:.0%} of it."
    return Plane(points, "PCA", note)


def scikit_tsne(Z: NDArray[np.floating], seed: int = 0) -> Plane:
    """The rows of an embedding in the plane by scikit-learn's t-SNE, which takes longer."""
    from sklearn.manifold import TSNE

    def layout(rows: Floats, seed: int) -> Floats:
        perplexity = min(30.0, (len(rows) - 1) / 3)
        model = TSNE(perplexity=perplexity, init="pca", random_state=seed % 2**32)
        return np.asarray(model.fit_transform(rows), np.float64)

    return _tsne(np.asarray(Z, np.float64), seed, layout)


def _tsne(rows: Floats, seed: int, layout: Callable[[Floats, int], Floats]) -> Plane:
    n = len(rows)
    if n <= TSNE_ROWS:
        note = f"t-SNE of the embedding of all {n:,} rows."
        return Plane(turned(layout(rows, seed)), "t-SNE", note)
    drawn = np.sort(np.random.default_rng(seed).choice(n, TSNE_ROWS, replace=False))
    points = np.empty((n, 2))
    points[drawn] = layout(rows[drawn], seed)
    others = np.setdiff1d(np.arange(n), drawn)
    points[others] = _among(rows[drawn], points[drawn], rows[others], seed)
    return Plane(
        turned(points),
        "t-SNE",
        f"t-SNE of the embedding of {TSNE_ROWS:,} rows drawn at random; each of the other "
        f"{n - TSNE_ROWS:,} stands among its {_VOTERS} nearest of those.",
    )


def _among(known: Floats, points: Floats, rows: Floats, seed: int) -> Floats:
    """The median place of each row's nearest known rows, with a jitter so that all are seen.

    The median, because the mean of places in two clusters lies between the clusters.
    """
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=_VOTERS).fit(known)
    nearest = search.kneighbors(rows, return_distance=False)
    jitter = np.random.default_rng(seed).normal(scale=0.004, size=(len(rows), 2))
    return np.asarray(np.median(points[nearest], axis=1) + jitter * np.ptp(points, axis=0))
