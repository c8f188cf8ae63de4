"""Clusters of the embedding against k-means on the same embedding, and their number by "auto".

    python benchmarks/clusters.py [--sets wine digits ...] [--seeds 1] [--records FILE]

A line of JSON is added to results/clusters.jsonl for every set and seed; what is on record is not
run again. One fit serves all: its embedding is clustered with the true number of classes by
`n_clusters`, by k-means (the best of 20 starts), and by "auto". In percent: accuracy under the best
matching, NMI and ARI; and the number that "auto" chose, the next best, and how stable each is. The
sets are those of the contest, in a folder that SELFVIEW_DATA names.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from contest import load, read_records
from selfview import SelfView
from selfview.clusters import find_clusters
from selfview.evaluation.clustering import kmeans, matched_accuracy
from selfview.paper.provenance import commit
from timing import machine

RECORDS = Path(__file__).parents[1] / "results" / "clusters.jsonl"
SETS = (
    *("wine", "breast-cancer", "digits", "coil20", "isolet"),
    *("fsdd", "satimage", "waveform", "pendigits", "ag_news"),
)
FACTOR = 1.5  # within which "auto" counts as right


def agreement(y: Any, clusters: Any, name: str) -> dict[str, float]:
    """Percent by which clusters agree with the classes."""
    return {
        f"{name}_acc": 100 * matched_accuracy(y, clusters),
        f"{name}_nmi": 100 * float(normalized_mutual_info_score(y, clusters)),
        f"{name}_ari": 100 * float(adjusted_rand_score(y, clusters)),
    }


def scored(name: str, seed: int) -> dict[str, Any]:
    """The record of one fit."""
    X, y = load(name)
    y, start = np.asarray(y), time.perf_counter()
    model = SelfView(n_clusters="auto", random_state=seed, verbose=0).fit(X)
    seconds = time.perf_counter() - start
    Z, classes = model.transform(X), len(np.unique(y))
    given = find_clusters(Z, classes, seed).assign(Z)
    record = {"set": name, "seed": seed, "rows": len(y), "classes": classes, "seconds": seconds}
    record |= agreement(y, given, "given")
    record |= agreement(y, kmeans(np.asarray(Z, np.float64), classes, seed), "kmeans")
    record |= agreement(y, model.labels_, "auto")
    return record | {"auto": model.n_clusters_, "stability": model.cluster_stability_}


def summary(records: list[dict[str, Any]]) -> str:
    """On how many sets `n_clusters` wins, and "auto" is near; by the first seed of each set."""
    first = {r["set"]: r for r in sorted(records, key=lambda r: -r["seed"])}.values()
    wins = sum(r["given_nmi"] > r["kmeans_nmi"] for r in first)
    near = sum(max(r["auto"] / r["classes"], r["classes"] / r["auto"]) <= FACTOR for r in first)
    return (
        f"of {len(first)} sets: NMI above k-means on {wins}, "
        f'"auto" within a factor of {FACTOR} on {near}'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--records", type=Path, default=RECORDS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    done = {(r["set"], r["seed"]) for r in read_records(args.records)}
    for seed in range(args.seeds):
        for name in args.sets:
            if (name, seed) in done:
                continue
            record = scored(name, seed)
            with args.records.open("a") as file:
                file.write(json.dumps(record | machine() | {"commit": commit()}) + "\n")
            nmi = (f"{how} {record[f'{how}_nmi']:.1f}" for how in ("given", "kmeans", "auto"))
            chose = f'"auto" chose {record["auto"]} of {record["classes"]}'
            print(f"{name} {seed}: NMI", *nmi, chose, flush=True)
    print(summary(read_records(args.records)))


if __name__ == "__main__":
    main()
