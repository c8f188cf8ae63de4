"""`evaluate`: the measures of an embedding, by name."""

import warnings
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from selfview.errors import InputError, SelfViewWarning
from selfview.evaluation import clustering, mixing, neighbourhood, probes
from selfview.evaluation.inputs import (
    Floats,
    Ints,
    TargetKind,
    check_matrix,
    check_seed,
    check_target,
)
from selfview.evaluation.split import Split, among_present, check_split, stratified_fifth
from selfview.labels import group_codes

_NEEDS = {"X": "the raw data, which it compares with", "groups": "the group of every row"}
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Task:
    """All that a measure may use, without rows that have no label."""

    Z: Floats
    X: Floats | None  # the raw data, for trustworthiness
    codes: Ints  # (n,), or empty for a continuous target
    values: Floats  # (n, outputs), or empty for classes
    given_split: Split | None
    seed: int
    groups: Ints | None = None  # (n,), for the measure of their mixing

    @property
    def split(self) -> Split:
        return self.given_split or stratified_fifth(self.codes)

    @property
    def scored(self) -> Ints:
        """Rows of the measures that learn nothing from labels: the test part, or all."""
        return self.given_split.test if self.given_split else np.arange(len(self.Z))

    @property
    def n_classes(self) -> int:
        return int(self.codes.max()) + 1

    @property
    def classes(self) -> tuple[Floats, Ints, int]:
        """The scored rows, their class codes, and the seed."""
        return self.Z[self.scored], self.codes[self.scored], self.seed


@dataclass(frozen=True)
class Measure:
    """One measure: its function, and what it needs beside the embedding."""

    score: Callable[[Task], dict[str, float]]
    target: str  # "classes", "continuous" or "any"
    paper: bool = False
    needs: str = ""  # "X" or "groups", if it can't do without


def _mine(task: Task) -> dict[str, float]:
    from selfview.evaluation.mutual_information import mutual_information  # torch takes seconds

    y = task.codes if task.codes.size else task.values
    return mutual_information(task.Z, y, task.given_split, task.seed)


def _trustworthiness(task: Task) -> dict[str, float]:
    assert task.X is not None
    rows = task.scored
    return neighbourhood.trustworthiness(task.X[rows], task.Z[rows], task.seed)


def _mixing(task: Task) -> dict[str, float]:
    assert task.groups is not None
    rows = task.scored
    return mixing.mixing_scores(task.Z[rows], task.groups[rows], task.seed)


MEASURES = {
    "linear": Measure(lambda t: probes.linear_accuracy(t.Z, t.codes, t.split), "classes", True),
    "graph": Measure(lambda t: neighbourhood.graph_accuracy(*t.classes), "classes", True),
    "clustering": Measure(
        lambda t: clustering.clustering_scores(*t.classes, k=t.n_classes), "classes", True
    ),
    "mine": Measure(_mine, "any", True),
    "regression": Measure(
        lambda t: probes.regression_scores(t.Z, t.values, t.given_split), "continuous", True
    ),
    "knn": Measure(lambda t: probes.knn_accuracy(t.Z, t.codes, t.split, t.seed), "classes"),
    "silhouette": Measure(lambda t: neighbourhood.silhouette(*t.classes), "classes"),
    "trustworthiness": Measure(_trustworthiness, "any", needs="X"),
    "effective_rank": Measure(lambda t: neighbourhood.effective_rank(t.Z[t.scored]), "any"),
    "mixing": Measure(_mixing, "any", needs="groups"),
}


