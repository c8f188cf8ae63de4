"""What `selfview fit` does once its call is understood.

`plan` checks the parameters, reads the files, and wraps their rows once (`as_rows`); everything
after it takes these rows. The passes over them:

| pass | where | what for |
|---|---|---|
| 1 | `configuration.fingerprint` | the checksum in config.json: have the rows changed? |
| 2 | `SelfView.fit`, `Rows.summary` | are all entries finite; norms and standard deviations |
| 3 | `SelfView.fit`, `ProjectedRows` | principal components, which are kept in memory if they fit |
| 4 | `SelfView.transform` | the embedding, for the scores and the report |
| 5 | `SelfView.predict_proba` | the prototypes that the report shows; not with `--no-report` |

Neighbours and epochs go through the components of pass 3. Where there are none (images, own
encoders) or they don't fit, pass 3 is one for the neighbours and one for every epoch.
"""

import shlex
import sys
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from selfview import CollapseWarning, SelfView
from selfview.cli.compare import show as show_table
from selfview.cli.configuration import FILE, Config, describe, read_config
from selfview.cli.report import try_report
from selfview.cli.run_folder import EVENTS, check_replaceable, finished, save_run
from selfview.data import Dataset, read
from selfview.data.tables import TableFilePreparation
from selfview.distributed import ALONE, Group
from selfview.errors import InputError, SelfViewError, SelfViewWarning
from selfview.estimator.forecast import Forecast
from selfview.evaluation import evaluate
from selfview.evaluation.split import random_fifth
from selfview.report.models import columns_unit
from selfview.report.scores import FIRST, Scores, in_words, mixing_table, score_table
from selfview.rows.base import Rows
from selfview.rows.conversion import as_rows
from selfview.saving.files import locked
from selfview.training.progress import duration
from selfview.training.tensorboard import Events


@dataclass(frozen=True)
class Plan:
    """A fit that is about to happen."""

    model: SelfView
    dataset: Dataset
    rows: Rows  # of the dataset
    config: Config
    out: Path
    resume: bool
    group: Group = ALONE  # the processes that torchrun started

    @property
    def checkpoint(self) -> Path:
        return self.out / "checkpoint"

    @property
    def events(self) -> Path:
        return self.checkpoint / EVENTS  # until the run is whole: an earlier one has its own


def plan(
    data: str | None,
    out: Path,
    options: Mapping[str, Any],
    parameters: Mapping[str, Any],
    *,
    config: Path | None,
    resume: bool,
    quiet: bool,
    force: bool = False,
    group: Group = ALONE,
) -> Plan:
    """Read the data and make the model; an earlier run's configuration fills what isn't given."""
    resume = group.restarted() or resume  # a rank that died is started again with the same words
    # --force was given to the fit that was interrupted, if it was needed.
    going_on = resume and (out / "checkpoint" / FILE).is_file()
    check_replaceable(out, force=force or going_on)
    if config is None and data is None:  # --resume alone: the interrupted run knows the rest
        config = out / "checkpoint" / FILE
        if not config.is_file():
            raise InputError(f"{out} holds no interrupted run to resume: name the data")
    earlier = Config(data="") if config is None else read_config(config)
    _same_threads(earlier)
    source = data or earlier.data
    options = {**earlier.options, **options}
    model = SelfView(
        **{"random_state": 0, **earlier.parameters, **parameters},
        checkpoint=out / "checkpoint",
        verbose=0 if quiet else 1,
    )
    model.check_parameters()
    dataset = group.main_first(lambda: read(source, **options))
    command = shlex.join(["selfview", *sys.argv[1:]])
    rows = as_rows(dataset.X)
    about: dict[str, Any] = {"data": source, "options": options, "command": command}
    here = describe(model, rows, groups=dataset.groups, **about)
    if config is not None and group.is_main:
        _notes(f"{what}: the result may differ" for what in earlier.differences(here))
    return Plan(model, dataset, rows, here, out, resume, group)


def _same_threads(earlier: Config) -> None:
    """Sums are split among threads, so that their number is part of the bits."""
    threads = earlier.environment.get("threads")
    if isinstance(threads, int) and 0 < threads <= 1024:
        import torch

        torch.set_num_threads(threads)


def _notes(lines: Any) -> None:
    for line in lines:
        typer.echo(f"selfview: note: {line}", err=True)


def _show_decisions(plan: Plan) -> None:
    """Print what each column of a mixed table is taken for."""
    how = plan.dataset.preparation
    decisions = how.decisions if isinstance(how, TableFilePreparation) else None
    if decisions is not None:
        typer.echo(f"{decisions}\n")


def run(plan: Plan, *, tensorboard: bool, report: bool) -> None:
    """Fit, judge and write the run folder; of several processes, only the first one writes."""
    if plan.group.is_main:
        _show_decisions(plan)
    events = Events(plan.events) if tensorboard else None
    plan.model.set_params(on_epoch=events)  # in all processes: the first one calls it
    with ExitStack() as stack:
        with plan.group.all_or_none():
            if plan.group.is_main:
                stack.enter_context(locked(plan.out))
                _prepare_folder(plan)
        _fit(plan)
        if events is not None:
            events.close()
        if plan.group.is_main:
            _write(plan, report)


def _prepare_folder(plan: Plan) -> None:
    if plan.resume and not list(plan.checkpoint.glob("checkpoint-*.safetensors")):
        _notes([f"there is no checkpoint in {plan.checkpoint}: starting from the beginning"])
    if not plan.resume:
        _forget(plan.checkpoint)
    plan.config.write(plan.checkpoint)


