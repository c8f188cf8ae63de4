"""`selfview embed`: embed new files with a fitted run, prepared exactly as at fit time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selfview.cli import complete
from selfview.cli.options import Array, Id, Run, SkipBad, check_output, given, write_embedding
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
    array: Array = None,
    skip_bad: SkipBad = False,
) -> None:
    """Embed DATA with the model in RUN.

    Example: selfview embed run new.csv --out z.parquet
    """
    out = _output(out, data)
    from selfview.cli.run_folder import check_file_to_write, load_run
    from selfview.data import read
    from selfview.distributed import launched  # after the cheap check: it takes seconds

    check_file_to_write(out)
    with launched() as group:
        model, preparation = load_run(run)
        options = given(label=label, id=id, array=array, skip_bad=skip_bad or None)
        dataset = group.main_first(lambda: read(data, preparation=preparation, **options))
        if group.size == 1:
            write_embedding(out, model.transform(dataset.X), dataset.ids)
        else:
            _write_together(out, model, dataset, group)
    if not group.is_main:
        return
    rows = f"{len(dataset):,} row{'s' * (len(dataset) != 1)}"
    typer.echo(f"{rows} embedded in {model.embedding_dim_} dimensions: {out}")


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


def _write_together(out: Path, model: "SelfView", dataset: "Dataset", group: "Group") -> None:
    """Under `torchrun`: each process a range of the rows, into one memory-mapped file."""
    import numpy as np

    from selfview.cli.shared_embedding import embed_together

    if out.suffix == ".npy":
        embed_together(model, dataset.X, out, group)
        return
    table = out.with_name(f".{out.name}.npy")
    embed_together(model, dataset.X, table, group)
    with group.all_or_none():
        if group.is_main:
            write_embedding(out, np.load(table, mmap_mode="r"), dataset.ids)
            table.unlink()
