"""`selfview export`: the encoder of a run for programs without selfview."""

from pathlib import Path
from typing import Annotated

import typer

from selfview.cli import complete
from selfview.cli.options import Run
from selfview.cli.paths import check_run

FORMATS = ("onnx", "torchscript", "safetensors")


def export(
    run: Run,
    format: Annotated[
        str,
        typer.Option(
            help="onnx, torchscript or safetensors.", autocompletion=complete.words(*FORMATS)
        ),
    ] = "onnx",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write; in RUN/export/ if not given."),
    ] = None,
) -> None:
    """Write the encoder in RUN for other programs, and check it against `transform`.

    Beside the file: FILE.json with its input, output and layers, and the preparation of the rows.

    Example: selfview export run --format onnx --out encoder.onnx
    """
    if format not in FORMATS:
        raise typer.BadParameter(f"one of {', '.join(FORMATS)}", param_hint="--format")
    check_run(run)
    from selfview.cli.run_folder import check_file_to_write, finished, load_run
    from selfview.data.given_rows import GivenRows
    from selfview.errors import InputError
    from selfview.saving.export import SUFFIXES, TOLERANCE
    from selfview.saving.export import export as write

    model, rows_of = load_run(run)
    preparation = None if isinstance(rows_of, GivenRows) else rows_of
    path = out or run / "export" / f"encoder{SUFFIXES[format]}"
    check_file_to_write(path)
    if finished(path.parent) and path.parent.resolve() != run.resolve():
        raise InputError(  # whose preparation would be replaced
            f"{path.parent} holds another finished run: name a file in another folder"
        )
    description = write(model, path, format, preparation=preparation)
    difference = description["largest_difference"]
    if difference is None:
        checked = "not checked: pip install 'selfview[export]' for onnxruntime"
    else:
        checked = f"differs from transform by {difference:.1g} (at most {TOLERANCE:g} is allowed)"
    typer.echo(f"{path}: {checked}")
    rows = " x ".join(map(str, description["input"]["shape"][1:]))
    typer.echo(f"in: float32 rows of {rows}; out: {model.embedding_dim_} numbers a row")
    if preparation is None:
        typer.echo("no preparation in the run: the rows are the caller's own")