def _fit(plan: Plan) -> None:
    try:
        with warnings.catch_warnings():
            _warn_in_notes()
            plan.model.fit(plan.rows, groups=plan.dataset.groups)
    except SelfViewError:
        if plan.group.is_main:
            _leave_nothing(plan)
        raise


def _warn_in_notes() -> None:
    """Show the library's own warnings as notes, without their place in the source."""
    usual: Any = warnings.showwarning

    def show(message: Any, category: Any, *rest: Any) -> None:
        if issubclass(category, SelfViewWarning):
            _notes([message])
        else:
            usual(message, category, *rest)

    warnings.simplefilter("default", SelfViewWarning)
    warnings.simplefilter("ignore", CollapseWarning)  # the verdict is printed at the end
    warnings.showwarning = show  # type: ignore[assignment]  # until the context ends


def _write(plan: Plan, report: bool) -> None:
    model, dataset = plan.model, plan.dataset
    Z = model.transform(plan.rows)
    scores, mixing = _scores(dataset, Z), _mixing(model, dataset, Z)
    values = {} if mixing is None else {"mixing": mixing.values}
    save_run(
        plan.out, model, dataset, config=plan.config, scores=scores, events=plan.events, **values
    )
    _forget(plan.checkpoint)
    if (plan.out / "export").is_dir():
        _notes([f"{plan.out / 'export'} is of an earlier model: `selfview export` makes it anew"])
    judged = _judged(model, dataset, Z, report)
    if judged is not None and (line := in_words(judged)):
        typer.echo(line)
    elif first := next((name for name in FIRST if name in scores), None):
        typer.echo(f"{FIRST[first]} {100 * scores[first]:.1f} %")
    if mixing is not None:
        typer.echo(f"How groups mix: {mixing.note}")
        show_table(mixing.table)
    if report:
        typer.echo(try_report(plan.out, model, dataset, plan.rows, Z, mixing=mixing, scores=judged))
    typer.echo(f"{model.health_['verdict']}; the run is in {plan.out}")


def _scores(dataset: Dataset, Z: Any) -> dict[str, float]:
    """How much of the labels the embedding holds, on rows held out; nothing without labels."""
    if dataset.y is None:
        return {}
    split: Any = None if dataset.test is None else (dataset.train, dataset.test)
    measures = ["linear", "clustering"]
    if not dataset.n_classes:
        measures = ["regression"]
        split = random_fifth(len(dataset)) if split is None else split
    try:
        with warnings.catch_warnings():
            _warn_in_notes()
            return evaluate(Z, dataset.y, split=split, measures=measures)
    except SelfViewError as error:  # labels that can't be scored must not cost the model
        _notes([f"there are no scores: {error}"])
        return {}


def _judged(model: SelfView, dataset: Dataset, Z: Any, report: bool) -> Scores | None:
    """The embedding beside raw features and PCA, which takes seconds: for the report anyway."""
    try:
        return score_table(dataset, Z, columns_unit(model)) if report else None
    except SelfViewError:  # the report tells
        return None


def _mixing(model: SelfView, dataset: Dataset, Z: Any) -> Scores | None:
    """How well groups are mixed in the embedding and in PCA; nothing without groups."""
    try:
        return mixing_table(dataset, Z, columns_unit(model))
    except SelfViewError as error:
        _notes([f"how groups mix was not measured: {error}"])
        return None


def _leave_nothing(plan: Plan) -> None:
    """After a failure: no trace of a run that has no checkpoint to go on from."""
    if not list(plan.checkpoint.glob("checkpoint-*.safetensors")):
        _forget(plan.checkpoint)
        if not any(plan.out.iterdir()):
            plan.out.rmdir()


def _forget(folder: Path) -> None:
    """Remove the state of a fit from `folder`, and the folder if nothing else is in it."""
    for path in (*folder.glob("*.safetensors"), folder / FILE):
        path.unlink(missing_ok=True)
    Events.forget(folder / EVENTS)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def show(plan: Plan) -> None:
    """Say what the fit would do."""
    plan.model.set_params(checkpoint=None)  # nothing is written
    found = plan.model.forecast(plan.rows)
    _show_decisions(plan)
    for name, words in _lines(plan, found).items():
        typer.echo(f"{name:<9} {words}")


def _lines(plan: Plan, found: Forecast) -> dict[str, str]:
    shape = " x ".join(map(str, found.shape))
    known = f"{plan.dataset.n_classes} classes" if plan.dataset.n_classes else "measurements"
    labels = f", {known} (for scores only)" * (plan.dataset.y is not None)
    groups = plan.dataset.groups
    if groups is not None:
        labels += f", {_count(len({*groups.tolist()}), 'group')} (not to be learned)"
    time = "not known" if found.seconds is None else f"about {duration(found.seconds)}"
    memory = "not known" if found.memory is None else f"about {found.memory / 1e6:,.0f} MB"
    each = found.steps // found.epochs
    there = "; it holds a finished run, which only --force replaces" * finished(plan.out)
    return {
        "data": f"{plan.config.data}",
        "rows": f"{found.rows:,}{labels}",
        "features": shape
        + ", of different scale: each divided by its standard deviation" * found.rescaled,
        "encoder": f"{found.encoder}, {found.parameters / 1e6:.2f} M parameters with the head",
        "epsilon": f"{found.epsilon:.4g}",
        "steps": f"{found.steps:,} ({found.epochs:,} epochs of {each:,})",
        "time": f"{time}, {found.precision} on {found.device}, {_count(found.threads, 'thread')}",
        "memory": f"{memory} at the peak",
        "output": f"{plan.out} (nothing was written: this is a dry run{there})",
    }


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
