"""How the paper judged, found out from the methods that don't learn: PCA, NMF, on FSDD also LLE.

    SELFVIEW_DATA=... python benchmarks/paper_protocol.py [DATASET ...]

For every reading of the paper's protocol (rows, split, probe, vote, t-SNE, k-means), their cells
beside the printed ones. Defaults are the three datasets whose rows are the paper's:
fsdd, 20news, fashion-mnist. `fsdd-pictures` are FSDD's recordings as the dataset's own tool draws
them: matplotlib's specgram in decibels, a grey picture of 48 x 48 pixels. Takes about 20 minutes on
one core; prints Markdown.
"""

import io
import os
import sys
import tarfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import TSNE
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selfview import evaluate
from selfview.data.audio import read_wav
from selfview.evaluation.neighbourhood import majority_vote, tsne_layout
from selfview.evaluation.probes import standardise
from selfview.evaluation.split import stratified_fifth
from selfview.paper.datasets import load_sample
from selfview.paper.methods import METHODS
from selfview.paper.printed import PRINTED

FSDD = "fsdd/fsdd_recordings.tar.gz"
SKLEARN_ROWS = 10_000  # scikit-learn's t-SNE of more takes many minutes


def pictures(path: Path) -> np.ndarray[Any, Any]:
    """FSDD's recordings as grey pictures of their spectrograms: (3000, 2304), black is 0."""
    import matplotlib.figure
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    rows = []
    with tarfile.open(path) as archive:
        members = [m for m in archive.getmembers() if m.name.endswith(".wav")]
        for member in sorted(members, key=lambda m: Path(m.name).name):
            file = archive.extractfile(member)
            assert file is not None
            signal, _ = read_wav(io.BytesIO(file.read()))
            figure = matplotlib.figure.Figure(figsize=(0.48, 0.48), dpi=100)
            axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
            axes.set_axis_off()
            axes.specgram(signal, cmap="gray_r", Fs=2, noverlap=16)
            canvas = FigureCanvasAgg(figure)
            canvas.draw()
            rows.append(np.asarray(canvas.buffer_rgba())[..., 0].ravel() / 255)
    return np.stack(rows).astype(np.float32)


def percent(*values: float) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in values)


def linear(Z: Any, y: Any, split: Any) -> Iterator[tuple[str, str]]:
    """One layer on frozen features, by what it is trained on and scored on."""
    fifth = stratified_fifth(y)
    parts = {"a fixed stratified fifth": (fifth.train, fifth.test)}
    if split is not None:
        parts["the official test part"] = split
    for name, (train, test) in parts.items():
        found = evaluate(Z, y, split=(train, test), measures=["linear"])
        yield f"linear, {name}", percent(found["linear_accuracy"])
    train, test = parts.get("the official test part", parts["a fixed stratified fifth"])
    plain = LogisticRegression(max_iter=1000).fit(Z[train], y[train]).score(Z[test], y[test])
    yield "linear, columns not standardised", percent(plain)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    yield "linear, five folds", percent(cross_val_score(probe, Z, y, cv=folds).mean())
    (own,) = standardise(Z)
    yield "linear, its own training rows", percent(LogisticRegression().fit(own, y).score(own, y))


def graph(Z: Any, y: Any, split: Any) -> Iterator[tuple[str, str]]:
    """21 nearest in a t-SNE, by rows, program, and whether a point is one of its own nearest."""
    order = np.random.default_rng(0).permutation(len(Z))
    rows = {"all rows": order} if len(Z) <= 20_000 else {}
    if split is not None:
        rows["the test part"] = np.random.default_rng(0).permutation(split[1])
    for name, at in rows.items():
        layouts = {"openTSNE": tsne_layout(Z[at], 0)}
        if len(at) <= SKLEARN_ROWS:
            old = dict(init="random", learning_rate=200.0, random_state=0)  # as in version 0.23
            layouts["scikit-learn's t-SNE"] = TSNE(2, **old).fit_transform(Z[at])
        for program, points in layouts.items():
            for itself, words in ((True, "itself counted"), (False, "itself left out")):
                right = np.mean(majority_vote(points, y[at], itself=itself) == y[at])
                yield f"graph, {name}, {program}, {words}", percent(right)


def clustering(Z: Any, y: Any, split: Any) -> Iterator[tuple[str, str]]:
    """k-means ACC / NMI / ARI, by rows and scale."""
    parts = {"all rows": np.arange(len(Z))}
    if split is not None:
        parts["the test part"] = split[1]
    for name, at in parts.items():
        for scale, features in (("", Z[at]), (", columns standardised", standardise(Z[at])[0])):
            found = evaluate(features, y[at], measures=["clustering"])
            scores = (found[f"kmeans_{kind}"] for kind in ("acc", "nmi", "ari"))
            yield f"k-means, {name}{scale}", percent(*scores)


def printed(method: str, dataset: str) -> str:
    numbers = {**PRINTED["table2"], **PRINTED["table4"]}
    cells = [numbers[method.upper(), dataset, m].mean for m in ("linear", "graph")]
    kmeans = [numbers[method.upper(), dataset, m].mean for m in ("acc", "nmi", "ari")]
    return f"{cells[0]}; {cells[1]}; {' / '.join(map(str, kmeans))}"


def main(datasets: list[str]) -> None:
    warnings.simplefilter("ignore")
    for dataset in datasets:
        dataset, drawn = dataset.removesuffix("-pictures"), dataset.endswith("-pictures")
        sample = load_sample(dataset, None)
        X = pictures(Path(os.environ["SELFVIEW_DATA"]) / FSDD) if drawn else sample.X
        y, cells = np.asarray(sample.y), {}
        methods = ("pca", "nmf", "lle") if dataset == "fsdd" else ("pca", "nmf")
        for method in methods:
            model = METHODS[method].make(n_components=10, random_state=0)
            Z = np.asarray(model.fit_transform(X), dtype=np.float64)
            for measure in (linear, clustering, graph):
                for reading, value in measure(Z, y, sample.split):
                    cells.setdefault(reading, {})[method] = value
        about = f"{dataset}{', as pictures' * drawn}, {len(y):,} rows"
        heads = " | ".join(method.upper() for method in methods)
        print(f"\n{about}\n\n| reading | {heads} |\n|---|{'---|' * len(methods)}")
        print(f"| printed | {' | '.join(printed(method, dataset) for method in methods)} |")
        for reading, values in cells.items():
            print(f"| {reading} | {' | '.join(values.values())} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["fsdd", "20news", "fashion-mnist"])
