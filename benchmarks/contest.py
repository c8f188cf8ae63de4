"""The contest: every method at its own defaults and ten dimensions, on fifteen sets of rows.

    python benchmarks/contest.py run  [--sets wine digits] [--methods selfview umap] [--seeds 0 1]
                                      [--untimed] [--records results/contest.jsonl]
    python benchmarks/contest.py show [--records results/contest.jsonl]

`run` appends a line of JSON for every fit: scores, seconds, versions, machine. What is on record is
not run again. Each fit has a process of its own. There `cold` counts imports, compilation and the
fit; `seconds` is a fit after one of fewer rows, so that compilers have done their work;
`new_rows` is the time for 1,000 rows. `show` writes docs/contest.md, the figure in it, and the
losses in docs/when-not.md. Nothing else may run beside `run`: it measures time. With `--untimed` it
doesn't, and other work may go on; such records have scores only.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "results" / "contest.jsonl"
PAGE = ROOT / "docs" / "contest.md"
WHEN_NOT = ROOT / "docs" / "when-not.md"
MARKS = ("<!-- losses: made by benchmarks/contest.py show -->", "<!-- end of losses -->")
FIGURE = ROOT / "docs" / "figures" / "contest.png"
SETS = (
    *("wine", "breast-cancer", "digits", "coil20", "isolet", "fsdd", "satimage", "ag_news"),
    *("waveform", "pendigits", "reuters", "20news", "msi", "mnist", "fashion-mnist"),
)
MEASURES = {"linear": "linear probe", "knn": "5-NN", "nmi": "k-means NMI"}
PEERS = ("pca", "umap", "pacmap", "autoencoder", "infonc-t-sne")
JUDGED_ROWS = 10_000  # of which a probe learns and is scored, drawn once for all
NEW_ROWS = 1000
WARM_ROWS, MANY_WARM_ROWS = 400, 4200  # from 4,096 rows on UMAP compiles another search


def load(name: str) -> tuple[Any, Any]:
    """Rows and labels of a set; the labels are for the scores alone."""
    from sklearn import datasets

    if name in ("wine", "breast-cancer"):
        make = datasets.load_wine if name == "wine" else datasets.load_breast_cancer
        X, y = make(return_X_y=True)
        return X.astype(np.float32), y
    from selfview import load_dataset
    from selfview.data import read

    folder = Path(os.environ.get("SELFVIEW_DATA", ".")) / "contest"
    if (folder / f"{name}.npz").is_file():
        with np.load(folder / f"{name}.npz") as file:
            return file["X"].astype(np.float32), file["y"]
    if (folder / f"{name}.jsonl").is_file():
        dataset = read(str(folder / f"{name}.jsonl"), label="label")
    else:
        dataset = load_dataset(name)
    return dataset.X, dataset.further["segment"] if name == "msi" else dataset.y


def flat(X: Any) -> Any:
    """Rows as the peers take them."""
    rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return np.ascontiguousarray(rows.reshape(len(rows), -1), dtype=np.float32)


def selfview(X: Any, seed: int) -> tuple[Any, Callable[[Any], Any]]:
    from selfview import SelfView

    model = SelfView(random_state=seed, verbose=0)
    return model.fit_transform(X), model.transform


def pca(X: Any, seed: int) -> tuple[Any, Callable[[Any], Any]]:
    from sklearn.decomposition import PCA

    model = PCA(min(10, *X.shape), random_state=seed)
    return model.fit_transform(X), model.transform


def umap(X: Any, seed: int) -> tuple[Any, Callable[[Any], Any]]:
    from umap import UMAP

    model = UMAP(n_components=10, random_state=seed)
    return model.fit_transform(X), model.transform


def pacmap(X: Any, seed: int) -> tuple[Any, Callable[[Any], Any]]:
    from pacmap import PaCMAP

    model = PaCMAP(n_components=10, random_state=seed)
    return model.fit_transform(X), lambda new: model.transform(new, basis=X)


def autoencoder(X: Any, seed: int) -> tuple[Any, Callable[[Any], Any]]:
    from selfview.baselines import AutoEncoder

    model = AutoEncoder(random_state=seed, verbose=0)
    return model.fit_transform(X), model.transform


def infonc_t_sne(X: Any, seed: int) -> tuple[Any, Callable[[Any], Any]]:
    import torch
    from cne import CNE  # pip install contrastive-ne

    torch.manual_seed(seed)
    model = CNE(loss_mode="infonce", parametric=True, embd_dim=10, seed=seed)
    return model.fit_transform(X, init=X), model.transform  # of `init` only the length is used


METHODS: Mapping[str, Callable[[Any, int], tuple[Any, Callable[[Any], Any]]]] = {
    "selfview": selfview,
    "pca": pca,
    "umap": umap,
    "pacmap": pacmap,
    "autoencoder": autoencoder,
    "infonc-t-sne": infonc_t_sne,
}


def scores(Z: Any, y: Any) -> dict[str, float]:
    """In percent: linear probe and 5-NN of five folds; k-means with the true number of clusters."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from selfview import evaluate

    y = np.unique(np.asarray(y), return_inverse=True)[1]
    some = np.sort(np.random.default_rng(1).permutation(len(y))[:JUDGED_ROWS])
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    Z = np.asarray(Z, np.float64)
    found = evaluate(Z, y, measures=["clustering"])
    return {
        "linear": 100 * cross_val_score(probe, Z[some], y[some], cv=folds).mean(),
        "knn": 100 * cross_val_score(KNeighborsClassifier(5), Z[some], y[some], cv=folds).mean(),
        **{name: 100 * found[f"kmeans_{name}"] for name in ("acc", "nmi", "ari")},
    }


