"""Two tables of scores: the embedding beside raw features and PCA; and how well groups mix."""

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.data import Dataset
from selfview.errors import SelfViewError, SelfViewWarning
from selfview.labels import group_codes
from selfview.paper.metrics import Metric
from selfview.report.comparison import Cell, Table, score_cells

SCORED_ROWS = 5_000
SCORED_VALUES = 25_000_000  # of raw features: more would take minutes and gigabytes
_FEWEST_SCORED = 500  # rows, of however many features
MIXED_ROWS = 2_000  # a t-SNE of more takes longer than many a fit
_FEWEST = 20  # rows, below which a score is chance

# Title of each score, in percent, and what it means.
_SCORES = {
    "linear_accuracy": (
        "Linear probe %",
        "accuracy of a linear classifier on the features, on rows held out from it",
    ),
    "knn_accuracy": ("k-NN %", "accuracy of the majority label of the 21 nearest rows"),
    "kmeans_acc": (
        "k-means ACC %",
        "agreement of k-means clusters with the labels, matched one to one",
    ),
    "kmeans_nmi": ("NMI %", "normalised mutual information of clusters and labels"),
    "kmeans_ari": ("ARI %", "adjusted Rand index of clusters and labels; chance is 0"),
    "regression_r2": (
        "Linear R² %",
        "variance of the label that a linear fit explains, on rows held out from it",
    ),
    "trustworthiness": (
        "Trustworthiness %",
        "how far near rows in the features are near in the raw data too",
    ),
}
FIRST = {"linear_accuracy": "linear probe", "regression_r2": "linear R²"}  # what a fit ends with
# Of groups: how the score is written, and what it means.
_MIXING = (
    (
        Metric("group_graph_accuracy", "", "", "Graph vote by group %", 100, more_is_better=False),
        "accuracy of the commonest group of the 21 nearest points of a t-SNE; "
        "{largest:.1%} if groups are mixed wholly",
    ),
    (
        Metric("group_silhouette", "", "", "Silhouette by group", 1, 3, more_is_better=False),
        "from -1 to 1: how much nearer rows of the same group are; 0 or less is mixed",
    ),
    (
        Metric("ilisi", "", "", "iLISI", 1, 2),
        "the effective number of groups around a row, at most {count}",
    ),
)


@dataclass(frozen=True)
class Scores:
    """The table, a line on how it was made, and the meaning of each of its columns."""

    values: dict[str, dict[str, float]]  # of each kind of features, by the name of the score
    table: Table
    note: str
    meanings: tuple[tuple[str, str], ...]
    rows: int = 0  # that were judged


