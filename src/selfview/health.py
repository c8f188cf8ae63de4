"""Was a fit sound? Told without labels, by how well the nearest rows are kept, beside PCA.

Two questions decide. Do the rows hold anything beyond what PCA describes (`structure`)? And does
the embedding tell a row's nearest rows from other rows better than as many principal components do
(`neighbour_perplexity`)? A network also learns the neighbours of noise by heart, so that only two
times yes is sound.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]

NEIGHBOURS = 10
SAMPLE_ROWS = 1000  # of which distances are compared
SURROGATES = 4  # of each kind
ROWS_PER_COMPONENT = 5  # of surrogates, at least: components of fewer rows are chance
MIN_STRUCTURE = 1.05
MIN_GAIN = 0.1  # nats by which nearest rows must be told better than with PCA; thrice in short fits
MIN_ROWS = 50  # different ones; fewer show nothing
ENOUGH_ROWS = 200  # without structure, so many are noise; fewer may only be too few
ENOUGH_STEPS = 50  # of the optimiser: what epochs="auto" plans for as few rows as show something
MIN_PROTOTYPE_USE = 0.1
_NO_NEARER = "nearest rows are no nearer than in noise that has the same principal components"
MIN_EFFECTIVE_RANK = 1.5
FAR_OFF = 10.0  # times its usual value, or a tenth: a setting to suspect
TINY = float(np.finfo(np.float64).tiny)


def effective_rank(Z: Floats) -> float:
    """exp of the entropy of the centred matrix's normalised singular values (Roy, Vetterli 2007).

    From 1 (one direction holds everything) to the number of columns; 0 for a constant Z.
    """
    exact = np.asarray(Z, np.float64)
    centred = exact - exact.mean(axis=0)
    centred -= centred.mean(axis=0)  # a constant column becomes exactly zero
    values = np.linalg.svd(centred, compute_uv=False)
    if values[0] <= 8 * np.finfo(np.float64).eps * np.abs(exact).max() * math.sqrt(exact.size):
        return 0.0
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def prototype_use(p: Floats) -> float:
    """Perplexity of the mean assignment over k: 1 if all prototypes are used equally."""
    mean = np.asarray(p, np.float64).mean(axis=0)
    return math.exp(float(_entropies(mean))) / float(p.shape[1])


def relative_entropy(p: Floats) -> float:
    """Mean entropy of the rows of `p` over log k: 1 if no row is told from another."""
    return float(_entropies(np.asarray(p, np.float64)).mean()) / math.log(p.shape[1])


def _entropies(p: Floats) -> Any:
    return -(p * np.log(np.maximum(p, TINY))).sum(axis=-1)


def structure(
    X: Floats, components: tuple[Floats, Floats], *, cosine: bool = False, seed: int = 0
) -> float:
    """How far the nearest rows stand out, relative to noise that PCA describes as well.

    Rows stand out by the mean of log(distance of two rows / distance of a row's tenth neighbour).
    The result is that of `X` over that of noise, of two kinds: the columns of `X`, each permuted
    by itself, and normal numbers with the principal components of `X`. So independent columns of
    any distribution, and correlated normal ones, have 1 or less.

    Parameters
    ----------
    X : ndarray (n, n_features)
        Different rows.
    components : pair of ndarray
        Their `principal_components`.
    cosine : bool
        Rows are of length 1, and so surrogates are made.
    seed : int
        Of the permutations.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> noise = random.normal(size=(300, 5))
    >>> clusters = noise + 9 * random.integers(0, 2, size=(300, 1))
    >>> [bool(structure(X, principal_components(X)) < 1.05) for X in (noise, clusters)]
    [True, False]
    """
    random = np.random.default_rng(seed)
    kept = max(1, len(X) // ROWS_PER_COMPONENT)
    scores, axes = components[0][:, :kept], components[1][:kept]
    rest = X - scores @ axes

    def stands_out(rows: Floats) -> float:
        return _log_contrast(unit_rows(rows) if cosine else rows)

    columns, gaussians = [], []
    for _ in range(SURROGATES):
        columns.append(stands_out(random.permuted(X, axis=0)))
        gaussian = random.normal(size=scores.shape) * scores.std(axis=0)
        gaussians.append(stands_out(gaussian @ axes + random.permuted(rest, axis=0)))
    noise = max(float(np.mean(columns)), float(np.mean(gaussians)), TINY)
    return float(stands_out(X) / noise)


def principal_components(X: Floats) -> tuple[Floats, Floats]:
    """Scores (n, rank) and axes (rank, n_features) of the principal components, largest first."""
    centred = X - X.mean(axis=0)
    n, columns = centred.shape  # of the two products the smaller one has the same eigenvalues
    values, vectors = np.linalg.eigh(centred.T @ centred if columns < n else centred @ centred.T)
    positive = values > 1e-12 * max(values[-1], TINY)
    vectors, sizes = vectors[:, positive][:, ::-1], np.sqrt(values[positive][::-1])
    if columns < n:
        return centred @ vectors, vectors.T
    return vectors * sizes, vectors.T @ centred / sizes[:, None]


def _log_contrast(rows: Floats) -> float:
    squares = _squared_distances(rows)
    count = _count(len(rows))
    near = np.partition(squares, count - 1, axis=1)[:, count - 1]
    far = squares[np.isfinite(squares)]
    least = 1e-6 * far.mean() + TINY
    logs = [np.log(np.maximum(some, least)).mean() for some in (far, near)]
    return float(logs[0] - logs[1]) / 2


def _count(n: int) -> int:
    return min(NEIGHBOURS, n // 5)


def unit_rows(rows: Floats) -> Floats:
    """Rows of length 1; a zero row stays zero."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY))


def _squared_distances(points: Floats) -> Floats:
    """(n, n): of every two rows; infinite of a row and itself."""
    centred = points - points.mean(axis=0)
    squares = np.square(centred).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares - 2 * centred @ centred.T, 0)
    np.fill_diagonal(distances, np.inf)
    return np.asarray(distances)


