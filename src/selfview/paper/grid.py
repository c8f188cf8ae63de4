"""Every table and figure of the paper as data: its rows, its columns, and the fits they need.

A `Fit` is one training run; its key is a hash of its settings, so that the same run is found again
whichever table asks for it.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from selfview.errors import InputError
from selfview.paper.budgets import Budget
from selfview.paper.methods import METHODS
from selfview.paper.subjects import FURTHER, KNOWN, SUBJECTS

FORMAT = 1  # of the key
COMPONENTS = 10


@dataclass(frozen=True)
class Fit:
    """One method on one dataset with one seed."""

    dataset: str
    method: str
    settings: tuple[tuple[str, Any], ...]  # sorted; what is not named is the method's default
    seed: int
    epochs: int | None  # None for methods without
    rows: int | None  # None for all

    @property
    def key(self) -> str:
        """A name for exactly these settings of this version of the method."""
        return self.key_of(METHODS[self.method].version)

    def key_of(self, version: int) -> str:
        """The same for another version."""
        about = [FORMAT, asdict(self), *([version] if version > 1 else [])]
        content = json.dumps(about, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def describe(self) -> str:
        """One line for people."""
        given = ", ".join(f"{name}={value}" for name, value in self.settings)
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        epochs = "" if self.epochs is None else f", {self.epochs:,} epochs"
        return f"{self.dataset} {self.method}({given}){epochs}{rows}, seed {self.seed}"


@dataclass(frozen=True)
class Variant:
    """A method with settings of its own."""

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A row of a table. Of several variants the best is shown, as in the paper."""

    title: str
    variants: tuple[Variant, ...]
    printed: str | None = None  # the row's name in the paper


@dataclass(frozen=True)
class Column:
    """A column of a table: a metric on a dataset."""

    dataset: str
    metric: str
    printed: str | None  # the dataset's name among the paper's numbers


@dataclass(frozen=True)
class Piece:
    """A table or figure: its rows, its columns, and measures beyond the columns' metrics."""

    name: str
    title: str
    rows: tuple[Row, ...]
    metrics: Mapping[str, tuple[str, ...]]  # by dataset
    arrays: str | None = None  # the measure that a figure draws, where that isn't a metric
    default_seeds: bool = True  # False: one seed, as for a picture

    @property
    def is_table(self) -> bool:
        return self.name.startswith("table")


OURS = {"recipe": "paper"}
ABLATIONS, SWEEPS = ("table5", "table6"), ("fig5", "fig6")
AUTOENCODERS = ("ae", "aae", "sae", "dae", "vae")
_BOTH = ({"batch_norm": True}, {"batch_norm": False})


def _ours(title: str, printed: str | None = None, **changes: Any) -> Row:
    return Row(title, (Variant("selfview", {**OURS, **changes}),), printed)


def _autoencoder(name: str) -> Row:
    variants = tuple(Variant(name, settings) for settings in _BOTH)
    return Row(name.upper(), variants, name.upper())


METHOD_ROWS = (
    *(Row(name.upper(), (Variant(name),), name.upper()) for name in ("pca", "nmf", "lle")),
    Row("ISOMAP", (Variant("isomap"),), "ISOMAP"),
    *(_autoencoder(name) for name in AUTOENCODERS),
    Row("CPC", (Variant("cpc"),), "CPC"),
    _ours("Ours (paper's recipe)", "Ours"),
    Row("Ours (our default)", (Variant("selfview"),)),
    Row("UMAP", (Variant("umap"),)),
    Row("raw features", (Variant("raw"),)),
)
COST_ROWS = (
    Row("AEs", (Variant("ae"),), "AEs"),
    Row("CPC", (Variant("cpc"),), "CPC"),
    _ours("Ours", "Ours"),
)
VIEW_ROWS = (
    _ours("NP", "NP", views="none"),
    _ours("RP", "RP", views="random"),
    _ours("RP+VAT", "RP+VAT", views="random+adversarial"),
    _ours("VAT", "VAT"),
)
NORM_ROWS = (
    _ours("No-BN", "No-BN", batch_norm="none"),
    _ours("EN-BN", "EN-BN", batch_norm="encoder"),
    _ours("CL-BN", "CL-BN", batch_norm="head"),
    _ours("EN-CL BN", "EN-CL BN"),
)
TEMPERATURE_ROWS = (
    *(_ours(f"temperature {value}", temperature=value) for value in (0.5, 0.7, 0.9)),
    _ours("adaptive"),
)


def _metrics(names: Iterable[str], labelled: Sequence[str], msi: Sequence[str]) -> dict[str, Any]:
    known = {**SUBJECTS, **FURTHER}
    return {name: tuple(labelled if known[name].labelled else msi) for name in names}


