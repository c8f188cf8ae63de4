"""Many methods on the same rows, judged by the same protocol, one record each.

A record is a line of JSON that is appended, and flushed to the disk, as soon as a method is done.
A comparison that is started again with the same data and settings reads them and does only what
is missing. A method that fails becomes a record that says why. One comparison at a time has a
folder: a second one that names it is refused.
"""

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from selfview.baselines.reducer import as_matrix
from selfview.errors import InputError, SelfViewError
from selfview.evaluation import evaluate
from selfview.evaluation.inputs import TargetKind
from selfview.neighbours import Neighbours
from selfview.rows.conversion import as_rows
from selfview.saving.files import locked, unwritable

RECORDS, CHECKPOINTS = "records.jsonl", "checkpoints"
RAW, OURS = "raw", "selfview"
_SPREAD = "columns are of unlike units; to all methods each is divided by its spread"


@dataclass(frozen=True)
class Method:
    """Where a method lives, and with which settings of it a comparison tries it."""

    title: str
    home: str
    name: str
    learned: bool = False  # by gradient steps: takes epochs, checkpoint, verbose
    sampled: bool = False  # takes fit_rows
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"": {}})

    def make(self, **parameters: Any) -> Any:
        """An unfitted estimator."""
        return getattr(import_module(self.home), self.name)(**parameters)


# The paper trains every autoencoder both ways and reports the better one.
BOTH = {"batch norm": {"batch_norm": True}, "no batch norm": {"batch_norm": False}}
_HOME = "selfview.baselines"

METHODS = {
    RAW: Method("raw features", _HOME, "Raw"),
    "pca": Method("PCA", _HOME, "PCA"),
    "nmf": Method("NMF", _HOME, "NMF"),
    "lle": Method("LLE", _HOME, "LLE", sampled=True),
    "isomap": Method("Isomap", _HOME, "Isomap", sampled=True),
    "ae": Method("AE", _HOME, "AutoEncoder", learned=True, variants=BOTH),
    "sae": Method("SAE", _HOME, "SparseAutoEncoder", learned=True, variants=BOTH),
    "dae": Method("DAE", _HOME, "DenoisingAutoEncoder", learned=True, variants=BOTH),
    "vae": Method("VAE", _HOME, "VariationalAutoEncoder", learned=True, variants=BOTH),
    "aae": Method("AAE", _HOME, "AdversarialAutoEncoder", learned=True, variants=BOTH),
    "cpc": Method("CPC", _HOME, "CPC", learned=True),
    OURS: Method("SelfView", "selfview.method", "SelfView", learned=True),
}


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


DEFAULTS = Settings()


@dataclass(frozen=True)
class Record:
    """What came of one variant of one method."""

    study: str  # of which data and settings
    method: str
    title: str
    variant: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0  # of fit and transform
    parameters: int | None = None
    error: str = ""
    notes: tuple[str, ...] = ()  # warnings that the fit gave


def chosen(methods: str | Iterable[str]) -> list[str]:
    """Names of the methods in the order of `METHODS`, raw features always among them.

    Parameters
    ----------
    methods : "all", or names

    Examples
    --------
    >>> chosen(["pca"])
    ['raw', 'pca']
    """
    asked = set([methods] if isinstance(methods, str) else methods)
    if "all" in asked:
        return list(METHODS)
    if unknown := sorted(asked - set(METHODS)):
        raise InputError(f"unknown method {unknown[0]!r}; known are {', '.join(METHODS)} and 'all'")
    return [name for name in METHODS if name in asked or name == RAW]


def compare(
    X: Any,
    y: Any,
    methods: str | Iterable[str] = "all",
    *,
    settings: Settings = DEFAULTS,
    split: Any = None,
    folder: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Record]:
    """Fit every method to the same rows, evaluate all alike, and give their records.

    Parameters
    ----------
    X : rows as in `SelfView.fit`
        All methods see all rows, and no labels. If columns are of unlike units, which SelfView
        sees to by itself, the others get them divided by their spreads: a scaler's merit isn't a
        method's.
    y : array (n,) or (n, outputs)
        For the evaluation only.
    methods : "all", or names of `METHODS`
    settings : Settings
    split : as in `selfview.evaluate`
    folder : Path, optional
        Where records are kept, and where a comparison that was interrupted goes on from. Another
        that names it meanwhile is refused with CheckpointError.
    say : callable
        Called with a line about what is happening.

    Returns
    -------
    list of Record
        In the order of `METHODS`; of autoencoders one with batch norm and one without.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> settings = Settings(measures=("linear",))
    >>> [r.method for r in compare(X, y, ["pca"], settings=settings)]
    ['raw', 'pca']
    """
    names = chosen(methods)
    scaled = _in_like_units(X)
    study = fingerprint(scaled, y, split, settings)
    records = []
    with nullcontext() if folder is None else locked(folder / CHECKPOINTS):
        known = {(r.method, r.variant): r for r in read_records(folder, study)}
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
                    done = replace(done, notes=(_SPREAD, *done.notes))
                say(f"{label}: {done.error or f'{done.seconds:.1f} s'}")
                append_record(folder, done)
            records.append(done)
    return records