def neighbour_perplexity(Z: Floats, near: NDArray[np.intp]) -> float:
    """Among how many rows of an embedding a row's neighbours hide: fewer is better.

    exp of InfoNCE with a Cauchy kernel: -log(kernel(i, j) / sum over l of kernel(i, l)), averaged
    over rows i and their neighbours j, at the scale of the kernel that suits the embedding best.

    Parameters
    ----------
    Z : ndarray (n, dim)
    near : ndarray (n, count)
        Numbers of each row's nearest rows in the data.
    """
    Z = np.asarray(Z, np.float64)
    distances = _squared_distances(Z)
    unit = 2 * float(Z.var(axis=0).sum()) or 1.0  # mean squared distance of two rows
    losses = []
    for scale in unit * np.geomspace(1e-6, 1, 9):
        kernel = scale / (scale + distances)
        own = np.take_along_axis(kernel, near, 1)
        losses.append(float(np.log(kernel.sum(axis=1)).mean() - np.log(own).mean()))
    return math.exp(min(losses))


def neighbour_metrics(
    X: Floats, Z: Floats, *, cosine: bool = False, seed: int = 0, paired: bool = False
) -> dict[str, float]:
    """What the verdict is made of, from a sample of rows and their embedding.

    Parameters
    ----------
    X : ndarray (n, n_features)
    Z : ndarray (n, dim)
    cosine : bool
        Compare directions, not positions.
    seed : int
        Of the surrogates in `structure`.
    paired : bool
        Rows stand two by two: the neighbour of each is the other. Else its nearest rows are.

    Returns
    -------
    dict
        `different_rows`, and if these are enough, their `structure`, their `neighbour_perplexity`
        in the embedding and, as `neighbour_perplexity_pca`, in as many principal components,
        whitened by the power 1/2 as the embedding is.
    """
    rows = np.sort(np.unique(X, axis=0, return_index=True)[1])
    found = {"different_rows": float(len(rows))}
    if len(rows) < MIN_ROWS or not np.isfinite(Z).all():
        return found
    rows = np.arange(len(X)) if paired else rows
    points: Floats = np.asarray(X[rows], np.float64)
    points = unit_rows(points) if cosine else points
    count = _count(len(points))
    near = np.argpartition(_squared_distances(points), count - 1, axis=1)[:, :count]
    if paired:
        near = (np.arange(len(points)) ^ 1)[:, None]
    components = principal_components(points)
    linear = components[0][:, : Z.shape[1]]
    linear = linear / np.sqrt(linear.std(axis=0))
    return found | {
        "structure": structure(points, components, cosine=cosine, seed=seed),
        "neighbour_perplexity": neighbour_perplexity(Z[rows], near),
        "neighbour_perplexity_pca": neighbour_perplexity(linear, near),
    }


