"""How much is run: epochs, rows, seeds and sweep points for each dataset, to fit a time."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from selfview.errors import InputError


@dataclass(frozen=True)
class Effort:
    """What is spent on one dataset."""

    epochs: int
    seeds: int
    rows: int | None = None  # None: all; a sample is the same for every method and seed


@dataclass(frozen=True)
class Budget:
    """What is spent on the whole.

    `shares` are of the dataset's epochs, for methods whose epoch costs many times that of the
    others; `longer` are multiples of them, for a figure on a dataset; `sweep_share` is
    the share for figures 5 and 6. `fewer_rows` are for a method on a dataset, which then gets as
    many steps as the others. `fit_rows` is the sample that LLE and Isomap are fitted to on larger
    data. `baselines` is the recipe of those that learn by gradient steps. `only_normed` are
    datasets on which autoencoders are trained with batch norm only; on others without it too, with
    `unnormed_seeds`. `ablation_seeds` are those of tables 5 and 6. None is as many as elsewhere.
    """

    name: str
    about: str
    efforts: Mapping[str, Effort]
    prototypes: tuple[int, ...]  # the k of figure 5
    sweeps: tuple[str, ...]  # datasets of figures 5 and 6
    sweep_seeds: int
    ablations: tuple[str, ...]  # datasets of tables 5 and 6
    fit_rows: int | None
    timing: Effort  # of table 1
    shares: Mapping[str, float] = field(default_factory=dict)
    longer: Mapping[tuple[str, str], int] = field(default_factory=dict)
    baselines: str = "selfview"
    only_normed: tuple[str, ...] = ()
    unnormed_seeds: int | None = None
    ablation_seeds: int | None = None
    sweep_share: float = 1.0
    fewer_rows: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def effort(self, dataset: str) -> Effort:
        """What is spent on a dataset; on one that isn't the paper's, as on FSDD."""
        return self.efforts.get(dataset, self.efforts["fsdd"])

    def epochs(self, dataset: str, method: str, piece: str = "") -> int:
        """Epochs of a method that learns by gradient steps, for a table or figure."""
        share = self.shares.get(method, 1.0)
        if piece in ("fig5", "fig6"):
            share *= self.sweep_share
        share *= self.longer.get((piece, dataset), 1)
        return max(1, math.ceil(self.effort(dataset).epochs * share))

    def sample_rows(self, dataset: str, rows: int) -> int | None:
        """Rows that LLE and Isomap are fitted to, or None for all there are."""
        used = min(rows, self.effort(dataset).rows or rows)
        return self.fit_rows if self.fit_rows is not None and self.fit_rows < used else None


_EVERY = ("mnist", "fashion-mnist", "reuters", "20news", "fsdd", "msi")

SMOKE = Budget(
    "smoke",
    "seconds a run: shows that everything works, and nothing else",
    efforts=dict.fromkeys(_EVERY, Effort(epochs=2, seeds=1, rows=240)),
    prototypes=(50, 100),
    sweeps=_EVERY,
    sweep_seeds=1,
    ablations=_EVERY,
    fit_rows=None,
    timing=Effort(epochs=2, seeds=1, rows=240),
)

LAPTOP = Budget(
    "laptop",
    "an evening on one core with AVX2: to try it, too short for the paper's numbers",
    # 500 to 800 steps of 256 rows for the perceptrons, 160 for the convolutions, whose
    # step costs several times as much.
    efforts={
        "mnist": Effort(epochs=5, seeds=1, rows=8_000),
        "fashion-mnist": Effort(epochs=5, seeds=1, rows=8_000),
        "reuters": Effort(epochs=20, seeds=1),
        "20news": Effort(epochs=8, seeds=1),
        "fsdd": Effort(epochs=40, seeds=1),
        "msi": Effort(epochs=14, seeds=1, rows=15_000),
    },
    prototypes=(50, 100, 200, 500, 1000),
    sweeps=("reuters", "fsdd"),
    sweep_seeds=1,
    ablations=("reuters", "fsdd"),
    fit_rows=5_000,
    timing=Effort(epochs=4, seeds=1, rows=2_560),
    shares={"cpc": 0.25},
    only_normed=("mnist", "fashion-mnist", "reuters", "20news"),
)

CONVERGED = Budget(
    "converged",
    "days on one core with AVX2: the paper's schedule, cut off where its curves have become flat",
    efforts={
        "mnist": Effort(epochs=15, seeds=1),
        "fashion-mnist": Effort(epochs=15, seeds=1),
        "reuters": Effort(epochs=150, seeds=3),
        "20news": Effort(epochs=100, seeds=3),
        "fsdd": Effort(epochs=200, seeds=3),  # its curve, of 400, is flat from there on
        "msi": Effort(epochs=200, seeds=3, rows=13_320),  # as many as the paper's
    },
    prototypes=(50, 100, 200, 500, 1000),
    sweeps=("reuters", "fsdd"),
    sweep_seeds=1,
    sweep_share=1 / 3,
    ablations=("reuters", "fsdd"),
    ablation_seeds=2,
    fit_rows=17_100,  # all posts of 20news; their distances take 2.3 GB
    timing=Effort(epochs=4, seeds=1, rows=2_560),
    shares={"cpc": 0.1},
    longer={("curve-norms", "fsdd"): 4}
    | {(piece, "fsdd"): 2 for piece in ("curve", "fig5", "fig6")},
    baselines="paper",
    only_normed=("mnist", "fashion-mnist", "20news", "msi"),
    unnormed_seeds=1,
    fewer_rows={
        (dataset, method): 20_000
        for dataset in ("mnist", "fashion-mnist")
        for method in ("aae", "sae", "vae")
    },
)

PAPER = Budget(
    "paper",
    "as printed: 5,000 epochs, five seeds, all rows; for many machines with GPUs",
    efforts=dict.fromkeys(_EVERY, Effort(epochs=5000, seeds=5)),
    prototypes=(50, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000),
    sweeps=_EVERY,
    sweep_seeds=5,
    ablations=_EVERY,
    fit_rows=None,
    timing=Effort(epochs=10, seeds=1),
    longer={("fig7", "20news"): 2},
    baselines="paper",
)

BUDGETS = {budget.name: budget for budget in (SMOKE, LAPTOP, CONVERGED, PAPER)}


def budget_of(name: str) -> Budget:
    """The budget of that name, or an error that lists them."""
    if name not in BUDGETS:
        raise InputError(f"no budget is called {name!r}; there are {', '.join(BUDGETS)}")
    return BUDGETS[name]
