"""Groups on spoken digits (FSDD): speakers taken out, and a speaker who was never heard.

    python benchmarks/groups.py [--seeds 3] [--unseen yweweler nicolas] [--records FILE]

A line of JSON is added to results/groups.jsonl for every fit; what is on record is not run again.
In percent: k-means with ten clusters against the digits, a linear probe on a fifth of the rows, the
NMI of the clusters with the speakers; then, for models of the five other speakers, a linear probe
fitted on those and scored on the unseen one, and k-means on the unseen one. Each with and without
groups. Needs the dataset fsdd, and takes about a quarter of an hour.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selfview import SelfView, evaluate, load_dataset
from selfview.evaluation.clustering import kmeans
from selfview.paper.provenance import commit
from timing import machine

DIGITS = 10
RECORDS = Path(__file__).parents[1] / "results" / "groups.jsonl"
SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")


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
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--unseen", nargs="*", default=SPEAKERS)
    parser.add_argument("--records", type=Path, default=RECORDS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    dataset = load_dataset("fsdd")
    X, y = np.asarray(dataset.X), np.asarray(dataset.y)
    speaker = np.asarray(dataset.further["speaker"])
    lines = args.records.read_text().splitlines() if args.records.is_file() else []
    done = {(r["seed"], r["unseen"], r["groups"]) for r in map(json.loads, lines)}
    for seed in range(args.seeds):
        for unseen in (None, *args.unseen):
            for grouped in (False, True):
                if (seed, unseen, grouped) in done:
                    continue
                if unseen is None:
                    groups = speaker if grouped else None
                    scores = all_speakers(X, y, speaker, groups, seed)
                else:
                    scores = without(X, y, speaker, unseen, grouped, seed)
                about = {"seed": seed, "unseen": unseen, "groups": grouped}
                record = about | {key: 100 * value for key, value in scores.items()}
                with args.records.open("a") as file:
                    file.write(json.dumps(record | machine() | {"commit": commit()}) + "\n")
                shown = (f"{key} {100 * value:.1f}" for key, value in scores.items())
                print(*(f"{key} {value}," for key, value in about.items()), *shown, flush=True)


if __name__ == "__main__":
    main()
