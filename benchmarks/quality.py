"""Quality for the time it takes: ours, ours with one part exchanged, the paper's recipe, UMAP, PCA.

    python benchmarks/quality.py run  [--datasets fsdd reuters] [--contenders selfview umap-15]
                                      [--seeds 3] [--records results/quality.jsonl]
    python benchmarks/quality.py show [--records results/quality.jsonl]

`run` appends one line of JSON for every fit: settings, scores by the paper's protocol, seconds of
the fit (with everything from rows to embedding in them), epochs, versions and machine. What is
there already is not run again, so an interrupted run goes on. `show` prints a table and draws
accuracy over seconds beside the records. Two fits at once would spoil each other's seconds.
"""

import argparse
import json
import math
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import timing
from selfview import SelfView, __version__, evaluate, load_dataset
from selfview.baselines import PCA
from selfview.estimator.recipes import RECIPES

DATASETS = ("fsdd", "reuters", "20news", "msi", "mnist", "fashion-mnist")
# Epochs of the budget: within the seconds that a user will give it, on two cores.
EPOCHS = {"fsdd": 100, "reuters": 30, "20news": 16, "msi": 10, "mnist": 30, "fashion-mnist": 30}
PART = 0.25  # of the epochs, in which the recipe is compared with others
LEAST_POINTS = 4  # of accuracy that an axis of the figure spans
PAPER = RECIPES["paper"]
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def ours(
    budget: float = 1.0, paper_epsilon: bool = False, **given: Any
) -> Callable[[Any, int], Any]:
    """A SelfView of the budget's epochs (times `budget`) with the given parameters."""

    def make(dataset: Any, seed: int) -> Any:
        epochs = math.ceil(EPOCHS[dataset.name] * budget)
        own = given | ({"epsilon": dataset.epsilon} if paper_epsilon else {})
        return SelfView(epochs=epochs, random_state=seed, verbose=0, **own)

    return make


def umap(neighbours: int) -> Callable[[Any, int], Any]:
    def make(dataset: Any, seed: int) -> Any:  # noqa: ARG001
        try:
            from umap import UMAP
        except ImportError:
            sys.exit("UMAP is not installed: pip install '.[peers]', or name other --contenders")
        return UMAP(n_components=10, n_neighbors=neighbours, random_state=seed)

    return make


CONTENDERS: dict[str, Callable[[Any, int], Any]] = {
    "selfview": ours(),
    "selfview, half the epochs": ours(0.5),
    "selfview, a quarter": ours(PART),
    # That with one part each as in the paper.
    "learned axes": ours(PART, axes=PAPER.axes),
    "without neighbours": ours(PART, neighbours=PAPER.neighbours),
    "without contrast": ours(PART, contrast=PAPER.contrast),
    "the paper's epsilon": ours(PART, paper_epsilon=True),
    "the paper's probe": ours(PART, xi=PAPER.xi),
    "the paper's schedule": ours(PART, schedule=PAPER.schedule, learning_rate=PAPER.learning_rate),
    "without adversarial steps": ours(PART, views="none"),
    "without them, all the epochs": ours(views="none"),
    # For images.
    "the paper's convolutions": ours(PART, encoder=PAPER.images),
    "without the hidden layer": ours(PART, encoder="small-cnn"),
    "paper": ours(recipe="paper"),
    "umap-5": umap(5),
    "umap-15": umap(15),
    "umap-30": umap(30),
    "umap-50": umap(50),
    "pca": lambda dataset, seed: PCA(10, random_state=seed),  # noqa: ARG005
}


def embed(make: Callable[[Any, int], Any], dataset: Any, seed: int) -> tuple[Any, Any, float]:
    model = make(dataset, seed)
    X = dataset.X
    if type(model).__name__ == "UMAP" and X.ndim > 2:
        X = np.asarray(X).reshape(len(X), -1)
    start = time.perf_counter()
    Z = model.fit_transform(X)
    return Z, model, time.perf_counter() - start


def scores(Z: Any, dataset: Any) -> dict[str, float]:
    if dataset.name == "msi":
        y = dataset.further["segment"]
        found = evaluate(Z, y, measures=["linear", "clustering"])
        return found | evaluate(Z, dataset.further["rgb"], measures=["regression"])
    split = None if dataset.test is None else (dataset.train, dataset.test)
    found = evaluate(Z, dataset.y, split=split, measures=["linear", "clustering"])
    return found | {"free_linear_accuracy": free_probe(Z, dataset.y)}


def free_probe(Z: Any, y: Any) -> float:
    """Five-fold accuracy of a logistic regression that is hardly regularised.

    The other probe has scikit-learn's strength, which embeddings in tight clumps, as UMAP's are,
    suffer from.
    """
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=1e4, max_iter=5000))
    return float(cross_val_score(probe, Z, y, cv=FOLDS).mean())


def record(dataset: Any, contender: str, seed: int) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            Z, model, seconds = embed(CONTENDERS[contender], dataset, seed)
            found = {"scores": scores(Z, dataset), "seconds": seconds}
            found["parameters"] = {k: repr(v) for k, v in model.get_params().items()}
            found["epochs"] = getattr(model, "epochs_", None)
        except Exception as error:  # a contender that fails becomes a record that says why
            found = {"error": f"{type(error).__name__}: {error}"}
    about = {"dataset": dataset.name, "rows": len(dataset), "contender": contender, "seed": seed}
    return {**about, **found, "commit": commit(), "version": __version__, **timing.machine()}


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)
    return done.stdout.strip()


