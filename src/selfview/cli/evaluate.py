"""`selfview evaluate`."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selfview.cli.options import Seed, Sheet, Target, known_target
from selfview.cli.paths import NAMES, check_data, check_file, check_values

if TYPE_CHECKING:
    import numpy.typing as npt

    from selfview.data import Dataset


_NUMBERS = (
    "An embedding's table holds numbers alone: --label and --id name columns that are none, and a "
    "table of raw data is embedded by `selfview fit` first"
)

_PERCENT = "{:.1%}"
# How each score is printed: its title, its form, and the count of the rows that it is of.
PRINTED = {
    "linear_accuracy": ("linear probe, accuracy", _PERCENT, "n_test"),
    "knn_accuracy": ("k-NN, accuracy", _PERCENT, "knn_rows"),
    "graph_accuracy": ("graph vote, accuracy", _PERCENT, "graph_rows"),
    "kmeans_acc": ("k-means, accuracy (ACC)", _PERCENT, "n_scored"),
    "kmeans_nmi": ("k-means, NMI", _PERCENT, "n_scored"),
    "kmeans_ari": ("k-means, ARI", _PERCENT, "n_scored"),
    "regression_r2": ("linear fit, R²", _PERCENT, "n_scored"),
    "regression_rss": ("linear fit, residual sum of squares", "{:.4g}", "n_scored"),
    "mine": ("mutual information (MINE), nats", "{:.2f}", "mine_rows"),
    "mine_spread": ("  its standard deviation", "{:.2f}", "mine_rows"),
    "silhouette": ("silhouette", "{:.3f}", "silhouette_rows"),
    "effective_rank": ("effective rank", "{:.1f}", "n_scored"),
    "group_graph_accuracy": ("graph vote by group, accuracy", _PERCENT, ""),
    "group_silhouette": ("silhouette by group", "{:.3f}", ""),
    "ilisi": ("iLISI", "{:.2f}", ""),
}


def evaluate(
    z: Annotated[Path, typer.Argument(metavar="Z", help="Embedding: .npy .npz .csv .parquet")],
    labels: Annotated[
        Path | None,
        typer.Argument(
            help="Labels: the same kinds, a text file with one label a line, or a dataset's name."
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of LABELS, or of Z without it.")
    ] = None,
    id: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of Z with row names.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Groups of rows (speaker, donor, day), whose mixing is measured: a column of "
            "LABELS or Z, or a file with one group a line.",
        ),
    ] = None,
    sheet: Sheet = None,
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
    """Measure how good an embedding is against labels or a continuous target, and how groups mix.

    Example: selfview evaluate embedding.npy labels.npy --measures linear,clustering
    """
    for path in (z, split):
        check_file(path)
    check_data(None if labels is None else str(labels))
    check_values(groups)
    import json
    import warnings

    from selfview.errors import SelfViewWarning
    from selfview.evaluation import evaluate as measure
    from selfview.paper.records import plain
    from selfview.saving.files import write_bytes

    if labels is None and label is None and groups is None:
        raise typer.BadParameter(
            "give a LABELS file, --label COLUMN of the embedding's table, or --groups"
        )
    kind = known_target(target)
    embedding, y, of_group = _inputs(z, labels, label, id, groups, sheet, kind)
    parts = None if split is None else _parts(split)
    names = [name.strip() for name in measures.split(",") if name.strip()]
    chosen: Any = names[0] if len(names) == 1 else names
    if y is None and (split is not None or chosen not in ("all", "mixing")):
        raise typer.BadParameter("without labels only the mixing of groups can be measured")
    with warnings.catch_warnings(record=True) as caught, _bar() as show:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", SelfViewWarning)
        if y is None:
            scores = _mixing(embedding, of_group, seed)
        else:
            scores = measure(
                embedding,
                y,
                split=parts,
                measures=chosen,
                random_state=seed,
                groups=of_group,
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
    """Of what rows the scores are, and the scores; --json also has the counts by name."""
    from rich.console import Console
    from rich.table import Table

    counted = {"n_classes": "classes", "n_groups": "groups", "n_left_out": "without a label"}
    counts = [f"{scores[name]:,} {noun}" for name, noun in counted.items() if scores.get(name)]
    typer.echo(", ".join([f"{scores['n_rows']:,} rows", *counts]))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("measure", "value", "rows"):
        table.add_column(heading, justify="left" if heading == "measure" else "right")
    for name, (title, form, rows) in PRINTED.items():
        if name in scores:
            value = form.format(scores[name]).replace("%", " %")
            table.add_row(title, value, f"{scores[rows]:,}" if rows else "")
    Console().print(table)


def _mixing(Z: Any, groups: Any, seed: int) -> dict[str, float]:
    """How groups mix, where there are no labels to measure anything else."""
    from selfview.evaluation.inputs import check_matrix
    from selfview.evaluation.mixing import mixing_scores
    from selfview.labels import group_codes

    matrix = check_matrix(Z)
    return {"n_rows": len(matrix)} | mixing_scores(
        matrix, group_codes(groups, len(matrix))[0], seed
    )


def _inputs(
    z: Path, labels: Path | None, label: str | None, id: str | None, groups: str | None,
    sheet: str | None, target: str,
) -> "tuple[npt.NDArray[Any], npt.NDArray[Any] | None, npt.NDArray[Any] | None]":  # fmt: skip
    """The embedding, the labels and the groups of its rows, as far as they are named."""
    import numpy as np

    from selfview.data.folders import check_local
    from selfview.data.label_files import labels_of_file, side_values
    from selfview.data.labels import as_measurements
    from selfview.errors import InputError

    if labels is not None and str(labels) in NAMES and not labels.exists():
        return _beside_dataset(z, str(labels), id, groups)
    for path in (z, labels):
        if path is not None:
            check_local(path)
        if path is not None and not path.is_file():
            raise InputError(f"{path} is not a file")
    own_file = groups is not None and Path(groups).is_file()
    in_labels = labels is not None and groups in _columns(labels, sheet)
    column = None if own_file or in_labels else groups
    found = _features(z, label, id, column, sheet, strict=labels is None)
    y, names, of_group = found.y, found.classes, found.groups
    if labels is not None:
        y, names = labels_of_file(labels, label, sheet)
    elif y is None and label is not None:
        raise InputError(f"{z} has no label in the column {label!r}")
    if own_file:
        of_group = side_values(Path(str(groups)), sheet=sheet)
    elif labels is not None and in_labels:
        of_group = side_values(labels, groups, sheet)
    if y is not None and target == "continuous":
        y = as_measurements(y, names)
    return np.asarray(found.X), y, of_group


def _beside_dataset(
    z: Path, name: str, id: str | None, groups: str | None
) -> "tuple[npt.NDArray[Any], npt.NDArray[Any] | None, npt.NDArray[Any] | None]":
    """The embedding in a file, with labels and groups of the dataset that it was made of."""
    import numpy as np

    from selfview.data import load_dataset
    from selfview.errors import InputError

    dataset = load_dataset(name)
    if groups is not None and groups not in dataset.further:
        there = ", ".join(dataset.further) or "none"
        raise InputError(f"{name} has no groups called {groups!r}; there are {there}")
    of_group = None if groups is None else dataset.further[groups]
    return np.asarray(_features(z, None, id, None, None, strict=False).X), dataset.y, of_group


def _columns(path: Path, sheet: str | None) -> tuple[str, ...]:
    """The names of a table's columns; none of another file."""
    from selfview.data.folders import kind_of
    from selfview.data.tables import TABLES, open_table

    return open_table(path, None, (), sheet).columns if kind_of(path) in TABLES else ()


