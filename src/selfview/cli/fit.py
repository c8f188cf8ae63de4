"""`selfview fit`: learn the embedding of a dataset or of files, into a run folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selfview.cli import complete
from selfview.cli.options import given, number_or_word

if TYPE_CHECKING:
    from selfview.cli.fitting import Plan

MODEL, TRAINING, FILES, RUN = "Model", "Training", "How files are read", "Run"
# Words that SelfView takes, here again because asking it would import torch.
CHOICES = {
    "encoder": ("auto", "mlp", "cnn", "small-cnn", "dense-cnn"),
    "batch_norm": ("both", "encoder", "head", "none"),
    "recipe": ("selfview", "paper"),
    "views": ("adversarial", "random", "random+adversarial", "none"),
    "schedule": ("auto", "cosine", "drop"),
    "axes": ("auto", "principal", "learned"),
    "precision": ("auto", "float32", "bfloat16"),
}


def _word(name: str, about: str, panel: str) -> Any:
    *first, last = CHOICES[name]
    help = f"{about}: {', '.join(first)} or {last}."
    words = complete.words(*first, last)
    return typer.Option(help=help, rich_help_panel=panel, autocompletion=words)


def _value(help: str, panel: str, **more: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=panel, **more)


def fit(
    context: typer.Context,
    data: Annotated[
        str | None,
        typer.Argument(
            help="A dataset's name or a path; see `selfview data`. Not needed with --config or "
            "--resume.",
            autocompletion=complete.data,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Run folder to write.", rich_help_panel=RUN)
    ] = Path("run"),
    config: Annotated[
        Path | None,
        _value("Repeat the run of this config.json; other options win over it.", RUN),
    ] = None,
    resume: Annotated[bool, _value("Go on from the run folder's checkpoint.", RUN)] = False,
    force: Annotated[
        bool, _value("Replace a finished run in the folder, once the new one is whole.", RUN)
    ] = False,
    dry_run: Annotated[
        bool, _value("Say what would be done and how long it would take; write nothing.", RUN)
    ] = False,
    tensorboard: Annotated[
        bool, _value("Write events for TensorBoard into the run folder as well.", RUN)
    ] = False,
    report: Annotated[bool, _value("Write report.html into the run folder.", RUN)] = True,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress.", rich_help_panel=RUN)
    ] = False,
    components: Annotated[int | None, _value("Length of the embedding.", MODEL)] = None,
    prototypes: Annotated[int | None, _value("Number of prototypes k.", MODEL)] = None,
    encoder: Annotated[str | None, _word("encoder", "Kind of network", MODEL)] = None,
    batch_norm: Annotated[str | None, _word("batch_norm", "Where batch norm stands", MODEL)] = None,
    recipe: Annotated[
        str | None, _word("recipe", "Where values not given come from", MODEL)
    ] = None,
    views: Annotated[str | None, _word("views", "How rows are changed", MODEL)] = None,
    epsilon: Annotated[str | None, _value('Length of adversarial steps, or "auto".', MODEL)] = None,
    neighbours: Annotated[
        str | None, _value('Nearest rows to draw second views from, 0 or "auto".', MODEL)
    ] = None,
    contrast: Annotated[
        str | None, _value("Weight of telling a row's views from others', 0 or \"auto\".", MODEL)
    ] = None,
    xi: Annotated[str | None, _value('Length of random steps, or "auto".', MODEL)] = None,
    sinkhorn_iterations: Annotated[
        int | None, _value("Rounds of Sinkhorn-Knopp for a target.", MODEL)
    ] = None,
    temperature: Annotated[str | None, _value('Of the targets, or "adaptive".', MODEL)] = None,
    target_entropy: Annotated[
        str | None, _value('Of the targets, in nats, or "auto".', MODEL)
    ] = None,
    warmup: Annotated[
        str | None, _value('Epochs until the target entropy is reached, or "auto".', TRAINING)
    ] = None,
    epochs: Annotated[str | None, _value('Passes over the rows, or "auto".', TRAINING)] = None,
    batch_size: Annotated[int | None, _value("Rows in a batch.", TRAINING)] = None,
    learning_rate: Annotated[
        str | None, _value('Of Adam, at its highest, or "auto".', TRAINING)
    ] = None,
    schedule: Annotated[
        str | None, _word("schedule", "How the learning rate goes", TRAINING)
    ] = None,
    axes: Annotated[
        str | None, _word("axes", "Along which the embedding is given", TRAINING)
    ] = None,
    precision: Annotated[str | None, _word("precision", "Of training", TRAINING)] = None,
    device: Annotated[
        str | None,
        _value(
            "auto, cpu, cuda ...", TRAINING, autocompletion=complete.words("auto", "cpu", "cuda")
        ),
    ] = None,
    seed: Annotated[
        int | None, _value("Random seed; 0 if not given.", TRAINING, min=0, max=2**32 - 1)
    ] = None,
    label: Annotated[str | None, _value("Column of labels, for scores only.", FILES)] = None,
    id: Annotated[str | None, _value("Column of row names.", FILES)] = None,
    labels_from_name: Annotated[
        str | None,
        _value("Regular expression; group 1 of a file's name is its label.", FILES),
    ] = None,
    header: Annotated[
        bool | None,
        _value("Whether a table starts with column names; told from the file if not given.", FILES),
    ] = None,
    array: Annotated[str | None, _value("Array of an .npz file.", FILES)] = None,
    text: Annotated[str | None, _value("Field of a .jsonl file with the text.", FILES)] = None,
    vocabulary: Annotated[
        int | None, _value("Texts: words to keep, the most frequent.", FILES, min=1)
    ] = None,
    min_words: Annotated[
        int | None, _value("Texts: leave out those with fewer known words.", FILES, min=0)
    ] = None,
    image_size: Annotated[
        tuple[int, int] | None, _value("Width and height to resize images to.", FILES)
    ] = None,
    mz_range: Annotated[
        tuple[float, float] | None, _value("imzML: lowest and highest m/z.", FILES)
    ] = None,
    bins: Annotated[int | None, _value("imzML: number of m/z bins.", FILES, min=1)] = None,
    skip_bad: Annotated[bool | None, _value("Leave out rows that can't be read.", FILES)] = None,
) -> None:
    """Learn an embedding of DATA, without labels, and write a run folder.

    Example: selfview fit recordings/ --labels-from-name '^([0-9])_' --out run

    Ctrl-C keeps a checkpoint; --resume goes on from it with the same bits.
    """
    options = given(
        label=label,
        id=id,
        labels_from_name=labels_from_name,
        header=header,
        array=array,
        text=text,
        vocabulary=vocabulary,
        min_words=min_words,
        image_size=image_size,
        mz_range=mz_range,
        bins=bins,
        skip_bad=skip_bad,
    )
    parameters = given(
        n_components=components,
        n_prototypes=prototypes,
        encoder=encoder,
        batch_norm=batch_norm,
        recipe=recipe,
        views=views,
        epsilon=number_or_word(epsilon),
        neighbours=number_or_word(neighbours),
        contrast=number_or_word(contrast),
        xi=number_or_word(xi),
        sinkhorn_iterations=sinkhorn_iterations,
        temperature=number_or_word(temperature),
        target_entropy=number_or_word(target_entropy),
        warmup=number_or_word(warmup),
        epochs=number_or_word(epochs),
        batch_size=batch_size,
        learning_rate=number_or_word(learning_rate),
        schedule=schedule,
        axes=axes,
        precision=precision,
        device=device,
        random_state=seed,
    )
    from selfview.cli.interrupt import ended_cleanly  # after the cheap checks of the call

    if data is None and config is None and not resume:
        raise typer.BadParameter("name the data, or a run's --config", param_hint="DATA")
    with ended_cleanly(lambda: _last_words(out)):
        from selfview.cli import fitting
        from selfview.distributed import launched

        group = context.with_resource(launched())
        plan: Plan = fitting.plan(
            data,
            out,
            options,
            parameters,
            config=config,
            resume=resume,
            quiet=quiet,
            force=force or dry_run,
            group=group,
        )
        if dry_run:
            fitting.show(plan)
        else:
            fitting.run(plan, tensorboard=tensorboard, report=report)


def _last_words(out: Path) -> str:
    """What an interrupted fit kept, and the command that goes on from it."""
    import shlex

    folder = out / "checkpoint"
    again = f"selfview fit --resume --out {shlex.quote(str(out))}"
    if any(folder.glob("checkpoint-*.safetensors")):
        return f"interrupted; a checkpoint is in {folder}. To go on: {again}"
    if (folder / "config.json").is_file():
        return f"interrupted before the first checkpoint. To start again: {again}"
    return "interrupted; nothing was written"