def fit(name: str, method: str, seed: int, started: float | None) -> dict[str, Any]:
    """One fit with its scores; run in a process of its own, which began at `started`.

    Without `started` nothing is timed.
    """
    warnings.simplefilter("ignore")
    loading = time.time()
    X, y = load(name)
    X = X if method in ("selfview", "autoencoder") else flat(X)
    loaded = time.time()
    make = METHODS[method]
    about = {"set": name, "method": method, "seed": seed, "rows": len(y)}
    if started is None:
        return {**about, **scores(make(X, seed)[0], y)}
    few = X[: WARM_ROWS if len(y) < MANY_WARM_ROWS else MANY_WARM_ROWS]
    cold = None
    if len(y) < 2000:
        make(X, seed)
        cold = time.time() - started - (loaded - loading)
    else:
        make(few, seed)
    start = time.perf_counter()
    Z, transform = make(X, seed)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    transform(X[:NEW_ROWS])
    new_rows = time.perf_counter() - start
    return {**about, "seconds": seconds, "cold": cold, "new_rows": new_rows, **scores(Z, y)}


def run(args: argparse.Namespace) -> None:
    from selfview.paper.provenance import commit
    from timing import machine

    done = {(r["set"], r["method"], r["seed"]) for r in read_records(args.records)}
    for name in args.sets:
        for seed in args.seeds:
            for method in args.methods:
                if (name, method, seed) in done:
                    continue
                call = [sys.executable, __file__, "fit", name, method, str(seed)]
                call += [] if args.untimed else [str(time.time())]
                ended = subprocess.run(call, capture_output=True, text=True, check=False)
                if ended.returncode:
                    print(f"{name} {method} {seed} failed: {ended.stderr.strip()[-300:]}")
                    continue
                record = (
                    json.loads(ended.stdout.splitlines()[-1]) | machine() | {"commit": commit()}
                )
                args.records.parent.mkdir(parents=True, exist_ok=True)
                with args.records.open("a") as file:
                    file.write(json.dumps(record, default=float) + "\n")
                shown = " ".join(f"{m} {record[m]:.1f}" for m in MEASURES)
                took = "" if args.untimed else f", {record['seconds']:.1f} s"
                print(f"{name} {method} {seed}: {shown}{took}", flush=True)