def evaluate(
    Z: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    split: Any = None,
    measures: str | Sequence[str] = "all",
    random_state: int | None = 0,
    X: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    target: TargetKind = "auto",
    progress: Progress | None = None,
) -> dict[str, float]:
    """The scores of an embedding by name, for class labels or a continuous target.

    Parameters
    ----------
    Z : array (n, dim)
        The embedding. A row that is not finite is an error that names it.
    y : array (n,) or (n, outputs)
        Class labels (numbers or strings), or a continuous target. Rows labelled -1, NaN, None or
        "" are left out, with a warning and the count in `n_left_out`.
    split : (train rows, test rows), mask of the test rows, n words "train"/"test", default None
        linear, knn, regression and mine learn on the training rows and are scored on the test
        rows; the other measures use the test rows only. Without a split, linear and knn hold out a
        fixed stratified fifth, mine is cross-fitted, regression is scored on the rows of its fit,
        and the others use all rows.
    measures : "all", "paper", a name or several, default "all"
        Names: linear, graph, mine, clustering, regression, knn, silhouette, trustworthiness,
        effective_rank, mixing. "all" and "paper" take those that fit the target.
    random_state : int or None, default 0
        The seed. The same seed gives the same numbers; None draws a fresh one.
    X : array (n, ...) or None, default None
        The raw data, which trustworthiness compares with; without X, "all" leaves it out.
    groups : array (n,) or None, default None
        The group of every row (speaker, donor, day), whose mixing is measured: graph vote and
        silhouette by group, and iLISI; without groups, "all" leaves it out.
    target : "auto", "classes" or "continuous", default "auto"
        How to read y. "auto": two or more columns are continuous, and so is one column of floats
        with fractions and more than 50 distinct values (or a quarter of the rows).
    progress : callable or None, default None
        Called as `progress(name, number, total)` before each measure.

    Returns
    -------
    dict of str to float
        Accuracies and agreement from 0 to 1 (`linear_accuracy`, `graph_accuracy`, `kmeans_acc`,
        `kmeans_nmi`, `kmeans_ari`, `knn_accuracy`), nats (`mine`, `mine_spread`), and plain counts
        (`n_rows`, `n_left_out`, `graph_rows`, ...) where rows were left out or drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from selfview import evaluate
    >>> y = np.repeat([0, 1], 50)
    >>> Z = np.random.default_rng(0).normal(size=(100, 2)) + 9 * y[:, None]
    >>> scores = evaluate(Z, y, measures=["linear", "clustering"])
    >>> scores["linear_accuracy"], scores["kmeans_acc"]
    (1.0, 1.0)
    """
    matrix = check_matrix(Z)
    labels = check_target(y, len(matrix), target)
    raw = None if X is None else _check_raw(X, len(matrix))
    parts = None if split is None else check_split(split, len(matrix))
    seed = check_seed(random_state)
    codes = None if groups is None else group_codes(groups, len(matrix))[0]
    given = {name for name, value in (("X", raw), ("groups", codes)) if value is not None}
    names = chosen_measures(measures, labels.kind, given)
    present = labels.present
    left_out = int((~present).sum())
    if left_out:
        warnings.warn(
            f"{left_out} of {len(present)} rows have no label and were left out",
            SelfViewWarning,
            stacklevel=2,
        )
    task = Task(
        Z=matrix[present],
        X=None if raw is None else raw[present],
        codes=np.empty(0, np.int64) if labels.codes is None else labels.codes,
        values=np.empty((0, 0)) if labels.values is None else labels.values,
        given_split=None if parts is None else among_present(parts, present),
        seed=seed,
        groups=None if codes is None else codes[present],
    )
    if task.codes.size and np.unique(task.codes[task.scored]).size < 2:
        message = "the test rows hold one class only, so their scores say little"
        warnings.warn(message, SelfViewWarning, stacklevel=2)
    scores = _counts(task, left_out)
    for number, name in enumerate(names):
        if progress is not None:
            progress(name, number, len(names))
        scores |= MEASURES[name].score(task)
    return scores


def _check_raw(X: npt.ArrayLike, n: int) -> Floats:
    raw: Any = X if hasattr(X, "toarray") else np.asarray(X)
    matrix = check_matrix(raw.reshape(len(raw), -1) if raw.ndim > 2 else raw, "X")
    if len(matrix) != n:
        raise InputError(f"X must have the {n} rows of Z, got {len(matrix)}")
    return matrix


def _counts(task: Task, left_out: int) -> dict[str, float]:
    counts: dict[str, float] = {"n_rows": len(task.Z), "n_left_out": left_out}
    if task.codes.size:
        split = task.split
        counts |= {"n_classes": task.n_classes}
        counts |= {"n_train": split.train.size, "n_test": split.test.size}
    return counts | {"n_scored": task.scored.size}


def chosen_measures(
    measures: str | Iterable[str], kind: str, given: Container[str] = ()
) -> list[str]:
    """Names of the measures to run, each once, in the order of `MEASURES`.

    Of "X" and "groups", `given` holds those that there are.
    """
    fitting = [name for name, measure in MEASURES.items() if measure.target in (kind, "any")]
    if isinstance(measures, str) and measures in ("all", "paper"):
        return [
            name
            for name in fitting
            if (MEASURES[name].paper or measures == "all")
            and (not MEASURES[name].needs or MEASURES[name].needs in given)
        ]
    if not isinstance(measures, str | list | tuple | set | frozenset):
        raise InputError(f"measures must be a name or a list of names, got {measures!r}")
    asked = [measures] if isinstance(measures, str) else list(measures)
    if not asked:
        raise InputError("measures is empty: name one, or say 'all' or 'paper'")
    for name in asked:
        if not isinstance(name, str) or name not in MEASURES:
            known = ", ".join(MEASURES)
            raise InputError(f"unknown measure {name!r}; known are {known}, 'all' and 'paper'")
        if name not in fitting:
            raise InputError(
                f"{name} needs {MEASURES[name].target} in y, which was read as {kind}; "
                f"target={MEASURES[name].target!r} overrules that"
            )
        needs = MEASURES[name].needs
        if needs and needs not in given:
            raise InputError(f"{name} needs {_NEEDS[needs]}: pass it as {needs}")
    return [name for name in MEASURES if name in asked]
