"""`selfview report`: the page of a run, to look at its embedding in a browser."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selfview.cli.options import (
    Array,
    Groups,
    GroupsFromName,
    Id,
    LabelsFromName,
    Run,
    Sheet,
    SkipBad,
    given,
)
from selfview.cli.paths import check_data, check_run

if TYPE_CHECKING:
    from selfview.data import Dataset
    from selfview.method import SelfView
    from selfview.report.facts import Records
    from selfview.rows.base import Rows

FILE = "report.html"


def report(
    run: Run,
    data: Annotated[
        str | None,
        typer.Argument(help="Rows to show; those of the fit by default."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Page to write; RUN/report.html by default.")
    ] = None,
    layout: Annotated[
        str, typer.Option(help="Of the map: tsne, pca, or auto (t-SNE if openTSNE is there).")
    ] = "auto",
    clusters: Annotated[
        int | None, typer.Option(min=1, help="Clusters of k-means; as many as labels, or 8.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of labels.")] = None,
    id: Id = None,
    groups: Groups = None,
    labels_from_name: LabelsFromName = None,
    groups_from_name: GroupsFromName = None,
    array: Array = None,
    sheet: Sheet = None,
    skip_bad: SkipBad = False,
) -> None:
    """Write the report of RUN: one HTML file that works without a network.

    Example: selfview report run --layout pca
    """
    check_run(run)
    check_data(data)
    from selfview.cli.run_folder import check_file_to_write, load_run, rows_of_run
    from selfview.errors import InputError
    from selfview.report.plane import LAYOUTS
    from selfview.rows.conversion import as_rows

    if layout not in LAYOUTS:
        raise InputError(f"--layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    model, preparation = load_run(run)
    check_file_to_write(out or run / FILE)
    options = given(
        label=label,
        id=id,
        groups=groups,
        labels_from_name=labels_from_name,
        groups_from_name=groups_from_name,
        array=array,
        sheet=sheet,
        skip_bad=skip_bad or None,
    )
    dataset = rows_of_run(run, preparation, data, options, f"selfview report {run}")
    rows = as_rows(dataset.X)
    Z = model.transform(rows)
    more = given(layout=layout, clusters=clusters)
    path = write_report(run, model, dataset, rows, Z, out=out, **more)
    typer.echo(f"report of {len(dataset):,} rows: {path}")


def records_of(folder: Path, model: "SelfView") -> "Records":
    """What is known about the fit: from the run's files, or from a model saved from Python."""
    from selfview.cli.run_folder import home
    from selfview.report.facts import read_records
    from selfview.report.models import records_of_model

    where = home(folder)
    return read_records(where) if (where / "config.json").is_file() else records_of_model(model)


def write_report(
    folder: Path,
    model: "SelfView",
    dataset: "Dataset",
    rows: "Rows",
    Z: Any,
    *,
    out: Path | None = None,
    **options: Any,
) -> Path:
    """Write the page of a run folder and say where it is."""
    from selfview.report.models import page_of
    from selfview.saving.files import write_bytes

    path = out or folder / FILE
    html = page_of(model, dataset, rows, Z, records=records_of(folder, model), **options)
    write_bytes(path, html.encode("utf-8", "replace"))
    return path


def try_report(
    folder: Path, model: "SelfView", dataset: "Dataset", rows: "Rows", Z: Any, **known: Any
) -> str:
    """A line that says where the report is, or why there is none: a fit doesn't fail for it."""
    from selfview.errors import SelfViewError

    try:
        return f"report: {write_report(folder, model, dataset, rows, Z, **known)}"
    except SelfViewError as error:
        return f"no report was written: {error}"
    except Exception as error:  # the run is complete by now, and hours of it must not look failed
        return f"no report was written ({type(error).__name__}: {error})"
