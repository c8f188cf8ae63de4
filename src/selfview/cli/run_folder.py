"""A run folder: the model, how its rows were prepared, and what came of it.

| file | what |
|---|---|
| model.safetensors | the model, read by `SelfView.load` |
| preparation.json, .safetensors | how files become rows, read by `selfview.data.load_preparation` |
| config.json | data, options, parameters and machine of the fit, read by `fit --config` |
| history.csv | a row an epoch |
| clusters.csv | the cluster of every row, if `--clusters` was given |
| metrics.json | health, and scores where there are labels |
| tensorboard/ | with `--tensorboard`: event files |
| checkpoint/ | only of a run that was interrupted: its state, config.json and tensorboard/ |
| .whole/ | only if a kill came while a finished run was put in place: all its files |

A run replaces an earlier one whole. Its files are written to `.new/`, which becomes `.whole/` by
one rename; only then are they copied over the earlier ones. Readers ask `home` where the files are.
"""

import csv
import io
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selfview.cli.configuration import Config
from selfview.data import Dataset, Preparation, load_preparation, read
from selfview.data.folders import check_local
from selfview.data.given_rows import GivenRows
from selfview.data.preparation import ROW_OPTIONS
from selfview.data.tables import TableFilePreparation
from selfview.errors import InputError
from selfview.method import SelfView
from selfview.saving.files import read_object, unwritable, write_bytes, write_object
from selfview.saving.model_file import FILE as MODEL
from selfview.training.tensorboard import Events

NEW, WHOLE = ".new", ".whole"
EVENTS, REPORT = "tensorboard", "report.html"
_FILES = (
    *(MODEL, "preparation.json", "preparation.safetensors", "config.json"),
    *("metrics.json", "history.csv", "clusters.csv", REPORT),
)


def save_run(
    folder: Path,
    model: SelfView,
    dataset: Dataset,
    *,
    config: Config,
    scores: Mapping[str, Any],
    events: Path | None = None,
    **further: Any,
) -> None:
    """Write all files of a run, in place of those of an earlier one.

    The caller holds the folder's lock. `scores` and what `further` names go to metrics.json;
    `events` is the folder of TensorBoard's event files, which moves into the run.
    """
    put_in_place(folder)
    new = folder / NEW
    try:
        _clear(new)
        _write_files(new, model, dataset, config)
        write_object(new / "metrics.json", _metrics(model, dataset) | {"scores": scores} | further)
        if events is not None and events.is_dir():
            events.rename(new / EVENTS)
        new.rename(folder / WHOLE)  # from here on the folder holds this run
    except OSError as error:
        raise unwritable(folder, error) from error
    finally:
        _clear(new)
    put_in_place(folder)


def _write_files(folder: Path, model: SelfView, dataset: Dataset, config: Config) -> None:
    model.save(folder)
    if dataset.preparation is not None:
        dataset.preparation.save(folder)
    config.write(folder)
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, list(model.history_[0]))
    writer.writeheader()
    writer.writerows(model.history_)
    write_bytes(folder / "history.csv", table.getvalue().encode())
    if model.n_clusters is not None:
        write_bytes(folder / "clusters.csv", _clusters(model, dataset).encode())


def _clusters(model: SelfView, dataset: Dataset) -> str:
    """The cluster of every row as a table: its name, or its number from 0, and the cluster."""
    table = io.StringIO(newline="")
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["id", "cluster"])
    names = range(len(dataset)) if dataset.ids is None else dataset.ids
    writer.writerows(zip(names, model.labels_.tolist(), strict=True))
    return table.getvalue()


def _metrics(model: SelfView, dataset: Dataset) -> dict[str, Any]:
    return {
        "rows": len(dataset),
        "shape": list(dataset.shape),
        "epsilon": model.epsilon_,
        "epochs": model.epochs_,
        "decided": model.decided_,
        "seconds": model.history_[-1]["seconds"],
        "health": model.health_,
    }


def put_in_place(folder: Path) -> None:
    """Bring a whole run to its place, also one whose process was killed before it could."""
    whole = folder / WHOLE
    if not whole.is_dir():
        return
    try:
        for name in _FILES:
            _replace(whole / name, folder / name)
        Events.forget(folder / EVENTS)
        if (whole / EVENTS).is_dir():
            shutil.copytree(whole / EVENTS, folder / EVENTS, dirs_exist_ok=True)
        whole.rename(folder / NEW)  # what a kill leaves of it is no run any more
        _clear(folder / NEW)
    except OSError as error:
        raise unwritable(folder, error) from error


def _replace(source: Path, target: Path) -> None:
    """A copy of the file at `target`, or nothing there if there is no such file."""
    if source.is_file():
        write_bytes(target, source.read_bytes())
    else:
        target.unlink(missing_ok=True)


def _clear(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)


def home(folder: Path) -> Path:
    """Where the files of the folder's run are: of one run all, at any moment."""
    return folder / WHOLE if (folder / WHOLE).is_dir() else folder


def finished(folder: Path) -> bool:
    """Whether the folder holds a run that came to its end, or a model saved from Python."""
    return (home(folder) / MODEL).is_file()


def check_replaceable(folder: Path, *, force: bool) -> None:
    """Raise InputError if the folder holds a finished run and `force` doesn't give it up."""
    if finished(folder) and not force:
        raise InputError(
            f"{folder} holds a finished run: name another folder with --out, or replace the run "
            "with --force"
        )


def check_file_to_write(path: Path) -> None:
    """Raise InputError if `path` is standard output, or a file that makes up a finished run."""
    if path == Path("-"):
        raise InputError("this is not written to standard output: name a file with --out")
    if path.name in _FILES and path.name != REPORT and finished(path.parent):
        raise InputError(f"{path} is a file of the run in {path.parent}: name another file")


def rows_of_run(
    folder: Path, preparation: Preparation, data: str | None, options: Mapping[str, Any], call: str
) -> Dataset:
    """The rows of `data`, or those of the fit if it is None; `call` is the command to repeat."""
    config = home(folder) / "config.json"
    known = read_object(config) if config.is_file() else {}
    if data is not None:
        return read(data, preparation=preparation, **options)
    if "data" not in known:
        raise InputError(
            f"{folder} doesn't say which rows it was fitted on, as it was saved from Python: give "
            f"them as `{call} DATA`"
        )
    fitted = known.get("options")
    fitted = fitted if isinstance(fitted, dict) else {}
    options = {key: fitted[key] for key in ROW_OPTIONS if key in fitted} | dict(options)
    try:
        return read(str(known["data"]), preparation=preparation, **options)
    except InputError as error:
        raise InputError(f"{error}; give the rows as `{call} DATA`") from error


def load_run(folder: Path) -> tuple[SelfView, Preparation]:
    """The model of a run folder, and what reads rows for it.

    That is the preparation of the fit's rows, or for a model that was saved from Python
    (`SelfView.save`) a reader of rows as they are.
    """
    check_local(folder)
    where = home(folder)
    model = SelfView.load(where)
    if (where / "preparation.json").is_file():
        return model, load_preparation(where)
    if model.preparation_ is not None:
        table = model.preparation_.table_
        names = tuple(column.name for column in table.columns)
        return model, TableFilePreparation(names, header=True, table=table.to_json())
    names = tuple(map(str, getattr(model, "feature_names_in_", ())))
    if names:  # checked as rows are read; rows without names would be warned of
        del model.feature_names_in_
    return model, GivenRows(tuple(model.shape_in_), names)
