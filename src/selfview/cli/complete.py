"""What the shell offers when Tab is pressed."""

from collections.abc import Callable
from pathlib import Path

Completer = Callable[[str], list[str]]


def words(*choices: str) -> Completer:
    """A completion by fixed words."""
    return lambda incomplete: [word for word in choices if word.startswith(incomplete)]


def datasets(incomplete: str) -> list[str]:
    """Names of datasets."""
    from selfview.data.named import DATASETS

    return [name for name in DATASETS if name.startswith(incomplete)]


def data(incomplete: str) -> list[str]:
    """Names of datasets, and files and folders."""
    return datasets(incomplete) + paths(incomplete)


def paths(incomplete: str) -> list[str]:
    """Files and folders that start with what was typed."""
    head, slash, tail = incomplete.rpartition("/")
    folder = Path(head + slash or ".").expanduser()
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    hidden = tail.startswith(".")
    return [
        head + slash + entry.name + "/" * entry.is_dir()
        for entry in entries
        if entry.name.startswith(tail) and (hidden or not entry.name.startswith("."))
    ]


def methods(incomplete: str) -> list[str]:
    """Names of methods, also after a comma."""
    from selfview.paper.methods import METHODS

    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    names = [name for name in ("all", *METHODS) if name not in taken]
    return [before + comma + name for name in names if name.startswith(last)]
