"""Many methods on the same rows, judged by the same protocol, one record each.

A record is on the disk as soon as a method is done. A comparison that is started again with the
same data and settings does only what is missing. A method that fails becomes a record that says
why. One comparison at a time has a folder: a second one that names it raises an error.
"""

import hashlib
import json
import shutil
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from selfview.baselines.reducer import as_matrix
from selfview.cli.configuration import fingerprint
from selfview.data.npy import read_npy
from selfview.errors import InputError
from selfview.evaluation import evaluate
from selfview.evaluation.inputs import TargetKind
from selfview.paper.methods import METHODS, PEERS, Method, n_parameters
from selfview.paper.records import append_line, one_line, read_lines
from selfview.report.comparison import Record
from selfview.rows.conversion import as_rows
from selfview.saving.files import locked, write_array
from selfview.tables.preparation import preparation_for

RECORDS, CHECKPOINTS, EMBEDDINGS = "records.jsonl", "checkpoints", "embeddings"
RAW, OURS = "raw", "selfview"
OWN = tuple(name for name in METHODS if name not in PEERS)  # of this package: 'all' of them
_SCALED = "columns are of different scale; all methods see each divided by its standard deviation"


@dataclass(frozen=True)
class Settings:
    """What all methods of a comparison share."""

    n_components: int = 10
    epochs: str | int = "auto"
    seed: int = 0
    measures: tuple[str, ...] = ("linear", "clustering")
    target: TargetKind = "auto"  # what labels are, as in `selfview.evaluate`
    fit_rows: int | None = None
    device: str = "auto"


def chosen(methods: str | Iterable[str]) -> list[str]:
    """Names of the methods in the order of `METHODS`, raw features always among them.

    >>> chosen(["pca"])
    ['raw', 'pca']
    """
    asked = set([methods] if isinstance(methods, str) else methods)
    if unknown := sorted(asked - {*METHODS, "all"}):
        raise InputError(f"unknown method {unknown[0]!r}; known are {', '.join(METHODS)} and 'all'")
    asked |= {RAW, *(OWN if "all" in asked else ())}
    return [name for name in METHODS if name in asked]


def compare(
    X: Any,
    y: Any,
    methods: str | Iterable[str] = "all",
    *,
    settings: Settings = Settings(),  # noqa: B008 (it is frozen)
    split: Any = None,
    folder: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Record]:
    """Fit every method to the same rows `X`, evaluate all alike, and give their records.

    All methods see all rows, and no labels; those of a data frame of mixed columns as
    `TablePreparation` makes them. If columns are of different scale, which SelfView
    handles by itself, the others get them divided by their standard deviations. Records are kept in
    `folder`, from which an interrupted comparison goes on. Of autoencoders there is a record with
    batch norm and one without.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> [r.method for r in compare(X, y, ["pca"], settings=Settings(measures=("linear",)))]
    ['raw', 'pca']
    """
    names = chosen(methods)
    table = preparation_for(X)
    X = X if table is None else table.transform(X)
    scaled = _in_one_scale(X)
    study = _study(scaled, y, split, settings)
    records = []
    with nullcontext() if folder is None else locked(folder / CHECKPOINTS):
        found = [] if folder is None else read_lines(folder / RECORDS, _parsed)[0]
        known = {(r.method, r.variant): r for r in found if r.study == study}
        for name, variant in [(n, v) for n in names for v in METHODS[n].variants]:
            label = f"{METHODS[name].title}{variant and f' ({variant})'}"
            done = known.get((name, variant))
            if done is not None and not done.error:
                say(f"{label}: done before")
            else:
                say(f"{label} ...")
                rows = X if name == OURS else scaled
                done = _attempt(rows, y, name, variant, settings, split, folder, study)
                if name == RAW and scaled is not X:
                    done = replace(done, notes=(_SCALED, *done.notes))
                say(f"{label}: {done.error or f'{done.seconds:.1f} s'}")
                if folder is not None:
                    append_line(folder / RECORDS, asdict(done))
            records.append(done)
    return records


