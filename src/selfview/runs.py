"""A run folder: the model, how its rows were prepared, and what came of it.

| file | what |
|---|---|
| model.safetensors | the model, read by `SelfView.load` |
| preparation.json, .safetensors | how files become rows, read by `selfview.data.load_preparation` |
| config.json | data, options, parameters and machine of the fit, read by `fit --config` |
| history.csv | a row an epoch |
| metrics.json | health, and scores where there are labels |
| checkpoint/ | only of a run that was interrupted: its state and its config.json |
| tensorboard/ | with `--tensorboard`: event files |
"""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selfview.checkpoint import write_bytes
from selfview.configuration import Config
from selfview.data import Dataset, Preparation, load_preparation
from selfview.method import SelfView


def save_run(
    folder: Path,
    model: SelfView,
    dataset: Dataset,
    *,
    config: Config,
    scores: Mapping[str, float],
) -> None:
    """Write all files of a run."""
    model.save(folder)
    if dataset.preparation is not None:
        dataset.preparation.save(folder)
    config.write(folder)
    metrics = {
        "rows": len(dataset),
        "shape": list(dataset.shape),
        "epsilon": model.epsilon_,
        "epochs": model.epochs_,
        "seconds": model.history_[-1]["seconds"],
        "health": model.health_,
        "scores": dict(scores),
    }
    _write_json(folder / "metrics.json", metrics)
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, list(model.history_[0]))
    writer.writeheader()
    writer.writerows(model.history_)
    write_bytes(folder / "history.csv", table.getvalue().encode())


def load_run(folder: Path) -> tuple[SelfView, Preparation]:
    """The model of a run folder, and the preparation of its rows."""
    return SelfView.load(folder), load_preparation(folder)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=2, default=str, ensure_ascii=False)
    write_bytes(path, (text + "\n").encode())
