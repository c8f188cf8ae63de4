"""Maps in two dimensions: selfview's beside UMAP's, each at its defaults, on the same rows.

    python benchmarks/maps.py [--sets digits fsdd mnist] [--seeds 1]

Prints, in percent, trustworthiness (five neighbours; of at most 4,000 rows, drawn once) and 5-NN in
five folds. Needs the extra peers, and SELFVIEW_DATA for all sets but digits.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.manifold import trustworthiness
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from contest import flat, load

ROWS = 4000  # that are judged


def selfview(X: Any, seed: int) -> Any:
    from selfview import SelfView

    return SelfView(2, random_state=seed, verbose=0).fit_transform(X)


def umap(X: Any, seed: int) -> Any:
    from umap import UMAP

    return UMAP(n_components=2, random_state=seed).fit_transform(flat(X))


def scores(X: Any, Z: Any, y: Any) -> tuple[float, float]:
    """Trustworthiness and 5-NN, in percent."""
    some = np.random.default_rng(0).permutation(len(y))[:ROWS]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    votes = cross_val_score(KNeighborsClassifier(5), Z[some], y[some], cv=folds)
    return 100 * trustworthiness(flat(X[some]), Z[some], n_neighbors=5), 100 * votes.mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=["digits", "fsdd", "mnist"])
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    methods: dict[str, Callable[[Any, int], Any]] = {"selfview": selfview, "umap": umap}
    for name in args.sets:
        X, y = load(name)
        for seed in range(args.seeds):
            for method, make in methods.items():
                start = time.perf_counter()
                Z = make(X, seed)
                took = time.perf_counter() - start
                trust, votes = scores(X, Z, np.asarray(y))
                print(
                    f"{name} {method} {seed}: trustworthiness {trust:.1f}, 5-NN {votes:.1f}, "
                    f"{took:.0f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
