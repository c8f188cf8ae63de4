"""`selfview fit`: learn the embedding of a dataset or of files, into a run folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selfview.cli import complete
from selfview.cli.options import FILES, READING, add_options, number_or_word
from selfview.cli.paths import check_data, check_file, check_folder, check_run

if TYPE_CHECKING:
    from selfview.cli.fitting import Plan

MODEL, TRAINING, RUN = "Model", "Training", "Run"
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
# Options whose defaults are SelfView's own: type, help text, and more for typer. Those
# of type `float` take a word too ("auto" and the like).
_SEED = {"min": 0, "max": 2**32 - 1}
_DEVICES = {"autocompletion": complete.words("auto", "cpu", "cuda")}
PARAMETERS: dict[str, dict[str, tuple[Any, ...]]] = {
    MODEL: {
        "components": (int, "Length of the embedding."),
        "prototypes": (int, "Number of prototypes k."),
        "clusters": (float, 'Number of clusters, or "auto": clusters.csv in the run folder.'),
        "encoder": (str, "Kind of network"),
        "width": (float, 'Width of the perceptron, or "auto".'),
        "batch_norm": (str, "Where batch norm stands"),
        "recipe": (str, "Where values not given come from"),
        "views": (str, "How views of rows are made"),
        "adversarial_share": (float, 'Share of the steps with adversarial views, or "auto".'),
        "epsilon": (float, 'Length of the adversarial perturbation, or "auto".'),
        "neighbours": (float, 'Nearest rows to draw second views from, 0 or "auto".'),
        "metric": (str, "Distance by which they are searched for, as scikit-learn names it."),
        "contrast": (float, 'Weight of InfoNCE between the two views, 0 or "auto".'),
        "xi": (float, 'Length of the random start of the power iteration, or "auto".'),
        "sinkhorn_iterations": (int, "Iterations of Sinkhorn-Knopp for a target."),
        "temperature": (float, 'Of the targets, or "adaptive".'),
        "target_entropy": (float, 'Of the targets, in nats, or "auto".'),
    },
    TRAINING: {
        "warmup": (float, 'Epochs until the target entropy is reached, or "auto".'),
        "epochs": (float, 'Passes over the rows, or "auto".'),
        "batch_size": (int, "Rows in a batch."),
        "learning_rate": (float, 'Of Adam, at its highest, or "auto".'),
        "schedule": (str, "How the learning rate goes"),
        "axes": (str, "Axes of the embedding"),
        "precision": (str, "Of training"),
        "device": (str, "auto, cpu, cuda ...", _DEVICES),
        "max_seconds": (float, "End the fit after so many seconds, with the model so far."),
        "seed": (int, "Random seed; 0 if not given.", _SEED),
    },
}
NAMES = {
    "components": "n_components",
    "prototypes": "n_prototypes",
    "clusters": "n_clusters",
    "seed": "random_state",
}


def _run(help: str, *flags: str) -> Any:
    return typer.Option(*flags, help=help, rich_help_panel=RUN)


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
    out: Annotated[Path, _run("Run folder to write.", "--out", "-o")] = Path("run"),
    config: Annotated[
        Path | None, _run("Repeat the run of this config.json; other options win over it.")
    ] = None,
    resume: Annotated[bool, _run("Go on from the run folder's checkpoint.")] = False,
    force: Annotated[
        bool, _run("Replace a finished run in the folder, once the new one is whole.")
    ] = False,
    dry_run: Annotated[
        bool, _run("Say what would be done and how long it would take; write nothing.")
    ] = False,
    tensorboard: Annotated[
        bool, _run("Write events for TensorBoard into the run folder as well.")
    ] = False,
    report: Annotated[bool, _run("Write report.html into the run folder.")] = True,
    quiet: Annotated[bool, _run("No progress.", "--quiet", "-q")] = False,
    **more: Any,
) -> None:
    """Learn an embedding of DATA, without labels, and write a run folder.

    Example: selfview fit recordings/ --labels-from-name '^([0-9])_' --out run

    Ctrl-C keeps a checkpoint; --resume goes on from it with the same bits.
    """
    given = {name: value for name, value in more.items() if value is not None}
    options = {name: value for name, value in given.items() if name in READING}
    parameters = {
        NAMES.get(name, name): number_or_word(given[name]) if kind is float else given[name]
        for panel in PARAMETERS.values()
        for name, (kind, *_) in panel.items()
        if name in given
    }
    from selfview.cli.interrupt import exit_on_interrupt  # after the cheap checks of the call

    if data is None and config is None and not resume:
        raise typer.BadParameter("name the data, or a run's --config", param_hint="DATA")
    check_data(data)
    check_file(config)
    check_folder(out)
    if resume and data is None and config is None:  # the interrupted run knows the rest
        check_run(out)
    with exit_on_interrupt(lambda: _last_words(out)):
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


for _panel, _options in (*PARAMETERS.items(), (FILES, READING)):
    add_options(fit, _panel, _options, CHOICES)
