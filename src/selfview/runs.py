"""A run folder: the model, how its rows were prepared, and what came of it.

| file | what |
|---|---|
| model.safetensors | the model, read by `SelfView.load` |
| preparation.json, .safetensors | how files become rows, read by `selfview.data.load_preparation` |
| config.json | data, options and parameters of the fit |
| history.csv | a row an epoch |
| metrics.json | health, and scores where there are labels |
"""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selfview.checkpoint import write_bytes
from selfview.data import Dataset, Preparation, load_preparation
from selfview.method import SelfView
from selfview.storage import plain_parameters


def save_run(
    folder: Path,
    model: SelfView,
    dataset: Dataset,
    *,
    source: str,
    options: Mapping[str, Any],
    scores: Mapping[str, float],
) -> None:
    """Write all files of a run."""
    from selfview import __version__

    model.save(folder)
    if dataset.preparation is not None:
        dataset.preparation.save(folder)
    config = {
        "selfview": __version__,
        "data": source,
        "options": dict(options),
        "parameters": plain_parameters(model),
    }
    _write_json(folder / "config.json", config)
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
    with (folder / "history.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(model.history_[0]))
        writer.writeheader()
        writer.writerows(model.history_)


def load_run(folder: Path) -> tuple[SelfView, Preparation]:
    """The model of a run folder, and the preparation of its rows."""
    return SelfView.load(folder), load_preparation(folder)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=2, default=str, ensure_ascii=False)
    write_bytes(path, (text + "\n").encode())
