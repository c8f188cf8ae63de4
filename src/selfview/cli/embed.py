"""`selfview embed`: embed new files with a fitted run, prepared exactly as at fit time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selfview.cli import complete
from selfview.cli.options import (
    Array,
    Groups,
    Id,
    Run,
    Sheet,
    SkipBad,
    check_output,
    given,
    write_embedding,
)
from selfview.cli.paths import check_data, check_run
from selfview.errors import InputError

if TYPE_CHECKING:
    from selfview.data import Dataset
    from selfview.distributed import Group
    from selfview.method import SelfView

DEFAULT = Path("embedding.npy")


def embed(
    run: Run,
    data: Annotated[
        str,
        typer.Argument(
            help="Files of the kind that was fitted, or a dataset.", autocompletion=complete.data
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=".npy, .csv or .parquet; embedding.npy if not given."),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of labels, left aside.")] = None,
    id: Id = None,
    groups: Groups = None,
    array: Array = None,
    sheet: Sheet = None,
    skip_bad: SkipBad = False,
) -> None:
    """Embed DATA with the model in RUN.

    Example: selfview embed run new.csv --out z.parquet
    """
    out = _output(out, data)
    check_run(run)
    check_data(data)
    from selfview.cli.run_folder import check_file_to_write, load_run
    from selfview.data import read
    from selfview.distributed import launched  # after the cheap check: it takes seconds

    check_file_to_write(out)
    with launched() as group:
        model, preparation = load_run(run)
        options = given(
            label=label, id=id, groups=groups, array=array, sheet=sheet, skip_bad=skip_bad or None
        )
        dataset = group.main_first(lambda: read(data, preparation=preparation, **options))
        if not _written_in_blocks(out, model, dataset, group):
            Z = embedded(model, dataset.X, group)
            with group.all_or_none():
                if group.is_main:
                    write_embedding(out, Z, dataset.ids, _places(dataset) | _clusters(model, Z))
    if not group.is_main:
        return
    rows = f"{len(dataset):,} row{'s' * (len(dataset) != 1)}"
    found = model.clusters_ is not None
    note = ", and given to a cluster" * (found and out.suffix.lower() != ".npy")
    typer.echo(f"{rows} embedded in {model.embedding_dim_} dimensions{note}: {out}")
    if found and not note:
        typer.echo("the cluster of each row is written to .csv and .parquet files only", err=True)


def _written_in_blocks(out: Path, model: "SelfView", dataset: "Dataset", group: "Group") -> bool:
    """Write a large embedding block by block; whether it was large, and for a .npy file."""
    from selfview.cli import embedding_file
    from selfview.rows.conversion import as_rows

    if out.suffix.lower() != ".npy" or group.size > 1 or len(dataset) <= embedding_file.MANY:
        return False
    done = embedding_file.write_in_blocks(out.resolve(), model, as_rows(dataset.X))
    if done:
        typer.echo(f"{done:,} rows were embedded before", err=True)
    return True


def _places(dataset: "Dataset") -> dict[str, Any]:
    """Where the rows lie in their image, as columns; none if they don't."""
    if dataset.coordinates is None:
        return {}
    return dict(zip("xy", dataset.coordinates.T, strict=True))


def _clusters(model: "SelfView", Z: Any) -> dict[str, Any]:
    """The cluster of every row and its probability, as columns; none if the model has none."""
    found = model.clusters_
    if found is None:
        return {}
    probability = found.probabilities(Z).max(axis=1)
    return {"cluster": found.assign(Z), "cluster_probability": probability}


def _output(out: Path | None, data: str) -> Path:
    """Where the embedding goes: never to where the rows are, nor unasked to one made before."""
    path = check_output(out or DEFAULT)
    if path.exists() and Path(data).exists() and path.samefile(data):
        raise InputError(f"{path} holds the rows themselves: name another file with --out")
    if out is None and path.exists():
        raise InputError(
            f"{path} is there already: name a file with --out, or the same one to replace it"
        )
    return path


def embedded(model: "SelfView", X: Any, group: "Group") -> Any:
    """The embedding of all rows; under `torchrun` each process embeds a range of them."""
    import numpy as np

    from selfview.rows.conversion import as_rows
    from selfview.rows.in_memory import RowRange

    with group.all_or_none():
        rows = as_rows(X)
        start, stop = (rows.n * r // group.size for r in (group.rank, group.rank + 1))
        part = model.transform(RowRange(rows, start, stop) if group.size > 1 else rows)
    return np.concatenate(group.gathered(part))
