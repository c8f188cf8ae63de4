"""`selfview fit`: learn the embedding of a dataset or of files, into a run folder."""

from pathlib import Path
from typing import Annotated

import typer

from selfview.cli.options import given, number_or_word


def fit(
    context: typer.Context,
    data: Annotated[str, typer.Argument(help="A dataset's name or a path; see `selfview data`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Run folder to write.")] = Path("run"),
    components: Annotated[int | None, typer.Option(help="Length of the embedding.")] = None,
    prototypes: Annotated[int | None, typer.Option(help="Number of prototypes k.")] = None,
    epochs: Annotated[str | None, typer.Option(help='Passes over the rows, or "auto".')] = None,
    epsilon: Annotated[str | None, typer.Option(help='Length of a view, or "auto".')] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows in a batch.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of Adam.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Where values not given come from.")] = None,
    encoder: Annotated[str | None, typer.Option(help="auto, mlp or cnn.")] = None,
    precision: Annotated[str | None, typer.Option(help="auto, float32 or bfloat16.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda ...")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    resume: Annotated[bool, typer.Option(help="Go on from the run folder's checkpoint.")] = False,
    label: Annotated[str | None, typer.Option(help="Column of labels, for scores only.")] = None,
    id: Annotated[str | None, typer.Option(help="Column of row names.")] = None,
    labels_from_name: Annotated[
        str | None, typer.Option(help="Regular expression; group 1 of a file's name is its label.")
    ] = None,
    array: Annotated[str | None, typer.Option(help="Array of an .npz file.")] = None,
    text: Annotated[str | None, typer.Option(help="Field of a .jsonl file with the text.")] = None,
    image_size: Annotated[
        tuple[int, int] | None, typer.Option(help="Width and height to resize images to.")
    ] = None,
    mz_range: Annotated[
        tuple[float, float] | None, typer.Option(help="imzML: lowest and highest m/z.")
    ] = None,
    bins: Annotated[int | None, typer.Option(help="imzML: number of m/z bins.")] = None,
    skip_bad: Annotated[bool, typer.Option(help="Leave out rows that can't be read.")] = False,
    report: Annotated[bool, typer.Option(help="Write report.html into the run folder.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Learn an embedding of DATA, without labels, and write a run folder.

    Example: selfview fit recordings/ --labels-from-name '^([0-9])_' --out run
    """
    import warnings

    from selfview import CollapseWarning, SelfView
    from selfview.data import read
    from selfview.disk import locked
    from selfview.distributed import launched
    from selfview.evaluation import evaluate
    from selfview.runs import save_run

    options = given(
        label=label,
        id=id,
        labels_from_name=labels_from_name,
        array=array,
        text=text,
        image_size=image_size,
        mz_range=mz_range,
        bins=bins,
        skip_bad=skip_bad or None,
    )
    model = SelfView(
        random_state=seed,
        verbose=0 if quiet else 1,
        checkpoint=out / "checkpoint",
        **given(
            n_components=components,
            n_prototypes=prototypes,
            epochs=number_or_word(epochs),
            epsilon=number_or_word(epsilon),
            batch_size=batch_size,
            learning_rate=learning_rate,
            recipe=recipe,
            encoder=encoder,
            precision=precision,
            device=device,
        ),
    )
    model._check_parameters()
    group = context.with_resource(launched())
    with group.together():
        if group.leads:
            context.with_resource(locked(out))  # until the command ends
    dataset = group.by_turns(lambda: read(data, **options))
    resume = group.restarted() or resume
    if group.leads and not resume:
        _forget(out / "checkpoint")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)  # the verdict is told at the end
        model.fit(dataset.X)
    if not group.leads:
        return
    scores = {}
    if dataset.y is not None:
        split = None if dataset.test is None else (dataset.train, dataset.test)
        Z = model.transform(dataset.X)
        scores = evaluate(Z, dataset.y, split=split, measures=["linear", "clustering"])
    save_run(out, model, dataset, source=data, options=options, scores=scores)
    _forget(out / "checkpoint")
    for name, value in scores.items():
        typer.echo(f"{name} {value:.4g}")
    if report:
        from selfview.cli.report import try_report

        typer.echo(try_report(out, model, dataset, Z))
    typer.echo(f"{model.health_['verdict']}; the run is in {out}")


def _forget(folder: Path) -> None:
    """Remove the checkpoints in `folder`, and the folder if nothing else is in it."""
    for path in folder.glob("checkpoint-*.safetensors"):
        path.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
