"""`selfview embed`: embed new files with a fitted run, prepared exactly as at fit time."""

from pathlib import Path
from typing import Annotated

import typer

from selfview.cli import complete
from selfview.cli.options import check_output, given, write_embedding


def embed(
    run: Annotated[
        Path, typer.Argument(help="Run folder of `selfview fit`.", autocompletion=complete.paths)
    ],
    data: Annotated[
        str,
        typer.Argument(
            help="Files of the kind that was fitted, or a dataset.", autocompletion=complete.data
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help=".npy, .csv or .parquet.")] = Path(
        "embedding.npy"
    ),
    id: Annotated[str | None, typer.Option(help="Column of row names.")] = None,
    array: Annotated[str | None, typer.Option(help="Array of an .npz file.")] = None,
    skip_bad: Annotated[bool, typer.Option(help="Leave out rows that can't be read.")] = False,
) -> None:
    """Embed DATA with the model in RUN.

    Example: selfview embed run new.csv --out z.parquet
    """
    check_output(out)
    from selfview.runs import load_run  # after the cheap check: it takes seconds

    model, preparation = load_run(run)
    dataset = preparation.read(data, **given(id=id, array=array, skip_bad=skip_bad or None))
    write_embedding(out, model.transform(dataset.X), dataset.ids)
    rows = f"{len(dataset):,} row{'s' * (len(dataset) != 1)}"
    typer.echo(f"{rows} embedded in {model.embedding_dim_} dimensions: {out}")
