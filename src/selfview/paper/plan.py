"""From tables and figures to jobs: each fit once, with all measures that are wanted of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from selfview.errors import InputError
from selfview.paper.budgets import Budget
from selfview.paper.datasets import FURTHER, KNOWN
from selfview.paper.grid import (
    ABLATIONS,
    AUTOENCODERS,
    OURS,
    SWEEPS,
    TITLES,
    Column,
    Fit,
    Piece,
    Row,
    Variant,
    piece_of,
)
from selfview.paper.methods import METHODS
from selfview.paper.metrics import ARRAY_MEASURES, METRICS, VERSIONS
from selfview.paper.records import Shelf, read_arrays


def plural(count: int, noun: str) -> str:
    """A number of things in words.

    >>> plural(1, "seed"), plural(2000, "run")
    ('1 seed', '2,000 runs')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


@dataclass(frozen=True)
class Choice:
    """The part of the grid that the options leave; None is everything that the budget says."""

    budget: Budget
    datasets: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    seeds: Sequence[int] | None = None

    def check(self) -> None:
        """Raise InputError for unknown names."""
        for asked, known in ((self.datasets, KNOWN), (self.methods, (OURS, *METHODS))):
            for name in asked or ():
                if name not in known:
                    raise InputError(f"{name!r} is not known; there are {', '.join(known)}")
        if self.datasets == [] or self.methods == []:
            raise InputError("name at least one dataset or method, or leave the option out")

    @property
    def narrowed(self) -> bool:
        """Is it less than the budget says?"""
        return any(given is not None for given in (self.datasets, self.methods, self.seeds))

    def options(self) -> str:
        """What a command needs to make the same choice, but for the datasets."""
        given = {"methods": self.methods, "seeds": self.seeds}
        # One number would be how many: which one has a comma behind it.
        named = {
            name: ",".join(map(str, v)) + "," * (len(v) == 1) for name, v in given.items() if v
        }
        return "".join(f" --{name} {value}" for name, value in named.items())

    def piece(self, name: str) -> Piece:
        """A table or figure."""
        return piece_of(name, self.budget)

    def datasets_of(self, piece: Piece) -> list[str]:
        """Its datasets, narrowed to those asked for; those that the paper lacks join by name."""
        if self.datasets is None:
            return list(piece.metrics)
        return [d for d in KNOWN if d in self.datasets and (d in piece.metrics or d in FURTHER)]

    def columns(self, piece: Piece) -> list[Column]:
        """Its columns, in table 2 grouped by metric as in the paper."""
        like = next((m for d, m in piece.metrics.items() if KNOWN[d].labelled), ())
        pairs = [(d, m) for d in self.datasets_of(piece) for m in piece.metrics.get(d, like)]
        if piece.name == "table2":
            pairs.sort(key=lambda pair: ("linear", "graph").index(pair[1]))
        # The generated image has the paper's number of bins: in table 1 it is the paper's MSI.
        as_msi = {"synthetic-msi": "msi"} if piece.name == "table1" else {}
        return [Column(d, m, as_msi.get(d, KNOWN[d].paper)) for d, m in pairs]

    def rows(self, piece: Piece) -> list[Row]:
        """Its rows of the methods asked for."""
        return [row for row in piece.rows if self.methods is None or row.method in self.methods]

    def fits(self, piece: Piece, row: Row, dataset: str) -> list[list[Fit]]:
        """The fits of a cell: for every variant of its row one for every seed."""
        budget = self.budget
        seeds = self._seeds(piece, dataset)
        # The first variant is with batch norm, the second without.
        variants = row.variants[:1] if dataset in budget.only_normed else row.variants
        return [
            [
                self._fit(piece, variant, dataset, seed)
                for seed in (seeds[: budget.unnormed_seeds] if second else seeds)
            ]
            for second, variant in enumerate(variants)
        ]

    def _seeds(self, piece: Piece, dataset: str) -> Sequence[int]:
        """Seeds of a piece on a dataset: those asked for, or the budget's; one for a picture."""
        budget = self.budget
        count = budget.effort(dataset).seeds
        if piece.name == "table1":
            count = budget.timing.seeds
        elif piece.name in SWEEPS:
            count = budget.sweep_seeds
        elif piece.name in ABLATIONS:
            count = budget.ablation_seeds or count
        seeds = range(count) if self.seeds is None else self.seeds
        return seeds if piece.drawn is None else seeds[:1]

    def _fit(self, piece: Piece, variant: Variant, dataset: str, seed: int) -> Fit:
        """The run that a cell needs."""
        budget, method, about = self.budget, METHODS[variant.method], KNOWN[dataset]
        settings = dict(variant.settings)
        if settings.get("recipe") == "paper":
            # Figure 6 counts its lengths; each dataset has its own.
            number = settings.get("epsilon")
            last = len(about.sweep) - 1
            settings["epsilon"] = (
                about.epsilon if number is None else about.sweep[min(number, last)]
            )
        if method.learned and variant.method != "selfview" and budget.baselines != "selfview":
            settings.setdefault("recipe", budget.baselines)
        if about.images and variant.method in AUTOENCODERS:
            settings["encoder"] = "cnn"  # the paper's, as its own recipe takes
        if method.sampled and (sample := budget.sample_rows(dataset, about.rows)) is not None:
            settings["fit_rows"] = sample
        effort = budget.timing if piece.name == "table1" else budget.effort(dataset)
        rows, epochs = effort.rows or about.rows, effort.epochs
        if method.learned and piece.name != "table1":
            # As many steps on fewer rows.
            fewer = budget.fewer_rows.get((dataset, variant.method), rows)
            every = budget.epochs(dataset, variant.method, piece.name)
            epochs = max(1, round(every * rows / fewer))
            rows = fewer
        return Fit(
            dataset,
            variant.method,
            tuple(sorted(settings.items())),
            seed,
            epochs if method.learned else None,
            rows if rows < about.rows else None,
        )

    def effort(self, piece: Piece) -> str:
        """One line that says what was spent on a table or figure."""
        parts = []
        for dataset in self.datasets_of(piece):
            runs = [r for row in self.rows(piece) for r in self.fits(piece, row, dataset)]
            if not runs:
                continue
            most = max(fit.epochs or 0 for fits in runs for fit in fits)
            epochs = f"{most:,} epochs, " if most else ""
            rows = runs[0][0].rows or KNOWN[dataset].rows
            seeds = plural(len(runs[0]), "seed")
            parts.append(f"{KNOWN[dataset].title}: {epochs}{rows:,} rows, {seeds}")
        return f"budget {self.budget.name}; " + "; ".join(parts)


