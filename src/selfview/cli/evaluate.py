"""`selfview evaluate`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selfview.cli.options import Seed, Target, known_target

if TYPE_CHECKING:
    import numpy.typing as npt


def evaluate(
    z: Annotated[Path, typer.Argument(metavar="Z", help="Embedding: .npy .npz .csv .parquet")],
    labels: Annotated[
        Path | None,
        typer.Argument(help="Labels: the same kinds, or a text file with one label a line."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of LABELS, or of Z without it.")
    ] = None,
    id: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of Z with row names.")
    ] = None,
    target: Target = "auto",
    measures: Annotated[
        str, typer.Option(help="'all', 'paper', or names with commas between.")
    ] = "all",
    split: Annotated[
        Path | None, typer.Option(help="File with 'train' or 'test' for each row.")
    ] = None,
    seed: Seed = 0,
    json_out: Annotated[
        Path | None,
        typer.Option(
            "--json", help="Also write the numbers to this file; - is standard output, alone."
        ),
    ] = None,
) -> None:
    """Measure how good an embedding is against labels or a continuous target.

    Example: selfview evaluate embedding.npy labels.npy --measures linear,clustering
    """
    import json
    import warnings

    from selfview.errors import SelfViewWarning
    from selfview.evaluation import evaluate as measure
    from selfview.paper.records import plain
    from selfview.saving.files import write_bytes

    if labels is None and label is None:
        raise typer.BadParameter("give a LABELS file, or --label COLUMN of the embedding's table")
    kind = known_target(target)
    embedding, y = _embedding_and_labels(z, labels, label, id, kind)
    parts = None if split is None else _parts(split)
    names = [name.strip() for name in measures.split(",") if name.strip()]
    chosen: Any = names[0] if len(names) == 1 else names
    with warnings.catch_warnings(record=True) as caught, _bar() as show:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", SelfViewWarning)
        scores = measure(
            embedding,
            y,
            split=parts,
            measures=chosen,
            random_state=seed,
            target=kind,
            progress=show,
        )
    for warning in caught:
        typer.echo(f"selfview: note: {warning.message}", err=True)
    # JSON knows no NaN; a measure that could not be taken is null.
    text = json.dumps(plain(scores), indent=2) + "\n"
    if json_out == Path("-"):
        typer.echo(text, nl=False)
        return
    _print_table(scores)
    if json_out is not None:
        write_bytes(json_out, text.encode())


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None]]:
    """What shows a measure: a rich progress bar on a terminal, a plain line otherwise."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda name, number, total: typer.echo(f"{number + 1}/{total} {name}", err=True)
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda name, at, total: bar.update(task, description=name, completed=at, total=total)


def _print_table(scores: dict[str, float]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("measure", "value")
    table.columns[1].justify = "right"
    for name, value in scores.items():
        table.add_row(name, str(value) if isinstance(value, int) else f"{value:.4f}")
    Console().print(table)


def _embedding_and_labels(
    z: Path, labels: Path | None, label: str | None, id: str | None, target: str
) -> "tuple[npt.NDArray[Any], npt.NDArray[Any]]":
    from selfview.data.folders import check_local
    from selfview.data.label_files import labels_of_file
    from selfview.data.labels import as_measurements
    from selfview.errors import InputError

    for path in (z, labels):
        if path is not None:
            check_local(path)
        if path is not None and not path.is_file():
            raise InputError(f"{path} is not a file")
    embedding, y, names = _features(z, label, id, strict=labels is None)
    if labels is not None:
        y, names = labels_of_file(labels, label)
    if y is None:
        raise InputError(f"{z} has no label in the column {label!r}")
    return embedding, as_measurements(y, names) if target == "continuous" else y


def _features(path: Path, label: str | None, id: str | None, strict: bool) -> tuple[Any, Any, Any]:
    """The embedding in a file; of a table also the labels, which it must have if `strict`."""
    from selfview.data import read
    from selfview.data.label_files import side_values
    from selfview.data.tables import TABLES, open_table
    from selfview.errors import InputError

    if path.suffix.lower() not in TABLES:
        if strict or id is not None:
            option = "--label" if strict else "--id"
            raise InputError(f"{option} needs a table with named columns, and {path} has none")
        return side_values(path), None, ()
    columns = open_table(path, None, [c for c in (label, id) if c]).columns
    if id is None and "id" in columns and "selfview0" in columns:
        id = "id"  # written by `embed`: row names are no feature
    dataset = read(path, label=label if strict or label in columns else None, id=id)
    return dataset.X, dataset.y, dataset.classes


def _parts(path: Path) -> "npt.NDArray[Any]":
    """Words for each row, or truth values."""
    from selfview.data.label_files import side_values

    parts: npt.NDArray[Any] = side_values(path)
    if parts.dtype.kind == "U" and {*parts.tolist()} <= {"True", "False"}:
        parts = parts == "True"
    return parts
