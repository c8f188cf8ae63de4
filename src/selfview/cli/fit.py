"""`selfview fit`: learn the embedding of a dataset or of files, into a run folder."""

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selfview.cli import complete
from selfview.cli.options import number_or_word
from selfview.cli.paths import check_data

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
# Options whose defaults are SelfView's and `read`'s own: type, help text, and more for typer. Those
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
READING: dict[str, tuple[Any, ...]] = {
    "label": (str, "Column of labels (of obs in AnnData), for scores only."),
    "id": (str, "Column of row names."),
    "groups": (str, "Column of groups (speaker, donor, day): their differences aren't learned."),
    "labels_from_name": (str, "Regular expression; group 1 of a file's name is its label."),
    "groups_from_name": (str, "Likewise, for the file's group."),
    "columns": (str, "Columns of a table to use, with commas between them."),
    "drop": (str, "Columns of a table to leave out."),
    "categorical": (str, "Columns of a table to take for categories."),
    "numeric": (str, "Columns of a table to take for numbers; anything else in them is a gap."),
    "header": (bool, "Whether a table starts with column names; by default the file tells."),
    "array": (str, "Array of an .npz, .h5, .zarr, .pt or .safetensors file."),
    "layer": (str, "AnnData: layer with the rows."),
    "use_rep": (str, "AnnData: array of obsm with the rows."),
    "text": (str, "Column of a table or field of a .jsonl file with the text."),
    "vector": (str, "Column of a .parquet or field of a .jsonl file with lists of numbers."),
    "vocabulary": (int, "Texts: words to keep, the most frequent.", {"min": 1}),
    "min_words": (int, "Texts: leave out those with fewer known words.", {"min": 0}),
    "image_size": (tuple[int, int], "Width and height to resize images to."),
    "mz_range": (tuple[float, float], "imzML: lowest and highest m/z."),
    "bins": (int, "imzML: number of m/z bins.", {"min": 1}),
    "skip_bad": (bool, "Leave out rows that can't be read."),
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


def _parameter(name: str, panel: str, kind: Any, help: str, more: Any = None) -> inspect.Parameter:
    """An option without a default of its own, as typer reads it from a signature."""
    more = dict(more or {})
    if name in CHOICES:
        *first, last = CHOICES[name]
        help = f"{help}: {', '.join(first)} or {last}."
        more["autocompletion"] = complete.words(*CHOICES[name])
    option = typer.Option(help=help, rich_help_panel=panel, **more)
    kind = Annotated[(str if kind is float else kind) | None, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


_own = inspect.signature(fit)
fit.__signature__ = _own.replace(  # type: ignore[attr-defined]
    parameters=[
        *(p for p in _own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD),
        *(
            _parameter(name, panel, *about)
            for panel, options in (*PARAMETERS.items(), (FILES, READING))
            for name, about in options.items()
        ),
    ]
)
