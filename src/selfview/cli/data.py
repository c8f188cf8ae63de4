"""`selfview data list | get | check`."""

import typer

from selfview.cli import complete

app = typer.Typer(
    help="The named datasets: what there is, fetching them, checking them.",
    no_args_is_help=True,
)


@app.command("list")
def list_() -> None:
    """List the datasets and where each would come from; nothing is downloaded.

    Example: selfview data list
    """
    from rich.console import Console
    from rich.table import Table

    from selfview.data.named import DATASETS, place_of

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("name", "rows", "dims", "classes", "from", "licence"):
        table.add_column(title, justify="right" if title in ("rows", "classes") else "left")
    for name, entry in DATASETS.items():
        classes = str(entry.classes) if entry.classes else "-"
        row = (name, f"{entry.rows:,}", entry.dims, classes, place_of(entry).source, entry.licence)
        table.add_row(*row)
    console = Console()
    # A pipe has no width of its own: give every cell its room, so that no line is broken.
    console.print(table) if console.is_terminal else Console(width=200).print(table)


@app.command("get")
def get(
    name: str = typer.Argument(
        help="A dataset of `selfview data list`.", autocompletion=complete.datasets
    ),
) -> None:
    """Fetch a dataset if need be, verify and prepare it.

    Example: selfview data get fsdd
    """
    from selfview.data.named import entry_of, load_dataset

    entry_of(name)
    dataset = load_dataset(name)
    shape = " x ".join(map(str, dataset.shape))
    classes = f", {dataset.n_classes} classes" if dataset.n_classes else ""
    typer.echo(f"{name}: {len(dataset):,} rows of {shape}{classes}, from {dataset.source}")
    typer.echo(f"cite: {dataset.citation}; licence: {dataset.licence}")


@app.command("check")
def check(
    name: str | None = typer.Argument(
        None,
        help="A dataset; without it, all that are here.",
        autocompletion=complete.datasets,
    ),
) -> None:
    """Verify files by checksum and prepared rows by known numbers; exit code 1 if one is wrong.

    Example: selfview data check fsdd
    """
    from selfview.data.named import DATASETS, check, entry_of, place_of

    absent = ("to be downloaded", "scikit-learn's fetch_rcv1")
    names = [name] if name else [n for n, e in DATASETS.items() if place_of(e).source not in absent]
    if name:
        entry_of(name)
    wrong = 0
    for each in names:
        for finding in check(each):
            mark = {True: "ok", False: "WRONG", None: "?"}[finding.ok]
            typer.echo(f"{each:<14} {mark:<5} {finding.text}")
            wrong += finding.ok is False
    if not name and len(names) < len(DATASETS):
        typer.echo(f"not here: {', '.join(n for n in DATASETS if n not in names)}")
    if wrong:
        raise typer.Exit(1)