def read_records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def cells(records: list[dict[str, Any]], value: str) -> dict[tuple[str, str], list[float]]:
    """The values of every (set, method), a number for each seed."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for record in records:
        if record.get(value) is not None:
            found[record["set"], record["method"]].append(record[value])
    return found


def points(ours: list[float], theirs: list[float]) -> float:
    """1 for a win, half for a tie: means within one standard error of their difference."""
    error = sum((stdev(v) ** 2 if len(v) > 1 else 0.0) / len(v) for v in (ours, theirs)) ** 0.5
    difference = mean(ours) - mean(theirs)
    return 0.5 if abs(difference) <= error else float(difference > 0)


def show(args: argparse.Namespace) -> None:
    records = read_records(args.records)
    PAGE.write_text(page(records))
    before, rest = WHEN_NOT.read_text().split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    WHEN_NOT.write_text(f"{before}{MARKS[0]}\n{losses(records)}{MARKS[1]}{after}")
    draw(records)
    print(f"wrote {PAGE}, {WHEN_NOT} and {FIGURE}")


def page(records: list[dict[str, Any]]) -> str:
    """The contest's page: wins, seconds, and every cell."""
    sets = [name for name in SETS if any(r["set"] == name for r in records)]
    methods = [m for m in METHODS if any(r["method"] == m for r in records)]
    rivals = [m for m in methods if m != "selfview"]
    seeds = len({r["seed"] for r in records})
    timed = [r for r in records if "seconds" in r]
    first, times = (timed or records)[0], len({r["seed"] for r in timed})
    commits = dict.fromkeys(r.get("commit", "not recorded")[:7] for r in records)
    once = [m for m in methods if len({r["seed"] for r in records if r["method"] == m}) == 1]
    beside = " The others ran beside other work, in one thread, and have scores only."
    lines = [
        "# The contest",
        "",
        f"Every method at its own defaults and ten dimensions, on {len(sets)} sets of rows, "
        f"{_seeds(seeds)}, one machine ({first['processor']}, {first['threads']} threads, PyTorch "
        f"{first['torch']}, "
        f"commits {', '.join(commits)}). Labels serve the scores alone. "
        f"Seconds are of {_seeds(times)}, with nothing beside." + beside * (times < seeds),
        (f"Of {' and '.join(once)} there is one seed." if once and seeds > 1 else ""),
        "Command: `make contest`; records: `results/contest.jsonl`.",
        "",
        "![Quality over seconds](figures/contest.png)",
        "",
        "## Wins of selfview",
        "",
        "Sets on which selfview is better; within one standard error is a tie and counts half."
        + " One seed has no standard error, so there are no ties here." * (seeds == 1),
        "",
        "| | " + " | ".join(rivals) + " |",
        "|---|" + "---|" * len(rivals),
    ]
    for key, words in MEASURES.items():
        table = cells(records, key)
        row = []
        for rival in rivals:
            both = [s for s in sets if (s, "selfview") in table and (s, rival) in table]
            won = sum(points(table[s, "selfview"], table[s, rival]) for s in both)
            row.append(f"{won:g} of {len(both)}")
        lines.append(f"| {words} | " + " | ".join(row) + " |")
    times = cells(records, "seconds")
    row = []
    for rival in rivals:
        both = [s for s in sets if (s, "selfview") in times and (s, rival) in times]
        ratios = [mean(times[s, "selfview"]) / mean(times[s, rival]) for s in both]
        row.append(f"{_ratio(median(ratios))} (at most {_ratio(max(ratios))})" if ratios else "")
    lines += ["| seconds, ours over theirs: median | " + " | ".join(row) + " |", ""]
    for key, words in {**MEASURES, "acc": "k-means accuracy", "ari": "k-means ARI"}.items():
        lines += table_of(records, key, f"{words}, percent", sets, methods, best=max)
    lines += table_of(records, "seconds", "Seconds of a fit, warm", sets, methods, best=min)
    lines += table_of(
        records, "cold", "Seconds from a fresh process, below 2,000 rows", sets, methods, best=min
    )
    lines += table_of(records, "new_rows", "Seconds for new rows", sets, methods, best=min)
    return "\n".join(lines).rstrip() + "\n"


