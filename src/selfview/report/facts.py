"""The words and tables of a run: what was done, how it went, how good it is."""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selfview.errors import FileFormatError
from selfview.saving.files import read_object
from selfview.training.progress import duration

# Column of the history, its title, and what it means.
CURVES = {
    "loss": ("Loss", "What is minimised: the next curve in nats, and InfoNCE if it is on."),
    "loss_over_log_k": (
        "Loss / log k",
        "How far the prediction of one view is from the target of the other, on a scale that "
        "doesn't depend on the number of prototypes.",
    ),
    "entropy": ("Entropy of the targets", "In nats; falls in the warm-up and then stays."),
    "temperature": ("Temperature", "Of the targets; moves to keep their entropy."),
    "marginal_error": (
        "Marginal error",
        "How unequally the targets use the prototypes; 0 is equal.",
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


@dataclass(frozen=True)
class Line:
    """A line of a table: a name, a value, and what it means."""

    name: str
    value: str
    meaning: str = ""


def health_lines(records: Records) -> list[Line]:
    """The metrics of a run's health, each with its meaning."""
    health = mapping(records.metrics.get("health"))
    parameters = mapping(records.config.get("parameters"))
    k, dim = parameters.get("n_prototypes", "k"), parameters.get("n_components", "its")
    filled = number(health.get("effective_rank", 0))
    known = {
        "neighbour_perplexity": (
            "Neighbour perplexity",
            "Among how many rows of the embedding a row's nearest hide.",
        ),
        "neighbour_perplexity_pca": ("Of PCA", f"The same in {dim} principal components."),
        "structure": ("Structure", "How far nearest rows stand out; noise has 1 or less."),
        "effective_rank": (
            "Effective rank",
            f"The embedding fills {filled} of its {dim} directions.",
        ),
        "prototype_use": (
            "Prototype use",
            f"Share of the {k} prototypes in use; 1 is all of them equally.",
        ),
        "entropy_over_log_k": (
            "Uncertainty",
            "How unsure a row is of its prototype: 0 is certain, 1 has no idea.",
        ),
        "loss_over_log_k": (
            "Loss / log k",
            "The last loss, on a scale free of k; it rises while targets sharpen.",
        ),
        "marginal_error": CURVES["marginal_error"],
        "different_rows": (
            "Rows compared",
            "Different rows in the sample that the first three are of.",
        ),
        "loss": ("Loss", "That of the last epoch."),
    }
    lines = []
    for name in (*known, *(key for key in health if key not in known)):
        value = health.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            title, meaning = known.get(name, (name.replace("_", " "), ""))
            lines.append(Line(title, number(value), meaning))
    return lines


def lines_of(config: Mapping[str, Any], *names: str) -> list[Line]:
    """The entries of several objects of a config.json."""
    entries = [entry for name in names for entry in mapping(config.get(name)).items()]
    return [Line(str(name), _entry(value)) for name, value in entries]


def _entry(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)


def parameter_lines(records: Records, found: int) -> list[Line]:
    """The parameters of a fit; of those that were "auto", what they became, where that is known.

    `found` is the number of clusters.
    """
    metrics = records.metrics
    known: dict[str, Any] = {k: metrics[k] for k in ("epochs", "epsilon") if k in metrics}
    known |= {"n_clusters": found, "metric": "Euclidean distance or angle"}
    known |= mapping(metrics.get("decided"))
    lines = []
    for line in lines_of(records.config, "parameters"):
        if line.value == "auto" and line.name in known:
            line = Line(line.name, number(known[line.name]), "auto")
        lines.append(line)
    return lines


def number(value: Any) -> str:
    """A number for reading: three to four significant digits, thousands separated."""
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