@dataclass(frozen=True)
class Job:
    """A fit, the measures wanted of it, and the piece that asked first."""

    fit: Fit
    measures: tuple[str, ...]
    piece: str


def names_of(what: str) -> list[str]:
    """The tables and figures that WHAT stands for.

    >>> names_of("table2,fig3")
    ['table2', 'fig3']
    """
    asked = [name.strip() for name in what.split(",") if name.strip()]
    unknown = [name for name in asked if name not in TITLES and name != "all"]
    if unknown or not asked:
        raise InputError(f"WHAT must be of {', '.join(TITLES)} or 'all', got {what!r}")
    return [name for name in TITLES if name in asked or "all" in asked]


def jobs_of(names: Iterable[str], choice: Choice) -> list[Job]:
    """The jobs of several tables and figures, each fit once, by dataset and then by seed."""
    jobs: dict[str, Job] = {}
    for name in names:
        for fit, measures in _wanted(choice.piece(name), choice):
            known = jobs.setdefault(fit.key, Job(fit, (), name))
            both = tuple(dict.fromkeys((*known.measures, *measures)))
            jobs[fit.key] = replace(known, measures=both)

    def order(job: Job) -> tuple[int, str, int, bool]:
        """By dataset, so that each is loaded once, the small ones first.

        Then the first seed of every method before the second of any, and autoencoders with batch
        norm before those without: so a table is soon whole.
        """
        second = dict(job.fit.settings).get("batch_norm") is False
        return KNOWN[job.fit.dataset].rows, job.fit.dataset, job.fit.seed, second

    return sorted(jobs.values(), key=order)


def _wanted(piece: Piece, choice: Choice) -> Iterator[tuple[Fit, tuple[str, ...]]]:
    columns = choice.columns(piece)
    for row in choice.rows(piece):
        for dataset in choice.datasets_of(piece):
            metrics = [METRICS[c.metric].measure for c in columns if c.dataset == dataset]
            measures = ("cost", *metrics) if piece.drawn is None else ("cost", piece.drawn)
            for fits in choice.fits(piece, row, dataset):
                yield from ((fit, measures) for fit in fits)


def missing(job: Job, shelf: Shelf) -> tuple[str, ...]:
    """The measures of a job that are not on record; all of them if its training isn't."""
    record = shelf.records.get(job.fit.key)
    if record is None or record.error:
        return job.measures
    wanted = []
    for name in job.measures:
        score = record.scores.get(name, {})
        good = score.get("version") == VERSIONS[name] and not score.get("error")
        if good and name in ARRAY_MEASURES:
            good = read_arrays(shelf.array_path(record.key, name), name) is not None
        wanted += [] if good else [name]
    return tuple(wanted)


def parse_seeds(text: str | None) -> list[int] | None:
    """How many seeds (a number), or which (numbers with commas).

    >>> parse_seeds("3"), parse_seeds("0,4"), parse_seeds("4,")
    ([0, 1, 2], [0, 4], [4])
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) < 2**31 for part in parts):
        raise InputError(f"--seeds must be a number of seeds or a list like 0,1,2, got {text!r}")
    numbers = list(dict.fromkeys(map(int, parts)))
    if "," in text:
        return numbers
    if not 1 <= numbers[0] <= 1000:
        raise InputError(f"--seeds must ask for 1 to 1000 seeds, got {text}")
    return list(range(numbers[0]))
