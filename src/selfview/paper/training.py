"""The first stage: a fit to its embedding, kept in a work folder with all that training knows.

| file in WORK/KEY | what |
|---|---|
| embedding.npy | the embedding of all rows |
| epochs/ | of methods that learn: the embedding after the last ten epochs, and after every 25th |
| logits.npy | of our method: logits of 2,048 rows, for figures 2 and 3 |
| fit.json | parameters, history, health, seconds, provenance; written last |
| checkpoint/ | while training |
"""

import contextlib
import json
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from selfview.data import Dataset
from selfview.errors import CheckpointError, FileFormatError
from selfview.estimator.devices import resolve_device, resolve_precision
from selfview.estimator.recipes import RECIPES
from selfview.paper.datasets import describe
from selfview.paper.grid import COMPONENTS, Fit
from selfview.paper.methods import METHODS, n_parameters
from selfview.paper.provenance import provenance
from selfview.paper.records import plain
from selfview.saving.files import unwritable, write_array, write_bytes

EMBEDDING, LOGITS, ABOUT, CHECKPOINT = "embedding.npy", "logits.npy", "fit.json", "checkpoint"
EPOCHS = "epochs"
LAST = 10  # epochs whose embeddings are kept: the paper takes the best k-means of them
EVERY = 25  # and of so many epochs, for the curve of the linear probe; a fourth of short fits
# What fit.json holds.
KEPT = {"data", "parameters", "resolved", "history", "health", "seconds", "notes", "provenance"}
HISTORY_ROWS = 24
# Rows whose logits are kept. Of a batch of 256, each of 100 prototypes would get two or three, and
# the transport would have to even out chance.
LOGIT_ROWS = 2048


