"""The words and tables of a run: what was done, how it went, how good it is."""

import csv
import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfview.errors import FileFormatError
from selfview.saving.files import read_object
from selfview.training.progress import duration

# Parameter of the model, and the option of `selfview fit` that sets it.
_FLAGS = {
    "n_components": "--components",
    "n_prototypes": "--prototypes",
    "epochs": "--epochs",
    "epsilon": "--epsilon",
    "batch_size": "--batch-size",
    "learning_rate": "--learning-rate",
    "recipe": "--recipe",
    "encoder": "--encoder",
    "precision": "--precision",
    "device": "--device",
    "random_state": "--seed",
}

# Column of the history, its title, and what it means.
CURVES = {
    "loss": ("Loss", "What is made small: the next curve in nats, and the contrast if it is on."),
    "loss_over_log_k": (
        "Loss / log k",
        "How far the prediction of one view is from the label of the other, on a scale that "
        "doesn't depend on the number of prototypes.",
    ),
    "entropy": ("Entropy of the labels", "In nats; comes down in the warm-up and then holds."),
    "temperature": ("Temperature", "Of the labels; moves to hold their entropy."),
    "marginal_error": (
        "Marginal error",
        "How unequally the labels use the prototypes; 0 is equal.",
    ),
    "learning_rate": ("Learning rate", "Of Adam, at the end of the epoch."),
}


@dataclass(frozen=True)
class Records:
    """The files of a run folder that a report reads."""

    config: dict[str, Any]
    metrics: dict[str, Any]
    history: dict[str, list[float]]


def read_records(folder: Path) -> Records:
    """config.json, metrics.json and history.csv of a run folder."""
    return Records(
        read_object(folder / "config.json"), read_object(folder / "metrics.json"), _history(folder)
    )


def _history(folder: Path) -> dict[str, list[float]]:
    path = folder / "history.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        names = list(rows[0]) if rows else []
        return {name: [float(row[name]) for row in rows] for name in names}
    except OSError as error:
        raise FileFormatError(f"{path} can't be read: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, csv.Error) as error:
        raise FileFormatError(f"{path} is damaged: {error}") from error


def mapping(value: Any) -> dict[str, Any]:
    """`value` if it is an object, else an empty one: people edit these files."""
    return value if isinstance(value, dict) else {}


def command_of(config: Mapping[str, Any], folder: Path) -> str:
    """The command that makes this run: as it was typed if that is known, else the same in full."""
    if isinstance(config.get("command"), str) and config["command"].strip():
        return str(config["command"])
    words = ["selfview", "fit", str(config.get("data", "DATA")), "--out", str(folder)]
    for name, value in mapping(config.get("options")).items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        else:
            words += [flag, *map(str, value if isinstance(value, list | tuple) else [value])]
    parameters = mapping(config.get("parameters"))
    for name, flag in _FLAGS.items():
        if parameters.get(name) not in (None, "auto"):
            words += [flag, str(parameters[name])]
    return shlex.join(words)


@dataclass(frozen=True)
class Line:
    """A line of a table: a name, a value, and what it means."""

    name: str
    value: str
    meaning: str = ""


def health_lines(records: Records) -> list[Line]:
    """The figures of a run's health, each in a sentence."""
    health = mapping(records.metrics.get("health"))
    parameters = mapping(records.config.get("parameters"))
    k, dim = parameters.get("n_prototypes", "k"), parameters.get("n_components", "its")
    sentences = {
        "neighbour_perplexity": "Among how many rows of the embedding a row's nearest hide.",
        "neighbour_perplexity_pca": "The same in " + str(dim) + " principal components.",
        "structure": "How far nearest rows stand out; noise has 1 or less.",
        "effective_rank": "The embedding fills {} of its " + str(dim) + " directions.",
        "prototype_use": "Share of the " + str(k) + " prototypes in use; 1 is all of them equally.",
        "entropy_over_log_k": "How unsure a row is of its prototype: 0 is certain, 1 has no idea.",
        "loss_over_log_k": "The last loss, on a scale free of k; it rises while labels sharpen.",
        "marginal_error": "How unequally the labels use the prototypes; 0 is equal.",
        "different_rows": "Different rows in the sample from which the first three figures are.",
        "loss": "That of the last epoch.",
    }
    titles = {
        "neighbour_perplexity": "Neighbour perplexity",
        "neighbour_perplexity_pca": "Of PCA",
        "structure": "Structure",
        "different_rows": "Rows compared",
        "effective_rank": "Effective rank",
        "prototype_use": "Prototype use",
        "entropy_over_log_k": "Uncertainty",
        "loss_over_log_k": "Loss / log k",
        "marginal_error": "Marginal error",
    }
    lines = []
    for name in (*sentences, *(key for key in health if key not in sentences)):
        value = health.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        meaning = sentences.get(name, "").format(number(value))
        lines.append(Line(titles.get(name, name.replace("_", " ")), number(value), meaning))
    return lines


def parameter_lines(config: Mapping[str, Any]) -> list[Line]:
    """The model's parameters as they were given."""
    return [
        Line(str(name), "none" if value is None else str(value))
        for name, value in mapping(config.get("parameters")).items()
    ]


def option_lines(config: Mapping[str, Any]) -> list[Line]:
    """What was said about the data, and what the fit ran on."""
    lines = [Line("data", str(config.get("data", "unknown")))]
    for name, value in mapping(config.get("options")).items():
        lines.append(Line(str(name), str(value)))
    for name, value in mapping(config.get("environment")).items():
        lines.append(Line(str(name), str(value)))
    return lines


def number(value: Any) -> str:
    """A number for reading: three to four digits that matter, thousands apart."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return "not finite"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if 1e-3 <= abs(value) < 1e5:
        text = f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))) - 1)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.2e}"


def time_spent(seconds: Any) -> str:
    """A time in the unit that people would take; metrics.json may say anything."""
    known = isinstance(seconds, int | float) and math.isfinite(seconds)
    return duration(seconds) if known else "unknown"