@dataclass(frozen=True)
class Setting:
    """A parameter that can spoil a fit: what it was, and what it usually is for such rows."""

    name: str
    value: float
    usual: float

    @property
    def times(self) -> float:
        return self.value / self.usual

    @property
    def far_off(self) -> bool:
        return not 1 / FAR_OFF < self.times < FAR_OFF

    @property
    def remedy(self) -> str:
        change = "Lower" if self.times > 1 else "Raise"
        return f"{change} {self.name}: it is {self.value:.3g}, and usually {self.usual:.3g}"


@dataclass(frozen=True)
class Verdict:
    """What a fit came to: the outcome, and words that say why and what to change."""

    outcome: str
    words: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.words}"


SOUND = "sound"
DIVERGED = "diverged"
COLLAPSED = "collapsed"
TOO_SHORT = "too short to tell"
TOO_FEW = "too few rows to tell"
NOTHING = "nothing beyond PCA"
BAD = (DIVERGED, COLLAPSED, NOTHING)


def verdict(
    found: Mapping[str, float],
    *,
    dim: int,
    n_features: int,
    steps: int,
    highest_loss: float = math.inf,
    settings: Sequence[Setting] = (),
) -> Verdict:
    """What a fit came to.

    Parameters
    ----------
    found : mapping
        `neighbour_metrics`, `effective_rank`, `loss`; `prototype_use` where there are prototypes.
    dim, n_features : int
        Columns of the embedding, and of the data.
    steps : int
        Optimiser steps done.
    highest_loss : float
        That of predictions which say nothing; a loss above is of confident wrong ones.
    settings : sequence of Setting
        Parameters that may have caused a bad end. The one farthest off is named.
    """
    suspects = [setting for setting in settings if setting.far_off]
    cause = max(suspects, key=lambda setting: abs(math.log(setting.times)), default=None)
    remedy = None if cause is None else cause.remedy
    loss, rank = found["loss"], found["effective_rank"]
    if found["different_rows"] == 1:
        return Verdict(NOTHING, "all rows are equal, so that there is nothing to learn")
    if not all(map(math.isfinite, found.values())) or loss > highest_loss:
        cure = remedy or "Lower learning_rate, or scale the data"
        return Verdict(DIVERGED, f"the loss came to {loss:.3g}. {cure}")
    ours = found.get("neighbour_perplexity", math.inf)
    theirs = found.get("neighbour_perplexity_pca", math.inf)
    if dim > 1 and rank < MIN_EFFECTIVE_RANK and ours >= theirs:
        cure = remedy or "Train for more epochs, or lower epsilon"
        return Verdict(COLLAPSED, f"the embedding fills {rank:.1f} of {dim} directions. {cure}")
    if scarce := _no_structure(found, n_features):
        return scarce
    beside = f"than by PCA (neighbour perplexity {ours:.3g}, PCA's {theirs:.3g})"
    if math.log(theirs / ours) > MIN_GAIN * (1 if steps >= ENOUGH_STEPS else 3):
        return Verdict(SOUND, f"nearest rows are kept better {beside}")
    kept = f"nearest rows are kept no better {beside}"
    if cause is not None and cause.name == "learning_rate":
        return Verdict(DIVERGED if cause.times > 1 else TOO_SHORT, f"{kept}. {remedy}")
    if found.get("prototype_use", 1.0) < MIN_PROTOTYPE_USE:
        cure = remedy or "Lower n_prototypes or epsilon, or raise sinkhorn_iterations"
        return Verdict(
            COLLAPSED, f"the rows share {found['prototype_use']:.0%} of the prototypes. {cure}"
        )
    if cause is None and steps < ENOUGH_STEPS:
        return Verdict(TOO_SHORT, f"{kept} after {steps} steps. Raise epochs")
    return Verdict(NOTHING, f"{kept}. {remedy or 'Compare both on your task'}")


def _no_structure(found: Mapping[str, float], n_features: int) -> Verdict | None:
    """The verdict on rows in which there is nothing for a network to find, or None."""
    n = int(found["different_rows"])
    if "structure" not in found:
        return Verdict(TOO_FEW, f"{n} different rows, {MIN_ROWS} show something")
    if found["structure"] > max(MIN_STRUCTURE, 1 + 1 / math.sqrt(n)):
        return None
    enough = max(ENOUGH_ROWS, min(n_features // 2, SAMPLE_ROWS))
    if n < min(enough, SAMPLE_ROWS * 9 // 10):
        return Verdict(TOO_FEW, f"{_NO_NEARER}, but {n} rows may be too few to show it")
    return Verdict(NOTHING, _NO_NEARER)