def read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def run(options: argparse.Namespace) -> None:
    path = options.records
    done = {(r["dataset"], r["contender"], r["seed"]) for r in read(path) if "error" not in r}
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in options.datasets:
        todo = [
            (contender, seed)
            for seed in range(options.seeds)
            for contender in options.contenders
            if (name, contender, seed) not in done
        ]
        dataset = load_dataset(name) if todo else None
        for contender, seed in todo:
            made = record(dataset, contender, seed)
            with path.open("a") as file:
                file.write(json.dumps(made) + "\n")
            print(line(contender, [made]), name, flush=True)


def line(contender: str, records: list[dict[str, Any]]) -> str:
    """Means: linear, hardly regularised, k-means ACC / NMI / ARI, RSS if any, seconds, seeds."""
    good = [r for r in records if "error" not in r]
    if not good:
        return f"{contender:<28} {records[0]['error'][:80]}"

    def at(name: str) -> float:
        return 100 * mean(r["scores"][name] for r in good)

    kmeans = " / ".join(f"{at(f'kmeans_{m}'):4.1f}" for m in ("acc", "nmi", "ari"))
    rss = ""
    if "regression_rss" in good[0]["scores"]:
        rss = f"  RSS {mean(r['scores']['regression_rss'] for r in good):.0f}"
    took = mean(r["seconds"] for r in good)
    measured = all("free_linear_accuracy" in r["scores"] for r in good)
    free = f"{at('free_linear_accuracy'):5.1f}" if measured else "     "
    linear = f"{at('linear_accuracy'):5.1f} {free}"
    return f"{contender:<28} {linear}   {kmeans}{rss}  {took:5.0f} s {on(good)}  n={len(good)}"


def on(records: list[dict[str, Any]]) -> str:
    """The threads that fits were given, in words."""
    counts = sorted({r["threads"] for r in records})
    return f"on {' or '.join(map(str, counts))} thread{'s' * (counts != [1])}"


def show(options: argparse.Namespace) -> None:
    table: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for entry in read(options.records):
        table[entry["dataset"]][entry["contender"]].append(entry)
    for name, contenders in table.items():
        print(f"\n{name}{'':<{28 - len(name)}} linear, free  k-means ACC / NMI / ARI")
        for contender in sorted(contenders, key=list(CONTENDERS).index):
            print(line(contender, contenders[contender]))
    drawn = {name: contenders for name, contenders in table.items() if "selfview" in contenders}
    if drawn:
        draw(drawn, options.records.with_suffix(".png"))


def draw(table: dict[str, dict[str, list[dict[str, Any]]]], path: Path) -> None:
    """Linear accuracy over seconds: ours at several budgets as a line, the others as points.

    Seconds on more threads and on fewer don't go together: what had other threads than our own full
    budget is left out.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    across = min(3, len(table))
    down = math.ceil(len(table) / across)
    figure = plt.figure(figsize=(3.4 * across, 3 * down), layout="constrained")
    axes = [figure.add_subplot(down, across, i + 1) for i in range(len(table))]
    for axis, (name, contenders) in zip(axes, table.items(), strict=True):
        own = on(contenders["selfview"])
        points = {
            contender: (
                mean(r["seconds"] for r in good),
                100 * mean(r["scores"]["linear_accuracy"] for r in good),
            )
            for contender, records in contenders.items()
            if (good := [r for r in records if "error" not in r])
            and (on(good) == own or not contender.startswith("selfview"))
        }
        line_ = sorted(v for k, v in points.items() if k.startswith("selfview"))
        axis.plot(*zip(*line_, strict=True), "o-", color="#0072B2", label="selfview")
        marks = {"umap": ("s", "#D55E00"), "paper": ("^", "#009E73"), "pca": ("D", "#555555")}
        for start, (mark, colour) in marks.items():
            found = [v for k, v in points.items() if k.split("-")[0] == start]
            if found:
                x, y = zip(*found, strict=True)
                axis.plot(x, y, mark, color=colour, label=start, linestyle="none")
        axis.set(title=f"{name}, {own}", xscale="log", ylabel="linear probe, %")
        axis.set_xlabel("seconds of fit")
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
        low, high = axis.get_ylim()
        spare = max(0.0, LEAST_POINTS - (high - low)) / 2  # a tenth of a point is no mountain
        axis.set_ylim(low - spare, high + spare)
        axis.grid(alpha=0.3)
    shown = {}  # a contender may be missing anywhere
    for axis in axes:
        handles, names = axis.get_legend_handles_labels()
        shown |= dict(zip(names, handles, strict=True))
    figure.legend(shown.values(), shown, fontsize=8, ncols=4, loc="outside upper center")
    figure.savefig(path, dpi=120)
    print(f"\ndrawn to {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=CONTENDERS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--records", type=Path, default=Path("results/quality.jsonl"))
    options = parser.parse_args(sys.argv[1:])
    {"run": run, "show": show}[options.what](options)


if __name__ == "__main__":
    main()