def score_table(
    dataset: Dataset, Z: NDArray[Any], unit: NDArray[Any] | None = None, seed: int = 0
) -> Scores | None:
    """Scores of raw features, PCA and the embedding; None where there are too few rows.

    Where the model divides columns by a `unit` of their own, raw features and PCA see them so too.
    """
    n = len(dataset)
    if n < _FEWEST:
        return None
    most = min(SCORED_ROWS, max(_FEWEST_SCORED, SCORED_VALUES // int(np.prod(dataset.X.shape[1:]))))
    rows = np.sort(np.random.default_rng(seed).permutation(n)[:most])
    raw = _dense(dataset.X, rows) / (1.0 if unit is None else unit)
    entries = {
        f"Raw features ({raw.shape[1]:,})": raw,
        f"PCA ({min(Z.shape[1], *raw.shape)})": _pca(raw, min(Z.shape[1], *raw.shape), seed),
        f"selfview ({Z.shape[1]})": np.asarray(Z[rows], dtype=np.float64),
    }
    found = {name: _scores(dataset, rows, raw, E, seed) for name, E in entries.items()}
    table = tabulate_scores(found)
    note = _note(dataset, n, len(rows), unit is not None)
    meanings = tuple(about for about in _SCORES.values() if about[0] in table.headings)
    return Scores(found, table, note, meanings, len(rows)) if meanings else None


def mixing_table(
    dataset: Dataset, Z: NDArray[Any], unit: NDArray[Any] | None = None, seed: int = 0
) -> Scores | None:
    """How well the dataset's groups are mixed in PCA and in the embedding; None if there are none.

    The scores are those of `selfview.evaluate(..., groups=)`, of at most 2,000 rows. `unit` is as
    in `score_table`.
    """
    from selfview.evaluation.mixing import mixing_scores

    n = len(dataset)
    if dataset.groups is None or n < _FEWEST:
        return None
    rows = np.sort(np.random.default_rng(seed).permutation(n)[:MIXED_ROWS])
    codes, names = group_codes(np.asarray(dataset.groups)[rows], len(rows))
    raw = _dense(dataset.X, rows) / (1.0 if unit is None else unit)
    count = min(Z.shape[1], *raw.shape)
    entries = {
        f"PCA ({count})": _pca(raw, count, seed),
        f"selfview ({Z.shape[1]})": np.asarray(Z[rows], dtype=np.float64),
    }
    found = {name: _finite(mixing_scores(E, codes, seed)) for name, E in entries.items()}
    columns = {
        metric.title: score_cells([s.get(metric.name, math.nan) for s in found.values()], metric)
        for metric, _ in _MIXING
    }
    lines = zip(found, *columns.values(), strict=True)
    table = Table(("Features", *columns), tuple((Cell(name), *cells) for name, *cells in lines), ())
    about = {"largest": np.bincount(codes).max() / len(codes), "count": len(names)}
    meanings = tuple((metric.title, meaning.format(**about)) for metric, meaning in _MIXING)
    which = f"all {n:,} rows" if len(rows) == n else f"{len(rows):,} of the {n:,} rows"
    return Scores(found, table, f"{len(names):,} groups, on {which}.", meanings)


def in_words(scores: Scores) -> str:
    """The first score in a line: "linear probe 98.7 % (PCA 93.1, raw 96.7)"; empty without labels.

    Where there were too many rows to judge all, the line says so.
    """
    for name, title in FIRST.items():
        raw, pca, own = (found.get(name, math.nan) for found in scores.values.values())
        if math.isfinite(own):
            others = {"PCA": pca, "raw": raw}
            compared = ", ".join(
                f"{k} {100 * v:.1f}" for k, v in others.items() if math.isfinite(v)
            )
            part = "" if scores.note.startswith("On all") else f" on {scores.rows:,} rows"
            return f"{title} {100 * own:.1f} % ({compared}){part}"
    return ""


def _note(dataset: Dataset, n: int, kept: int, scaled: bool) -> str:
    which = f"all {n:,} rows" if kept == n else f"{kept:,} of the {n:,} rows, drawn at random"
    labels = (
        "Without labels only the neighbourhood can be judged."
        if dataset.y is None
        else "The labels served for this table only; the model never saw them."
    )
    units = (
        " Columns differ in scale: all three see each divided by its standard deviation." * scaled
    )
    return f"On {which}. {labels}{units}"


def tabulate_scores(found: dict[str, dict[str, float]]) -> Table:
    """A row for each kind of features, a column for each score that one of them has."""
    columns = {}
    for name, (title, _) in _SCORES.items():
        metric = Metric(name, "", name, title, 100)
        values = [scores.get(name, math.nan) for scores in found.values()]
        if all(map(math.isnan, values)):
            continue
        columns[title] = score_cells(values, metric)
        if name == "trustworthiness":  # raw features are their own measure of trust: no contest
            raw = replace(columns[title][0], best=False)
            columns[title] = [raw, *score_cells(values[1:], metric)]
    rows = [(Cell(name), *cells) for name, *cells in zip(found, *columns.values(), strict=True)]
    return Table(("Features", *columns), tuple(rows), ())


def _scores(
    dataset: Dataset, rows: NDArray[Any], raw: NDArray[Any], E: NDArray[Any], seed: int
) -> dict[str, float]:
    from selfview.evaluation import evaluate
    from selfview.evaluation.neighbourhood import trustworthiness
    from selfview.evaluation.split import random_fifth

    scores: dict[str, float] = {}
    if dataset.y is not None:
        y = np.asarray(dataset.y)[rows]
        measures = ("linear", "knn", "clustering") if dataset.n_classes else ("regression",)
        split = None
        if dataset.test is not None:
            split = np.isin(rows, dataset.test)
        elif not dataset.n_classes:
            split = random_fifth(len(rows))
        for measure in measures:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SelfViewWarning)
                try:
                    scores |= evaluate(E, y, split=split, measures=measure, random_state=seed)
                except SelfViewError:  # one row a class and the like: the table shows a dash
                    continue
    scores |= trustworthiness(raw, E, seed)
    return _finite(scores)


def _finite(scores: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in scores.items() if np.isfinite(value)}


def _dense(X: Any, rows: NDArray[Any]) -> NDArray[np.float64]:
    part: Any = X[rows]
    dense = part.toarray() if hasattr(part, "toarray") else part
    return np.asarray(dense, dtype=np.float64).reshape(len(rows), -1)


def _pca(raw: NDArray[Any], count: int, seed: int) -> NDArray[np.float64]:
    from sklearn.decomposition import PCA

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # constant rows have no variance to share
        return np.asarray(PCA(count, random_state=seed).fit_transform(raw), dtype=np.float64)
