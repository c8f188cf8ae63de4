"""The second stage: numbers, and small arrays for figures, out of embeddings.

Every measure carries a version. A record whose measure has an older one is measured again from
the embedding that was kept, and never trained again.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from selfview.data import Dataset
from selfview.errors import InputError
from selfview.evaluation import evaluate
from selfview.evaluation.inputs import check_matrix
from selfview.evaluation.neighbourhood import GRAPH_ROWS, majority_vote, subsample, tsne_layout
from selfview.paper.datasets import KNOWN
from selfview.paper.metrics import ARRAY_MEASURES, VERSIONS
from selfview.paper.provenance import commit
from selfview.paper.records import Arrays, Shelf, one_line, plain, write_arrays
from selfview.paper.training import EMBEDDING, LAST, LOGITS, embeddings

LAYOUT_ROWS = 3_000  # points of a picture
TEMPERATURES = tuple(round(0.05 * i, 2) for i in range(2, 61))  # 0.1 to 3
SHOWN = (0.1, 0.3, 0.5, 0.7, 1.0)  # temperatures of figure 2
ITERATIONS = 10


@dataclass(frozen=True)
class Subject:
    """What a measure may look at."""

    folder: Path  # of the fit
    about: Mapping[str, Any]  # what training left
    sample: Dataset
    method: str
    seed: int

    @property
    def split(self) -> Any:
        """Training and test part of images, for which the paper names them; else None: all rows."""
        return self.sample.split if KNOWN[self.sample.name].images else None

    @property
    def target(self) -> Any:
        """Labels, or colours from 0 to 1."""
        return np.asarray(self.sample.y)

    @property
    def embedding(self) -> Any:
        """The embedding; raw features are the rows themselves."""
        if self.method != "raw":
            return np.load(self.folder / EMBEDDING)
        X: Any = self.sample.X
        return X.reshape(len(X), -1) if X.ndim > 2 else X

    def score(self, name: str, embedding: Any = None) -> dict[str, float]:
        """A measure of `selfview.evaluate`, of the last embedding or of a given one."""
        y = self.target
        return evaluate(
            self.embedding if embedding is None else embedding,
            y,
            split=self.split,
            measures=[name],
            random_state=self.seed,
            target="continuous" if y.ndim == 2 else "classes",
        )


def _evaluated(name: str) -> Callable[[Subject], dict[str, Any]]:
    return lambda subject: dict(subject.score(name))


def _graph(subject: Subject) -> dict[str, Any]:
    """Share of points whose label wins among their 21 nearest in a t-SNE, themselves included.

    A k-NN library returns a point as the nearest to itself, and the paper's figures are met so;
    `graph_accuracy_others` leaves it out, as `selfview.evaluate` does.
    """
    rows = np.arange(len(subject.target)) if subject.split is None else subject.split[1]
    rows = rows[subsample(len(rows), GRAPH_ROWS, subject.seed)]
    points = tsne_layout(check_matrix(subject.embedding)[rows], subject.seed)
    _, codes = np.unique(subject.target[rows], return_inverse=True)

    def accuracy(itself: bool) -> float:
        return float(np.mean(majority_vote(points, codes, itself=itself) == codes))

    return {
        "graph_accuracy": accuracy(itself=True),
        "graph_accuracy_others": accuracy(itself=False),
        "graph_rows": len(rows),
    }


def _clustering(subject: Subject) -> dict[str, Any]:
    """k-means of the last epoch, and each number's highest of the last ten, as the paper has it."""
    found = subject.score("clustering")
    kept = list(embeddings(subject.folder).values())[-LAST:]
    each = [subject.score("clustering", np.load(path)) for path in kept] or [found]
    agreement = [name for name in found if name.startswith("kmeans")]
    best = {f"{name}_best": max(scores[name] for scores in each) for name in agreement}
    return {**found, **best, "epochs": len(each)}


def _curve(subject: Subject) -> dict[str, Any]:
    """The linear probe after every 25th epoch, and after the last."""
    kept = embeddings(subject.folder)
    wanted = [epoch for epoch in kept if epoch <= max(kept) - LAST or epoch == max(kept)]
    return {
        str(epoch): subject.score("linear", np.load(kept[epoch]))["linear_accuracy"]
        for epoch in wanted
    }


def _cost(subject: Subject) -> dict[str, Any]:
    return {
        "n_parameters": subject.about["resolved"].get("n_parameters"),
        "epoch_seconds": subject.about.get("epoch_seconds"),
        "rows": subject.about["data"]["rows"],
    }


def _layout(subject: Subject) -> Arrays:
    """A t-SNE of the embedding, with the labels of its points."""
    sample, y = subject.sample, subject.target
    rows = np.sort(subsample(len(y), LAYOUT_ROWS, 0))
    Z = subject.embedding[rows]
    dense = np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64)
    # In an order without a meaning: equal points fall where their number says.
    order = np.random.default_rng(0).permutation(len(rows))
    points = np.empty((len(rows), 2), np.float32)
    points[order] = tsne_layout(dense[order], subject.seed)
    columns = {
        f"further.{name}": np.asarray(column)[rows]
        for name, column in sample.further.items()
        if np.asarray(column).ndim == 1
    }
    classes = np.array(sample.classes or [str(c) for c in np.unique(y)])
    return {"points": points, "labels": y[rows], "classes": classes, **columns}


def _transport(subject: Subject) -> Arrays:
    """Entropies of the targets over the temperature, and one prediction with its targets."""
    import torch

    from selfview.targets import entropy, sinkhorn

    path = subject.folder / LOGITS
    if not path.exists():
        raise InputError("only our own method makes predictions")
    logits = torch.from_numpy(np.load(path)).double()
    p = torch.softmax(logits, dim=1)
    entropies = [entropy(sinkhorn(logits, t, ITERATIONS)).item() for t in TEMPERATURES]
    order = torch.special.entr(p).sum(1).argsort()
    row = int(order[len(order) // 2])  # a prediction of median entropy
    targets = [sinkhorn(logits, t, ITERATIONS)[row].numpy() for t in SHOWN]
    return {
        "temperatures": np.array(TEMPERATURES),
        "target_entropies": np.array(entropies),
        "prediction_entropy": np.array(entropy(p).item()),
        "prediction": p[row].numpy().astype(np.float32),
        "shown": np.array(SHOWN),
        "targets": np.stack(targets).astype(np.float32),
    }


# Each has a version among `metrics.VERSIONS`, to be raised when its numbers change.
MEASURES: dict[str, Callable[[Subject], dict[str, Any]]] = {
    "cost": _cost,
    **{name: _evaluated(name) for name in ("linear", "mine", "regression")},
    "graph": _graph,
    "clustering": _clustering,
    "curve": _curve,
    "layout": _layout,
    "transport": _transport,
}


def take(name: str, subject: Subject, shelf: Shelf, key: str) -> dict[str, Any]:
    """A score: values, version and seconds, or what went wrong. Arrays go to their own file."""
    start = time.monotonic()
    score: dict[str, Any] = {"version": VERSIONS[name], "commit": commit()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = MEASURES[name](subject)
        except Exception as error:  # a failed measure must not lose the training
            return {**score, "values": {}, "error": one_line(error)}
    if name in ARRAY_MEASURES:
        write_arrays(shelf.array_path(key, name), found)
        found = {}
    notes = list(dict.fromkeys(" ".join(str(w.message).split()) for w in caught))
    score |= {"values": plain(found), "seconds": round(time.monotonic() - start, 3)}
    return score | ({"notes": notes} if notes else {})