def piece_of(name: str, budget: Budget) -> Piece:
    """A table or figure, as large as the budget makes it."""
    if name not in TITLES:
        raise InputError(f"there is no {name!r}; there are {', '.join(TITLES)} and 'all'")
    every, title = tuple(SUBJECTS), TITLES[name]
    rows: tuple[Row, ...]
    match name:
        case "table1":
            cost = ("parameters", "seconds")
            return Piece(name, title, COST_ROWS, {"fashion-mnist": cost, "synthetic-msi": cost})
        case "table2":
            labelled = [d for d in every if SUBJECTS[d].labelled]
            metrics = _metrics(labelled, ("linear", "graph"), ())
            return Piece(name, title, METHOD_ROWS, metrics)
        case "table3":
            return Piece(name, title, METHOD_ROWS, _metrics(every, ("mine",), ("mine",)))
        case "table4":
            metrics = _metrics(every, ("acc", "nmi", "ari"), ("rss",))
            return Piece(name, title, METHOD_ROWS, metrics)
        case "table5" | "table6":
            rows = VIEW_ROWS if name == "table5" else NORM_ROWS
            return Piece(name, title, rows, _metrics(budget.ablations, ("linear",), ("rss",)))
        case "fig2" | "fig3":
            return Piece(name, title, (_ours("ours"),), {"fsdd": ()}, "transport", False)
        case "fig4":
            aae = Row("AAE", (Variant("aae", {"batch_norm": True}),))
            rows = (_ours("Ours (paper's recipe)"), aae)
            return Piece(name, title, rows, {"fsdd": ()}, "layout", False)
        case "fig5":
            rows = tuple(_with_prototypes(k) for k in budget.prototypes)
            return Piece(name, title, rows, _metrics(budget.sweeps, ("linear",), ("rss",)))
        case "fig6":
            rows = tuple(_ours(f"length {i + 1}", epsilon=i) for i in _spread(budget.lengths))
            return Piece(name, title, rows, _metrics(budget.sweeps, ("linear",), ("rss",)))
    return Piece(name, title, TEMPERATURE_ROWS, {"20news": ()}, "layout", False)


def _with_prototypes(k: int) -> Row:
    # The paper's k is the default, and the run that every other table shares.
    return _ours(str(k)) if k == 100 else _ours(str(k), n_prototypes=k)


def _spread(count: int) -> tuple[int, ...]:
    """Which of the five lengths of figure 6, evenly from the first."""
    return tuple(range(0, 5, 1 if count >= 5 else 4 // max(1, count - 1)))[:count]


TITLES = {
    "table1": "Parameters and seconds an epoch",
    "table2": "Linear and graph accuracy",
    "table3": "Mutual information by MINE, nats",
    "table4": "k-means agreement; linear regression on MSI",
    "table5": "The views: none (NP), random (RP), both (RP+VAT), adversarial (VAT)",
    "table6": "Batch norm: none, in the encoder, in the head (classifier), in both",
    "fig2": "A prediction and its targets for several temperatures",
    "fig3": "Entropy of the targets over the temperature",
    "fig4": "t-SNE of ours and AAE on FSDD, by digit and by speaker",
    "fig5": "The number of prototypes k",
    "fig6": "The length epsilon of an adversarial step",
    "fig7": "t-SNE of 20news at constant temperatures and the adaptive one",
}


def datasets_of(piece: Piece, asked: Sequence[str] | None) -> list[str]:
    """The piece's datasets, narrowed to those asked for; further ones join by name only."""
    if asked is None:
        return list(piece.metrics)
    return [d for d in KNOWN if d in asked and (d in piece.metrics or d in FURTHER)]


def columns_of(piece: Piece, asked: Sequence[str] | None = None) -> list[Column]:
    """The columns of a table or sweep, grouped by metric where all datasets share several."""
    datasets = datasets_of(piece, asked)
    like = next((m for d, m in piece.metrics.items() if KNOWN[d].labelled), ())
    pairs = [(d, metric) for d in datasets for metric in piece.metrics.get(d, like)]
    if piece.name == "table2":
        pairs.sort(key=lambda pair: ("linear", "graph").index(pair[1]))
    # The generated image has the paper's number of bins: in table 1 it is the paper's MSI.
    as_msi = {"synthetic-msi": "msi"} if piece.name == "table1" else {}
    return [Column(d, m, as_msi.get(d, KNOWN[d].paper)) for d, m in pairs]


def rows_of(piece: Piece, methods: Sequence[str] | None = None) -> list[Row]:
    """The rows of a piece that belong to the methods asked for."""
    return [r for r in piece.rows if methods is None or r.variants[0].method in methods]


def seeds_of(
    piece: Piece, dataset: str, budget: Budget, seeds: Sequence[int] | None
) -> Sequence[int]:
    """Seeds of a piece on a dataset: those asked for, or the budget's."""
    if not piece.default_seeds:
        return (seeds[0],) if seeds else (0,)
    if seeds is not None:
        return seeds
    if piece.name == "table1":
        return range(budget.timing.seeds)
    if piece.name in SWEEPS:
        return range(budget.sweep_seeds)
    every = budget.effort(dataset).seeds
    return range(budget.ablation_seeds or every if piece.name in ABLATIONS else every)


def fit_of(piece: Piece, variant: Variant, dataset: str, seed: int, budget: Budget) -> Fit:
    """The run that a cell needs."""
    method, subject = METHODS[variant.method], KNOWN[dataset]
    effort = budget.timing if piece.name == "table1" else budget.effort(dataset)
    settings = dict(variant.settings)
    if settings.get("recipe") == "paper":
        choice = settings.get("epsilon")
        # Figure 6 counts its lengths; each dataset has its own.
        settings["epsilon"] = (
            subject.epsilon
            if choice is None
            else subject.sweep[min(int(choice), len(subject.sweep) - 1)]
        )
    if method.learned and variant.method != "selfview" and budget.baselines != "selfview":
        settings["recipe"] = budget.baselines
    if subject.images and variant.method in AUTOENCODERS:
        settings["encoder"] = "cnn"  # the paper's, as its own recipe takes
    if method.sampled and (sample := budget.sample_rows(dataset, subject.rows)) is not None:
        settings["fit_rows"] = sample
    rows, epochs = effort.rows or subject.rows, None
    if method.learned:
        epochs = effort.epochs
        if piece.name != "table1":
            epochs = budget.epochs(dataset, variant.method, piece.name)
            fewer = budget.fewer_rows.get((dataset, variant.method), rows)
            # As many steps on fewer rows.
            rows, epochs = fewer, round(epochs * rows / fewer)
    cut = rows if rows < subject.rows else None
    return Fit(dataset, variant.method, tuple(sorted(settings.items())), seed, epochs, cut)