def _in_one_scale(X: Any) -> Any:
    """The rows, their columns divided by the standard deviations if these differ much."""
    rows = as_rows(X)
    deviations = rows.summary().column_stds
    if not deviations:
        return X
    matrix = as_matrix(rows)  # not sparse: such columns are left as they are
    return matrix / np.asarray(deviations, dtype=matrix.dtype)


def _attempt(
    X: Any,
    y: Any,
    name: str,
    variant: str,
    settings: Settings,
    split: Any,
    folder: Path | None,
    study: str,
) -> Record:
    """Fit and evaluate; whatever goes wrong becomes the record's error."""
    record = Record(study, name, METHODS[name].title, variant)
    at = _file_name(record)
    checkpoint = None if folder is None else folder / CHECKPOINTS / at
    start = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            rows = as_rows(X)
            most = min(rows.n_features, rows.n)
            model = _model(METHODS[name], variant, settings, checkpoint, most)
            start = time.monotonic()  # imports are done by now
            Z = model.fit_transform(X)
            history = getattr(model, "history_", None)
            # A fit that went on from a checkpoint also took the seconds before.
            before = float(history[-1]["seconds"]) if history else 0.0
            seconds = max(time.monotonic() - start, before)
            scores = evaluate(
                Z,
                y,
                split=split,
                measures=list(settings.measures),
                random_state=settings.seed,
                target=settings.target,
            )
        except Exception as error:  # a comparison outlives any method's failure
            return replace(record, seconds=time.monotonic() - start, error=one_line(error))
    notes = tuple(dict.fromkeys(" ".join(str(w.message).split()) for w in caught))
    if name != RAW and model.n_components < settings.n_components:
        notes = (f"{model.n_components} components, as many as the rows allow", *notes)
    if folder is not None:
        shutil.rmtree(checkpoint, ignore_errors=True)  # type: ignore[arg-type]
        if name != RAW:
            write_array(folder / EMBEDDINGS / f"{at}.npy", np.asarray(Z, dtype=np.float32))
    size = n_parameters(model)
    return replace(record, scores=scores, seconds=seconds, parameters=size, notes=notes)


def _file_name(record: Record) -> str:
    """By which the checkpoint and the embedding of a method are found again."""
    variant = record.variant.replace(" ", "-")
    return "-".join(part for part in (record.study[:12], record.method, variant) if part)


def kept_embedding(folder: Path, record: Record) -> Any | None:
    """The embedding that a record is of, or None if it isn't there."""
    path = folder / EMBEDDINGS / f"{_file_name(record)}.npy"
    return read_npy(path) if path.is_file() else None


def _model(
    method: Method, variant: str, settings: Settings, checkpoint: Path | None, most: int
) -> Any:
    """The method unfitted; one that takes its components from the rows has `most` of them."""
    wanted = settings.n_components
    parameters: dict[str, Any] = {
        "n_components": wanted if method.learned else min(wanted, most),
        "random_state": settings.seed,
        **method.variants[variant],
    }
    if method.learned:
        parameters |= {"epochs": settings.epochs, "device": settings.device}
        parameters |= {"checkpoint": checkpoint, "verbose": 0}
    if method.sampled:
        parameters["fit_rows"] = settings.fit_rows
    return method.make(**parameters)


def _study(X: Any, y: Any, split: Any, settings: Settings) -> str:
    """A name for exactly these rows, labels and settings, by which records are found again."""
    from selfview import __version__

    sides = (y, *(split if isinstance(split, tuple) else (split,)))
    known = [np.asarray(side).tolist() for side in sides]
    about = [__version__, asdict(settings), fingerprint(X), known]
    return hashlib.sha256(json.dumps(about, default=str).encode()).hexdigest()


def _parsed(content: dict[str, Any]) -> Record:
    record = Record(**content)
    known = {str(name): float(v) for name, v in record.scores.items() if v is not None}
    notes = tuple(map(str, record.notes))
    return replace(record, scores=known, notes=notes, seconds=float(record.seconds))
