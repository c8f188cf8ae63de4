"""`selfview paper list | run | show`: the paper's tables and figures."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from selfview.paper.plan import Choice

app = typer.Typer(
    help="The paper's tables and figures: what there is, running them, showing them.",
    no_args_is_help=True,
)

What = Annotated[
    str, typer.Argument(help="table1 ... table6, fig2 ... fig7, curve, 'all', or several.")
]
BudgetName = Annotated[str, typer.Option("--budget", help="smoke, laptop, converged or paper.")]
Datasets = Annotated[str | None, typer.Option(help="Only these, with commas: fsdd,reuters.")]
Methods = Annotated[str | None, typer.Option(help="Only these, with commas: pca,ae,selfview.")]
Seeds = Annotated[str | None, typer.Option(help="How many (3), or which (0,2).")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Folder of records and renders; results for converged, else runs/BUDGET.",
    ),
]


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="As in run; everything without it.")] = "all",
    budget: BudgetName = "laptop",
    datasets: Datasets = None,
    methods: Methods = None,
    seeds: Seeds = None,
    out: Out = None,
) -> None:
    """List the tables and figures, what is done, and how long the rest will take.

    Example: selfview paper list --budget laptop
    """
    from selfview.paper.overview import overview
    from selfview.paper.plan import names_of
    from selfview.paper.records import read_shelf

    choice = _choice(budget, datasets, methods, seeds)
    shelf = read_shelf(_folder(out, budget))
    for problem in shelf.problems:
        typer.echo(f"selfview: {problem}", err=True)
    with _usage_errors():
        names = names_of(what)
    typer.echo(overview(names, choice, shelf))


@app.command("run")
def run(
    what: What,
    budget: BudgetName = "laptop",
    datasets: Datasets = None,
    methods: Methods = None,
    seeds: Seeds = None,
    out: Out = None,
    work: Annotated[
        Path, typer.Option(help="Folder of embeddings and checkpoints; not to be committed.")
    ] = Path("runs/paper"),
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Every run's progress.")] = False,
) -> None:
    """Train and measure what is not on record yet; a second call does only what is missing.

    Several processes share the work if each is started with the same command.

    Example: selfview paper run table5 --datasets fsdd --budget smoke
    """
    from selfview.paper.overview import seconds
    from selfview.paper.plan import jobs_of, names_of, plural
    from selfview.training.progress import duration

    choice = _choice(budget, datasets, methods, seeds)
    folder = _folder(out, budget)
    with _usage_errors():
        jobs = jobs_of(names_of(what), choice)
    if not jobs:
        raise typer.BadParameter("no run of WHAT is on these datasets and of these methods")

    def say(line: str) -> None:
        typer.echo(line, err=True)

    about = duration(sum(map(seconds, jobs)))
    say(
        f"{plural(len(jobs), 'run')}, about {about} on one core if none were done; "
        f"records go to {folder}"
    )
    from selfview.paper.running import run as run_jobs

    outcome = run_jobs(jobs, folder, work, budget=budget, say=say, verbose=int(verbose))
    say(
        f"{outcome.done} done now, {outcome.before} before, {outcome.failed} failed"
        + (f", {outcome.busy} with another process" if outcome.busy else "")
    )
    for reason in outcome.unavailable:
        typer.echo(f"selfview: {reason}", err=True)
    if outcome.failed or outcome.unavailable:
        raise typer.Exit(1)


@app.command("show")
def show(
    what: What,
    budget: Annotated[
        str | None, typer.Option(help="As in run; that of the folder's records without it.")
    ] = None,
    datasets: Datasets = None,
    methods: Methods = None,
    seeds: Seeds = None,
    out: Out = None,
    formats: Annotated[
        str, typer.Option("--format", help="Files to write, of md, csv, tex, png, svg.")
    ] = "md,csv,tex,png",
) -> None:
    """Render tables and figures from the records, beside the paper's numbers. Trains nothing.

    Files go to the folder of the records; 'all' also writes its README.md. With --datasets,
    --methods or --seeds they go to its subfolder narrowed, and leave the others as they are.

    Example: selfview paper show table2
    """
    from selfview.paper.formats import printed
    from selfview.paper.page import render
    from selfview.paper.plan import names_of
    from selfview.paper.records import RECORDS, read_shelf

    if budget is None:
        out = out or _folder(None, "converged")
        budget = read_shelf(out).budget()
    choice = _choice(budget, datasets, methods, seeds)
    kinds = [kind.strip() for kind in formats.split(",") if kind.strip()]
    known = ("md", "csv", "tex", "png", "svg")
    if unknown := [kind for kind in kinds if kind not in known]:
        raise typer.BadParameter(
            f"{unknown[0]!r} is not of {', '.join(known)}", param_hint="--format"
        )
    with _usage_errors():
        names = names_of(what)
    folder = _folder(out, budget)
    page = render(names, choice, folder, kinds, whole="all" in what.split(","))
    for problem in page.problems:
        typer.echo(f"selfview: {problem}", err=True)
    for shown in page.shown:
        typer.echo(printed(*shown))
    if not (folder / RECORDS).is_file():
        typer.echo(f"selfview: there are no records in {folder}; nothing is written", err=True)
        raise typer.Exit(1)
    typer.echo(f"{page.write()} files are in {page.folder}", err=True)


def _choice(budget: str, datasets: str | None, methods: str | None, seeds: str | None) -> "Choice":
    from selfview.paper.budgets import budget_of
    from selfview.paper.plan import Choice, parse_seeds

    with _usage_errors():
        known, numbers = budget_of(budget), parse_seeds(seeds)
        choice = Choice(known, _names(datasets), _names(methods), numbers)
        choice.check()
    return choice


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _folder(out: Path | None, budget: str) -> Path:
    from selfview.paper.records import home_of

    return out or home_of(budget)


@contextmanager
def _usage_errors() -> Iterator[None]:
    """An input error within it is a wrong call, with exit code 2."""
    from selfview.errors import InputError

    try:
        yield
    except InputError as error:
        raise typer.BadParameter(str(error)) from error
