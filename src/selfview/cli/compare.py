"""`selfview compare`: many methods on the same rows, in one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from selfview.cli import complete
from selfview.cli.options import (
    FILES,
    READING,
    Data,
    Seed,
    Target,
    add_options,
    given,
    known_target,
    number_or_word,
)
from selfview.cli.paths import check_data, check_folder, check_values

if TYPE_CHECKING:
    from selfview.data import Dataset
    from selfview.report.comparison import Table


def compare(
    data: Data,
    methods: Annotated[
        str,
        typer.Option(
            help="'all', or names with commas between: pca, ae, selfview, umap, pacmap.",
            autocompletion=complete.methods,
        ),
    ] = "all",
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            "--label",
            help="A file of labels, or the column or array of DATA that holds them.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Folder for records and table; finished work in it is not repeated."
        ),
    ] = Path("comparison"),
    components: Annotated[int, typer.Option(min=1, help="Length of every embedding.")] = 10,
    epochs: Annotated[
        str, typer.Option(help='Of the methods that learn by steps, or "auto".')
    ] = "auto",
    measures: Annotated[
        str | None,
        typer.Option(help="'all', 'paper' or names with commas between: linear, clustering."),
    ] = None,
    fit_rows: Annotated[
        int | None, typer.Option(min=2, help="Fit LLE and Isomap to a sample of so many rows.")
    ] = None,
    target: Target = "auto",
    limit: Annotated[
        int | None, typer.Option(min=2, help="Take so many rows of DATA, drawn at random.")
    ] = None,
    seed: Seed = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda ...")] = "auto",
    report: Annotated[
        Path | None, typer.Option(help="Also write this HTML page: all embeddings side by side.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    **reading: Any,
) -> None:
    """Fit several methods to the same rows, without labels, and judge them alike.

    Example: selfview compare digits --methods pca,ae,selfview --epochs 50
    """
    check_data(data)
    check_values(labels)
    check_folder(out)
    import numpy as np

    from selfview.cli.comparison import Settings, chosen
    from selfview.cli.comparison import compare as run
    from selfview.cli.interrupt import exit_on_interrupt
    from selfview.errors import InputError
    from selfview.evaluation.inputs import check_target
    from selfview.evaluation.split import random_fifth
    from selfview.report.comparison import markdown, tabulate
    from selfview.saving.files import write_bytes

    try:
        names = chosen([name.strip() for name in methods.split(",") if name.strip()])
    except InputError as error:
        raise typer.BadParameter(str(error), param_hint="--methods") from error
    passes = number_or_word(epochs)
    if passes != "auto" and not (isinstance(passes, int) and passes >= 1):
        raise typer.BadParameter(
            f"a number of at least 1 or 'auto', not {epochs}", param_hint="--epochs"
        )
    dataset = _labelled(data, labels, given(**reading), target)
    if limit is not None and limit < len(dataset):
        chance = np.random.default_rng(seed)
        dataset = dataset.take(np.sort(chance.permutation(len(dataset))[:limit]))
    y, split = cast(Any, (dataset.y, dataset.split))
    kind = check_target(y, len(y), known_target(target)).kind
    if kind == "continuous" and split is None and np.ndim(y) == 1:
        # As many features as rows fit any measurement by heart. (The paper's tissue, whose target
        # has three colours, is scored on its own rows.)
        split = random_fifth(len(y))
    settings = Settings(
        n_components=components,
        epochs=passes,
        seed=seed,
        measures=_measures(measures, kind),
        target=kind,
        fit_rows=fit_rows,
        device=device,
    )

    def say(line: str) -> None:
        if not quiet:
            typer.echo(line, err=True)

    kept = f"interrupted; what is done is in {out}, and the same command goes on from there"
    with exit_on_interrupt(lambda: kept):
        records = run(dataset.X, y, names, settings=settings, split=split, folder=out, say=say)
    table = tabulate(records)
    write_bytes(out / "table.md", markdown(table).encode())
    show(table)
    if report is not None:
        _write_page(report, out, table, records, dataset, seed)
        say(f"all embeddings side by side: {report}")
    say(f"records and table are in {out}")


def _labelled(data: str, labels: str | None, options: dict[str, Any], target: str) -> "Dataset":
    """The dataset, with labels from it or from their own file."""
    from dataclasses import replace

    from selfview.data import read
    from selfview.data.label_files import labels_of_file
    from selfview.data.labels import as_measurements
    from selfview.errors import InputError

    own_file = labels is not None and Path(labels).is_file()
    if labels is not None and not own_file:
        options = {**options, "label": labels}
    dataset = read(data, **options)
    y, names = labels_of_file(Path(str(labels))) if own_file else (dataset.y, dataset.classes)
    if y is None:
        raise InputError(
            f"{data} has no labels to judge by: name a file, or a column of it, with --labels"
        )
    if len(y) != len(dataset):
        raise InputError(f"{labels} holds {len(y)} labels for {len(dataset)} rows")
    if target == "continuous":
        return replace(dataset, y=as_measurements(y, names), classes=())
    return replace(dataset, y=y, classes=names)


def _write_page(
    path: Path, out: Path, table: "Table", records: Any, dataset: "Dataset", seed: int
) -> None:
    """The page of the comparison, of all methods whose embedding is at hand."""
    from selfview.cli.comparison import RAW, kept_embedding
    from selfview.report.comparison import shown_records
    from selfview.report.side_by_side import comparison_page
    from selfview.saving.files import write_bytes

    done = [record for record in shown_records(records) if not record.error]
    found = {r.title: dataset.X if r.method == RAW else kept_embedding(out, r) for r in done}
    embeddings = {title: Z for title, Z in found.items() if Z is not None}
    about = (dataset.y, dataset.classes, dataset.ids)
    page = comparison_page(dataset.name, table, embeddings, *about, seed=seed)
    write_bytes(path, page.encode("utf-8", "replace"))


def _measures(asked: str | None, kind: str) -> tuple[str, ...]:
    """Names of measures that fit the labels, before anything is fitted."""
    from selfview.evaluation.measures import chosen_measures

    if asked is None:
        return ("linear", "clustering") if kind == "classes" else ("regression",)
    names = [name.strip() for name in asked.split(",") if name.strip()]
    return tuple(chosen_measures(names[0] if len(names) == 1 else names, kind))


def show(table: "Table") -> None:
    """Print a table; the best of every column is bold, in a file it has a star."""
    from rich.console import Console
    from rich.table import Table as Drawn
    from rich.text import Text

    from selfview.report.comparison import plain

    console = Console()
    if not console.is_terminal:
        typer.echo(plain(table))
        return
    drawn = Drawn(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(table.headings):
        drawn.add_column(heading, justify="right" if number else "left")
    for row in table.rows:
        drawn.add_row(*(Text(cell.text, style="bold" if cell.best else "") for cell in row))
    console.print(drawn)
    for line in table.footnotes:
        console.print(Text(line))


_OWN = ("label", "groups", "groups_from_name")  # --labels is an option of its own
add_options(compare, FILES, {name: READING[name] for name in READING if name not in _OWN})