def _in_like_units(X: Any) -> Any:
    """The rows, their columns divided by the spreads if these are unlike."""
    rows = as_rows(X)
    spreads = rows.summary().spreads
    if not spreads:
        return X
    matrix = as_matrix(rows)  # not sparse: such columns are told no spreads
    return matrix / np.asarray(spreads, dtype=matrix.dtype)


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
    who = (study, name, METHODS[name].title, variant)
    at = f"{study[:12]}-{name}{'-' if variant else ''}{variant.replace(' ', '-')}"
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
            seconds = max(time.monotonic() - start, _trained(model))
            scores = evaluate(
                Z,
                y,
                split=split,
                measures=list(settings.measures),
                random_state=settings.seed,
                target=settings.target,
            )
        except Exception as error:  # a comparison outlives any method's failure
            told = str(error)
            if not isinstance(error, SelfViewError):
                told = f"{type(error).__name__}: {told}"
            seconds = time.monotonic() - start
            return Record(*who, seconds=seconds, error=" ".join(told.split()))
    notes = tuple(dict.fromkeys(" ".join(str(w.message).split()) for w in caught))
    if name != RAW and model.n_components < settings.n_components:
        notes = (f"{model.n_components} components, as many as the rows allow", *notes)
    _forget(checkpoint)
    return Record(*who, scores, seconds, n_parameters(model), notes=notes)


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


def _trained(model: Any) -> float:
    """Seconds of a fit by gradient steps, those before an interruption included; 0 of others."""
    history = getattr(model, "history_", None)
    return float(history[-1]["seconds"]) if history else 0.0


def n_parameters(model: Any) -> int | None:
    """How many numbers a fitted method learned; None where its rows themselves are the model."""
    count: int | None = (
        sum(p.numel() for p in model.network_.parameters())
        if hasattr(model, "network_")
        else model.n_parameters_
    )
    return count


def _forget(checkpoint: Path | None) -> None:
    if checkpoint is not None and checkpoint.is_dir():
        for path in (*checkpoint.glob("checkpoint-*.safetensors"), checkpoint / Neighbours.FILE):
            path.unlink(missing_ok=True)
        checkpoint.rmdir()


def fingerprint(X: Any, y: Any, split: Any, settings: Settings) -> str:
    """A name for exactly these rows, labels and settings, by which records are found again."""
    from selfview import __version__

    digest = hashlib.sha256(f"{__version__} {json.dumps(asdict(settings))}".encode())
    rows = as_rows(X)
    digest.update(repr((rows.n, rows.shape)).encode())
    for _, chunk in rows.chunks():
        digest.update(chunk.cpu().contiguous().numpy().data)
    for part in (y, *(split if isinstance(split, tuple) else (split,))):
        digest.update(json.dumps(np.asarray(part).tolist(), default=str).encode())
    return digest.hexdigest()


def append_record(folder: Path | None, record: Record) -> None:
    """Add a line to the folder's records; a crash leaves it there whole or not at all."""
    if folder is None:
        return
    path = folder / RECORDS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            # One write; and after a line that a crash cut short, on a new line.
            cut = file.tell() > 0 and path.read_bytes()[-1:] != b"\n"
            file.write(b"\n" * cut + json.dumps(asdict(record)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise unwritable(path, error) from error


def read_records(folder: Path | None, study: str) -> list[Record]:
    """The records of a study; lines that are cut short or of other studies are passed over."""
    if folder is None or not (folder / RECORDS).is_file():
        return []
    lines = (folder / RECORDS).read_bytes().splitlines()
    return [record for line in lines if (record := _parsed(line)) and record.study == study]


def _parsed(line: bytes) -> Record | None:
    try:
        entries = json.loads(line)
        record = Record(**{**entries, "notes": tuple(map(str, entries["notes"]))})
        scores = {str(name): float(value) for name, value in record.scores.items()}
        float(record.seconds)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return Record(**{**asdict(record), "scores": scores, "notes": record.notes})
