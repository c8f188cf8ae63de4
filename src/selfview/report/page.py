"""One file that holds everything: markup, style, scripts, the plotting library and the data."""

import re
from importlib.resources import files
from typing import Any

from selfview.errors import MissingDependencyError
from selfview.report.payload import compressed

SCRIPTS = (
    "payload.js", "theme.js", "tables.js", "content.js", "rows.js", "map.js",
    "details.js", "clusters.js", "tissue.js", "curves.js", "main.js",
)  # fmt: skip


def render(**context: Any) -> str:
    """The page of the given context; every value is escaped unless it is our own file."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise _missing(error) from error
    library = get_plotlyjs()
    found = re.search(r"plotly\.js v([\d.]+)", library[:500])
    return filled(
        "report.html",
        SCRIPTS,
        library=compressed(library.encode()),
        library_version=found.group(1) if found else "of unknown version",
        **context,
    )


def filled(template: str, scripts: tuple[str, ...], **context: Any) -> str:
    """A template of ours with the style and these scripts in it."""
    try:
        from jinja2 import Environment
    except ImportError as error:
        raise _missing(error) from error
    # What a run folder doesn't say is left out of the page rather than an error.
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    script = "\n".join(asset(name) for name in scripts)
    return environment.from_string(asset(template)).render(
        style=asset("report.css"), script=script, **context
    )


def _missing(error: ImportError) -> MissingDependencyError:
    return MissingDependencyError(
        f"a report needs plotly and jinja2 ({error.name} is missing): pip install 'selfview[plots]'"
    )


def asset(name: str) -> str:
    """A file of the page as text."""
    return files("selfview.report").joinpath("assets", name).read_text(encoding="utf-8")
