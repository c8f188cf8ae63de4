"""From tables and figures to jobs: each fit once, with all measures that anybody wants of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from selfview.errors import InputError
from selfview.paper.arrays import read_arrays
from selfview.paper.budgets import Budget
from selfview.paper.cost import measure_seconds, training_seconds
from selfview.paper.grid import (
    TITLES,
    Column,
    Fit,
    Piece,
    Row,
    columns_of,
    datasets_of,
    fit_of,
    piece_of,
    rows_of,
    seeds_of,
)
from selfview.paper.methods import METHODS
from selfview.paper.metrics import ARRAY_MEASURES, METRICS, VERSIONS
from selfview.paper.records import Shelf
from selfview.paper.subjects import KNOWN


@dataclass(frozen=True)
class Choice:
    """What the options narrow a grid to; None is everything that the budget says."""

    budget: Budget
    datasets: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    seeds: Sequence[int] | None = None

    def check(self) -> None:
        """Raise InputError for names that nobody knows."""
        for asked, known in ((self.datasets, KNOWN), (self.methods, METHODS)):
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

    def columns(self, piece: Piece) -> list[Column]:
        """Its columns."""
        return columns_of(piece, self.datasets)

    def datasets_of(self, piece: Piece) -> list[str]:
        """Its datasets."""
        return datasets_of(piece, self.datasets)

    def rows(self, piece: Piece) -> list[Row]:
        """Its rows."""
        return rows_of(piece, self.methods)

    def fits(self, piece: Piece, row: Row, dataset: str) -> list[list[Fit]]:
        """The fits of a cell: for every variant of its row one for every seed."""
        budget = self.budget
        seeds = seeds_of(piece, dataset, budget, self.seeds)
        # The first variant is with batch norm, the second without.
        variants = row.variants[:1] if dataset in budget.only_normed else row.variants
        return [
            [
                fit_of(piece, variant, dataset, seed, budget)
                for seed in (seeds[: budget.unnormed_seeds] if second else seeds)
            ]
            for second, variant in enumerate(variants)
        ]

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
            seeds = len(runs[0])
            parts.append(
                f"{KNOWN[dataset].title}: {epochs}{rows:,} rows, "
                f"{seeds} seed{'s' if seeds > 1 else ''}"
            )
        return f"budget {self.budget.name}; " + "; ".join(parts)


@dataclass(frozen=True)
class Job:
    """A fit, the measures wanted of it, and the piece that asked first."""

    fit: Fit
    measures: tuple[str, ...]
    piece: str

    @property
    def seconds(self) -> float:
        """How long it will take on one core, from nothing."""
        return training_seconds(self.fit) + sum(measure_seconds(self.fit, m) for m in self.measures)


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
    """The jobs of several tables and figures, each fit once, grouped by dataset."""
    jobs: dict[str, Job] = {}
    for name in names:
        for fit, measures in _wanted(choice.piece(name), choice):
            known = jobs.setdefault(fit.key, Job(fit, (), name))
            both = tuple(dict.fromkeys((*known.measures, *measures)))
            jobs[fit.key] = replace(known, measures=both)
    # By dataset, so that each is loaded once; the small ones first, whose results come soon.
    size: dict[str, float] = {}
    for job in jobs.values():
        size[job.fit.dataset] = size.get(job.fit.dataset, 0.0) + job.seconds
    return sorted(jobs.values(), key=lambda job: (size[job.fit.dataset], job.fit.dataset))


def _wanted(piece: Piece, choice: Choice) -> Iterator[tuple[Fit, tuple[str, ...]]]:
    columns = choice.columns(piece)
    for row in choice.rows(piece):
        for dataset in choice.datasets_of(piece):
            metrics = [METRICS[c.metric].measure for c in columns if c.dataset == dataset]
            measures = ("cost", *metrics) if piece.arrays is None else ("cost", piece.arrays)
            for fits in choice.fits(piece, row, dataset):
                for fit in fits:
                    yield fit, measures


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


def shard(jobs: Sequence[Job], number: int, count: int) -> list[Job]:
    """The jobs of shard `number` of `count` (from 1), so that all take about as long.

    The longest job goes to the shard that has the least so far: every machine that is given the
    same grid comes to the same division without asking the others.
    """
    loads = [0.0] * count
    mine = set()
    for job in sorted(jobs, key=lambda job: (-job.seconds, job.fit.key)):
        least = loads.index(min(loads))
        loads[least] += job.seconds
        if least == number - 1:
            mine.add(job.fit.key)
    return [job for job in jobs if job.fit.key in mine]


def parse_shard(text: str | None) -> tuple[int, int]:
    """`i/n` as two numbers.

    >>> parse_shard("2/3")
    (2, 3)
    """
    if text is None:
        return 1, 1
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise InputError(f"--shard must be i/n with i from 1 to n, got {text!r}")
    return int(number), int(count)


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
