"""Probes on frozen features: a linear classifier, nearest neighbours, a linear regression."""

import warnings

import numpy as np

from selfview.errors import SelfViewWarning
from selfview.evaluation.inputs import Floats, Ints, careful_mean
from selfview.evaluation.split import Split

MAX_ITERATIONS = 1000
NEIGHBOURS = 21
KNN_ROWS = 10_000


def standardise(train: Floats, *others: Floats) -> tuple[Floats, ...]:
    """All parts with the mean and standard deviation of the first; constant columns become 0."""
    mean = careful_mean(train)
    deviation = np.sqrt(np.square(train - mean).mean(axis=0))
    # Below this a deviation is the rounding error of a constant column.
    noise = 8 * np.finfo(np.float64).eps * np.abs(train).max(axis=0)
    deviation = np.where(deviation > noise, deviation, np.inf)
    return tuple((part - mean) / deviation for part in (train, *others))


def linear_accuracy(Z: Floats, codes: Ints, split: Split) -> dict[str, float]:
    """Test accuracy of a multinomial logistic regression, and whether its fit converged."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # scikit-learn's own dependency

    train, test = standardise(Z[split.train], Z[split.test])
    known = codes[split.train]
    if np.unique(known).size == 1:  # nothing to fit
        accuracy = float(np.mean(codes[split.test] == known[0]))
        return {"linear_accuracy": accuracy, "linear_converged": 1}
    model = LogisticRegression(max_iter=MAX_ITERATIONS)
    # A narrow matrix gains nothing from a second thread: 60,000 x 10 takes twice as long with two.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # about many classes
        model.fit(train, known)
    converged = bool(np.max(model.n_iter_) < MAX_ITERATIONS)
    if not converged:
        warnings.warn(
            f"the linear probe did not converge in {MAX_ITERATIONS} iterations; its accuracy may "
            f"be a little low",
            SelfViewWarning,
            stacklevel=2,
        )
    return {
        "linear_accuracy": float(np.mean(model.predict(test) == codes[split.test])),
        "linear_converged": int(converged),
    }


def knn_accuracy(Z: Floats, codes: Ints, split: Split, seed: int) -> dict[str, float]:
    """Test accuracy of the majority label among the 21 nearest training rows, in Z as it is.

    At most 10,000 test rows are classified; `knn_rows` says how many.
    """
    from sklearn.neighbors import KNeighborsClassifier

    model = KNeighborsClassifier(min(NEIGHBOURS, split.train.size), n_jobs=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(Z[split.train], codes[split.train])
    tested = np.random.default_rng(seed).permutation(split.test)[:KNN_ROWS]
    right = np.mean(model.predict(Z[tested]) == codes[tested])
    return {"knn_accuracy": float(right), "knn_rows": tested.size}


def regression_scores(Z: Floats, values: Floats, split: Split | None) -> dict[str, float]:
    """Residual sum of squares and R^2 of a least-squares fit with intercept.

    Both pool all outputs: R^2 = 1 - RSS / TSS. Without a split the fit is scored on its own rows,
    as the paper does; with one, on the test rows, around their own mean.
    """
    rows = np.arange(len(Z))
    train, test = (split.train, split.test) if split else (rows, rows)
    features, held_out = standardise(Z[train], Z[test])
    mean = values[train].mean(axis=0)
    weights, *_ = np.linalg.lstsq(features, values[train] - mean, rcond=None)
    rss = float(np.square(values[test] - mean - held_out @ weights).sum())
    tss = float(np.square(values[test] - values[test].mean(axis=0)).sum())
    return {"regression_rss": rss, "regression_r2": 1 - rss / tss if tss else float("nan")}