def losses(records: list[dict[str, Any]]) -> str:
    """The sets on which another method is better by a point or more, as a table."""
    lines = ["", "| set | measure | selfview | better |", "|---|---|---|---|"]
    for name in SETS:
        for key, words in MEASURES.items():
            table = {m: mean(v) for (s, m), v in cells(records, key).items() if s == name}
            ours = table.get("selfview")
            if ours is None:
                continue
            better = {m: v for m, v in table.items() if v >= ours + 1}
            if better:
                told = ", ".join(f"{m} {v:.1f}" for m, v in better.items())
                lines.append(f"| {name} | {words} | {ours:.1f} | {told} |")
    return "\n".join(lines) + "\n\n"


def _ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _seeds(count: int) -> str:
    return f"{count} seed{'s' * (count > 1)}"


def table_of(
    records: list[dict[str, Any]], key: str, title: str, sets: list[str], methods: list[str],
    best: Callable[..., float],
) -> list[str]:  # fmt: skip
    found = cells(records, key)
    lines = ["", f"## {title[0].upper()}{title[1:]}", ""]
    lines += ["| | " + " | ".join(methods) + " |", "|---|" + "---|" * len(methods)]
    for name in sets:
        row = {m: mean(found[name, m]) for m in methods if (name, m) in found}
        if not row:
            continue
        top = f"{best(row.values()):.1f}"
        texts = (f"{row[m]:.1f}" if m in row else "" for m in methods)
        lines.append(
            f"| {name} | " + " | ".join(f"**{t}**" if t == top else t for t in texts) + " |"
        )
    return lines


def draw(records: list[dict[str, Any]]) -> None:
    """Mean rank-free quality over seconds: each method's median seconds and mean scores."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), constrained_layout=True)
    times = cells(records, "seconds")
    sets = [s for s in SETS if (s, "selfview") in times]
    for axis, (key, words) in zip(axes, MEASURES.items(), strict=True):
        table = cells(records, key)
        for method in METHODS:
            have = [s for s in sets if (s, method) in table and (s, method) in times]
            if len(have) < len(sets):
                continue  # a mean over other sets would say nothing
            x = median(mean(times[s, method]) for s in have)
            y = mean(mean(table[s, method]) for s in have)
            axis.scatter(x, y, s=60 if method == "selfview" else 30, zorder=3)
            axis.annotate(
                method, (x, y), xytext=(0, 7), ha="center", textcoords="offset points", fontsize=8
            )
        axis.set_xscale("log")
        axis.set_title(f"{words}, mean of {len(sets)} sets", fontsize=9)
        axis.set_xlabel("seconds of a fit, median", fontsize=8)
        axis.margins(0.25)
        axis.grid(alpha=0.3)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("run", "show"):
        command = commands.add_parser(name)
        command.add_argument("--records", type=Path, default=RECORDS)
        if name == "run":
            command.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
            command.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
            command.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
            command.add_argument("--untimed", action="store_true")
    one = commands.add_parser("fit")
    one.add_argument("set", choices=SETS)
    one.add_argument("method", choices=METHODS)
    one.add_argument("seed", type=int)
    one.add_argument("started", type=float, nargs="?")
    args = parser.parse_args()
    if args.command == "fit":
        print(json.dumps(fit(args.set, args.method, args.seed, args.started), default=float))
    else:
        {"run": run, "show": show}[args.command](args)


if __name__ == "__main__":
    main()
