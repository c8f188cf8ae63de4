"""The paper's way to report clustering: the best of the last epochs. Never our default."""

from collections.abc import Iterable
from typing import Any

import numpy.typing as npt

from selfview.errors import InputError
from selfview.evaluation.measures import evaluate

SMALLER_IS_BETTER = ("regression_rss",)


def best_of(
    embeddings: Iterable[npt.ArrayLike],
    y: npt.ArrayLike,
    *,
    measures: Any = "clustering",
    **options: Any,
) -> dict[str, float]:
    """The best value of each measure over several embeddings of the same rows.

    The paper takes "the highest measurement of the last 10 training epochs" for k-means. Choosing
    by the labels flatters every method, so this is for comparing with the paper only; each value
    may come from another embedding. Counts (`n_rows`, ...) are those of the first embedding, and
    `best_of` says how many embeddings there were. Other options are those of `evaluate`.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat([0, 1], 20)
    >>> good = y[:, None] + np.linspace(0, 0.1, 40)[:, None]
    >>> scores = best_of([np.zeros((40, 1)), good], y)
    >>> scores["kmeans_acc"], scores["best_of"]
    (1.0, 2)
    """
    results = [evaluate(Z, y, measures=measures, **options) for Z in embeddings]
    if not results:
        raise InputError("best_of needs at least one embedding")
    best = dict(results[0])
    for name in best:
        if name.startswith("n_") or name.endswith(("_rows", "_converged", "_spread")):
            continue
        values = [result[name] for result in results]
        best[name] = min(values) if name in SMALLER_IS_BETTER else max(values)
    return best | {"best_of": len(results)}