def _features(
    path: Path, label: str | None, id: str | None, groups: str | None, sheet: str | None, *,
    strict: bool,
) -> "Dataset":  # fmt: skip
    """The embedding in a file; of a table also labels, which it must have if `strict`, and groups.

    Of a table that `embed` wrote, only the columns of the embedding are features.
    """

    from selfview.data import Dataset
    from selfview.data.folders import kind_of
    from selfview.data.guard import report_bad_rows
    from selfview.data.label_files import side_values
    from selfview.data.labels import read_labels
    from selfview.data.table_rows import read_rows
    from selfview.data.tables import TABLES, existing_column, open_table
    from selfview.errors import FileFormatError, InputError

    if kind_of(path) not in TABLES:
        needed = {"--label": strict and label, "--id": id, "--groups": groups}
        for option, column in needed.items():
            if column:
                raise InputError(f"{option} needs a table with named columns, and {path} has none")
        return Dataset(path.name, side_values(path))
    table = open_table(path, None, [c for c in (label, id, groups) if c], sheet)
    label = label if strict or label in table.columns else None
    sides = {"label": label, "id": id, "groups": groups}
    aside = [existing_column(table, column, side) for side, column in sides.items() if column]
    embedding = [c for c in table.columns if re.fullmatch(r"selfview\d+", c)]
    # Words are a mistake here, and not encoded as those of a table to learn from.
    embedding = embedding or [c for c in table.columns if c not in (*aside, *table.index)]
    rows = read_rows(table, embedding, aside)
    if not rows.total or not embedding:
        raise FileFormatError(f"{path} holds no {'rows' if embedding else 'columns of numbers'}")
    report_bad_rows(path, rows.bad, rows.total, skip_bad=False, remedy=_NUMBERS)
    y, classes = read_labels(rows.aside[label].tolist()) if label else (None, ())
    named = rows.aside[groups] if groups else None
    return Dataset(path.name, rows.X, y=y, classes=classes, groups=named)


def _parts(path: Path) -> "npt.NDArray[Any]":
    """Words for each row, or truth values."""
    from selfview.data.label_files import side_values

    parts: npt.NDArray[Any] = side_values(path)
    if parts.dtype.kind == "U" and {*parts.tolist()} <= {"True", "False"}:
        parts = parts == "True"
    return parts