class BusyError(Exception):
    """Another process is at this fit."""


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Hold a fit's folder, or raise BusyError if another process of this machine does."""
    lock = FileLock(folder / "lock", blocking=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise BusyError from error
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        yield
    finally:
        lock.release()


def trained(folder: Path, fit: Fit) -> dict[str, Any] | None:
    """What training left in the folder, or None if it isn't all there."""
    try:
        about: dict[str, Any] = json.loads((folder / ABOUT).read_bytes())
        rows = int(about["data"]["rows"])
        if fit.method != "raw" and len(np.load(folder / EMBEDDING, mmap_mode="r")) != rows:
            return None
        if fit.method == "selfview":
            np.load(folder / LOGITS, mmap_mode="r")
        if set(kept_epochs(fit.epochs)) - set(embeddings(folder)):
            return None
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
    return about if about.keys() >= KEPT else None


def train(folder: Path, fit: Fit, sample: Dataset, verbose: int = 0) -> dict[str, Any]:
    """Fit and embed, going on from a checkpoint if there is one, and keep what comes of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, Z, seconds, notes = _fitted(folder, fit, sample, verbose)
    notes += [" ".join(str(warning.message).split()) for warning in caught]
    history = getattr(model, "history_", [])
    about = plain(
        {
            "data": describe(sample),
            "parameters": _parameters(model),
            "resolved": _resolved(model, Z),
            "history": thinned(history),
            "epoch_seconds": epoch_seconds(history),
            "health": getattr(model, "health_", {}),
            "seconds": history[-1]["seconds"] if history else seconds,
            "notes": list(dict.fromkeys(notes)),
            "provenance": provenance(),
        }
    )
    if fit.method != "raw":
        write_array(folder / EMBEDDING, np.asarray(Z, dtype=np.float32))
    if fit.method == "selfview":
        write_array(folder / LOGITS, _logits(model, sample))
    write_bytes(folder / ABOUT, json.dumps(about).encode())
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    return dict(about)


def _fitted(
    folder: Path, fit: Fit, sample: Dataset, verbose: int
) -> tuple[Any, Any, float, list[str]]:
    notes: list[str] = []
    try:
        return (*_attempt(folder, fit, sample, verbose), notes)
    except (CheckpointError, FileFormatError) as error:
        # Of other rows under the same name, or damaged: better to start again than to stop.
        notes.append(f"started again, because its checkpoint could not be used: {error}")
        shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
        return (*_attempt(folder, fit, sample, verbose), notes)


def _attempt(folder: Path, fit: Fit, sample: Dataset, verbose: int) -> tuple[Any, Any, float]:
    method = METHODS[fit.method]
    settings = {"n_components": COMPONENTS, "random_state": fit.seed, **dict(fit.settings)}
    if method.learned:
        keep = _keeper(folder, kept_epochs(fit.epochs))
        settings |= {"epochs": fit.epochs, "verbose": verbose, "on_epoch": keep}
        settings["checkpoint"] = folder / CHECKPOINT
    model = method.make(**settings)
    start = time.monotonic()
    Z = model.fit_transform(sample.X)
    return model, Z, time.monotonic() - start


def kept_epochs(epochs: int | None) -> list[int]:
    """The epochs of a fit whose embeddings are kept.

    >>> kept_epochs(52)
    [13, 26, 39, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52]
    """
    epochs = epochs or 0
    every = EVERY if epochs >= 4 * EVERY else max(1, epochs // 4)
    return sorted({*range(every, epochs, every), *range(max(1, epochs - LAST + 1), epochs + 1)})


def _keeper(folder: Path, epochs: list[int]) -> Callable[[Any], None]:
    """What a fit calls after every epoch; a fit that goes on calls it for those that are left."""

    def keep(end: Any) -> None:
        if end.epoch in epochs:
            write_array(folder / EPOCHS / f"{end.epoch:06d}.npy", end.embedding())

    return keep


def embeddings(folder: Path) -> dict[int, Path]:
    """The embeddings that were kept, by epoch."""
    paths = sorted((folder / EPOCHS).glob("*.npy"))
    return {int(path.stem): path for path in paths if path.stem.isdecimal()}


def _parameters(model: Any) -> dict[str, Any]:
    given = model.get_params() if hasattr(model, "get_params") else vars(model)
    hidden = ("checkpoint", "on_epoch", "verbose")
    return {name: value for name, value in sorted(given.items()) if name not in hidden}


def _resolved(model: Any, Z: Any) -> dict[str, Any]:
    """What the fit decided itself."""
    network = getattr(model, "network_", None)
    size = n_parameters(model)
    names = {"epsilon": "epsilon_", "epochs": "epochs_", "seed": "seed_", "rounds": "n_iter_"}
    found = {name: getattr(model, at) for name, at in names.items() if hasattr(model, at)}
    if network is not None:
        device = resolve_device(model.device)
        found["recipe"] = asdict(RECIPES[model.recipe])  # where the other values at "auto" are from
        found |= {"device": str(device), "precision": resolve_precision(model.precision, device)}
    return {"dimensions": int(Z.shape[1]), "n_parameters": size, **found}


def _logits(model: Any, sample: Dataset) -> Any:
    """Log probabilities of many rows: logits up to a constant a row, which nothing depends on."""
    rows = np.random.default_rng(0).permutation(len(sample))[:LOGIT_ROWS]
    p = model.predict_proba(sample.X[np.sort(rows)])
    return np.log(np.maximum(p, np.finfo(np.float32).tiny))


def thinned(history: list[dict[str, float]]) -> list[dict[str, float]]:
    """At most 24 epochs of a history, evenly, with the first and the last.

    >>> [row["epoch"] for row in thinned([{"epoch": i} for i in range(100)])][:3]
    [0, 4, 9]
    """
    if len(history) <= HISTORY_ROWS:
        return history
    last = len(history) - 1
    return [history[round(i * last / (HISTORY_ROWS - 1))] for i in range(HISTORY_ROWS)]


def epoch_seconds(history: list[dict[str, float]]) -> float | None:
    """Seconds of the quickest epoch after the first, which warms up.

    The quickest, because whatever else the machine does can only add.
    """
    ends = [row["seconds"] for row in history]
    spent = [after - before for before, after in zip([0.0, *ends], ends, strict=False)]
    return min(spent[1:] or spent, default=None)
