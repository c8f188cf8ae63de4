"""Every table and figure of the paper as data: its rows, its datasets and its measures.

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
from selfview.paper.datasets import DATASETS, KNOWN
from selfview.paper.methods import METHODS

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
        version = METHODS[self.method].version
        about = [FORMAT, asdict(self), *([version] if version > 1 else [])]
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]

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

    @property
    def method(self) -> str:
        """Its name for `--methods`: "ours" is the paper's recipe, "selfview" our default."""
        first = self.variants[0]
        return OURS if first.settings.get("recipe") == "paper" else first.method


@dataclass(frozen=True)
class Column:
    """A column of a table: a metric on a dataset."""

    dataset: str
    metric: str
    printed: str | None  # the dataset's name among the paper's numbers


@dataclass(frozen=True)
class Piece:
    """A table or figure: its rows, and the metrics of its columns by dataset."""

    name: str
    title: str
    rows: tuple[Row, ...]
    metrics: Mapping[str, tuple[str, ...]]
    drawn: str | None = None  # the measure that a picture of one seed draws, in place of metrics

    @property
    def is_table(self) -> bool:
        return self.name.startswith("table")


OURS = "ours"
AUTOENCODERS = ("ae", "aae", "sae", "dae", "vae")


def _ours(title: str, printed: str | None = None, **changes: Any) -> Row:
    return Row(title, (Variant("selfview", {"recipe": "paper", **changes}),), printed)


def _plain(name: str) -> Row:
    """A row of every variant of a method, under the paper's name."""
    variants = METHODS[name].variants.values()
    return Row(name.upper(), tuple(Variant(name, settings) for settings in variants), name.upper())


METHOD_ROWS = (
    *map(_plain, ("pca", "nmf", "lle", "isomap", *AUTOENCODERS, "cpc")),
    _ours("Ours (paper's recipe)", "Ours"),
    Row("Ours (our default)", (Variant("selfview"),)),
    Row("UMAP", (Variant("umap"),)),
    Row("raw features", (Variant("raw"),)),
)
COST_ROWS = (Row("AEs", (Variant("ae"),), "AEs"), _plain("cpc"), _ours("Ours", "Ours"))
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
AAE_ROW = Row("AAE", (Variant("aae", {"batch_norm": True}),))

CURVE_ROWS = (_ours("Ours", "Ours"), Row("AE", (Variant("ae", {"batch_norm": True}),), "AE"))

TITLES = {
    "table1": "Parameters and seconds an epoch",
    "table2": "Linear and graph accuracy",
    "table3": "Mutual information by MINE, nats",
    "table4": "k-means agreement, the best of the last ten epochs; linear regression on MSI",
    "table4-last": "k-means agreement of the last epoch alone (not in the paper)",
    "table5": "The views: none (NP), random (RP), both (RP+VAT), adversarial (VAT)",
    "table6": "Batch norm: none, in the encoder, in the head (classifier), in both",
    "fig2": "A prediction and its targets for several temperatures",
    "fig3": "Entropy of the targets over the temperature",
    "fig4": "t-SNE of ours and AAE on FSDD, by digit and by speaker",
    "fig5": "The number of prototypes k",
    "fig6": "The length epsilon of the adversarial perturbation",
    "fig7": "t-SNE of 20news at constant temperatures and the adaptive one",
    "curve": "The linear probe over the epochs of the paper's recipe (not in the paper)",
    "curve-norms": "The same without batch norm in the encoder, for longer (not in the paper)",
}
LATE = ("No-BN", "CL-BN")  # rows of table 6 that may learn later than the others
ABLATIONS, SWEEPS = ("table5", "table6"), ("fig5", "fig6")


def piece_of(name: str, budget: Budget) -> Piece:
    """A table or figure, as large as the budget makes it."""
    if name not in TITLES:
        raise InputError(f"there is no {name!r}; there are {', '.join(TITLES)} and 'all'")
    every, cost = tuple(DATASETS), ("parameters", "seconds")
    labelled = [dataset for dataset in every if DATASETS[dataset].labelled]
    # The paper's k and epsilon are the defaults, and the run that every other table shares.
    by_k = [_ours(str(k)) if k == 100 else _ours(str(k), n_prototypes=k) for k in budget.prototypes]
    by_epsilon = [_ours(f"length {i + 1}", epsilon=i) for i in range(5)]
    found: dict[str, tuple[Any, ...]] = {  # rows, metrics by dataset, what a picture draws
        "table1": (COST_ROWS, {"fashion-mnist": cost, "synthetic-msi": cost}),
        "table2": (METHOD_ROWS, _metrics(labelled, ("linear", "graph"))),
        "table3": (METHOD_ROWS, _metrics(every, ("mine",), ("mine",))),
        "table4": (METHOD_ROWS, _metrics(every, ("acc", "nmi", "ari"))),
        "table4-last": (METHOD_ROWS, _metrics(labelled, ("last acc", "last nmi", "last ari"))),
        "table5": (VIEW_ROWS, _metrics(budget.ablations, ("linear",))),
        "table6": (NORM_ROWS, _metrics(budget.ablations, ("linear",))),
        "fig2": ((_ours("ours"),), {"fsdd": ()}, "transport"),
        "fig3": ((_ours("ours"),), {"fsdd": ()}, "transport"),
        "fig4": ((_ours("Ours (paper's recipe)"), AAE_ROW), {"fsdd": ()}, "layout"),
        "fig5": (tuple(by_k), _metrics(budget.sweeps, ("linear",))),
        "fig6": (tuple(by_epsilon), _metrics(budget.sweeps, ("linear",))),
        "fig7": (TEMPERATURE_ROWS, {"20news": ()}, "layout"),
        "curve": (CURVE_ROWS, dict.fromkeys(budget.sweeps, ()), "curve"),
        "curve-norms": (
            tuple(row for row in NORM_ROWS if row.title in LATE),
            {"fsdd": ()},
            "curve",
        ),
    }
    return Piece(name, TITLES[name], *found[name])


def _metrics(
    names: Iterable[str], labelled: Sequence[str], others: Sequence[str] = ("rss",)
) -> dict[str, tuple[str, ...]]:
    return {name: tuple(labelled if KNOWN[name].labelled else others) for name in names}
