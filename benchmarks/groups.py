"""Groups on spoken digits (FSDD): speakers taken out, and a speaker who was never heard.

    python benchmarks/groups.py [--seeds 1] [--unseen yweweler nicolas]

In percent: k-means with ten clusters against the digits, a linear probe on a fifth of the rows, the
NMI of the clusters with the speakers; then, for models of the five other speakers, a linear probe
fitted on those and scored on the unseen one, and k-means on the unseen one. Each with and without
groups. Needs the dataset fsdd.
"""

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selfview import SelfView, evaluate, load_dataset
from selfview.evaluation.clustering import kmeans

DIGITS = 10


def shown(name: str, scores: dict[str, float]) -> None:
    print(name, *(f"{key} {100 * value:.1f}" for key, value in scores.items()), flush=True)


def chosen(scores: dict[str, float]) -> dict[str, float]:
    return {key: value for key, value in scores.items() if not key.startswith("n_")}


def all_speakers(X: Any, y: Any, speaker: Any, groups: Any, seed: int) -> dict[str, float]:
    """Scores of a model of all speakers."""
    Z = SelfView(random_state=seed, verbose=0).fit_transform(X, groups=groups)
    found = chosen(evaluate(Z, y, measures=["linear", "clustering"]))
    clusters = kmeans(np.asarray(Z, np.float64), DIGITS, seed)
    return found | {"speaker_nmi": float(normalized_mutual_info_score(speaker, clusters))}


def without(
    X: Any, y: Any, speaker: Any, unseen: str, grouped: bool, seed: int
) -> dict[str, float]:
    """Scores for a speaker of a model of the others."""
    heard = speaker != unseen
    groups = speaker[heard] if grouped else None
    model = SelfView(random_state=seed, verbose=0).fit(X[heard], groups=groups)
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    probe.fit(model.transform(X[heard]), y[heard])
    Z = model.transform(X[~heard])
    found = chosen(evaluate(Z, y[~heard], measures=["clustering"]))
    return {"linear": float(probe.score(Z, y[~heard])), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--unseen", nargs="*", default=["yweweler", "nicolas"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    dataset = load_dataset("fsdd")
    X, y = np.asarray(dataset.X), np.asarray(dataset.y)
    speaker = np.asarray(dataset.further["speaker"])
    for seed in range(args.seeds):
        for groups in (None, speaker):
            name = f"seed {seed}, {'without' if groups is None else 'with'} groups:"
            shown(name, all_speakers(X, y, speaker, groups, seed))
        for unseen in args.unseen:
            for grouped in (False, True):
                name = f"seed {seed}, {unseen} unseen, {'with' if grouped else 'without'} groups:"
                shown(name, without(X, y, speaker, unseen, grouped, seed))


if __name__ == "__main__":
    main()
