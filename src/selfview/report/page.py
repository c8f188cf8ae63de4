"""One file that holds everything: markup, style, scripts, the plotting library and the data."""

import re
from importlib.resources import files
from typing import Any

from selfview.errors import MissingDependencyError
from selfview.report.payload import compressed

SCRIPTS = (
    "payload.js", "theme.js", "content.js", "rows.js", "map.js",
    "details.js", "clusters.js", "tissue.js", "curves.js", "main.js",
)  # fmt: skip


def render(**context: Any) -> str:
    """The page of the given context; every value is escaped unless it is our own file."""
    try:
        from jinja2 import Environment
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingDependencyError(
            f"a report needs plotly and jinja2 ({error.name} is missing): "
            "pip install 'selfview[plots]'"
        ) from error
    # What a run folder doesn't say is left out of the page rather than an error.
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    library = get_plotlyjs()
    found = re.search(r"plotly\.js v([\d.]+)", library[:500])
    return environment.from_string(asset("report.html")).render(
        style=asset("report.css"),
        script="\n".join(asset(name) for name in SCRIPTS),
        library=compressed(library.encode()),
        library_version=found.group(1) if found else "of unknown version",
        **context,
    )


def asset(name: str) -> str:
    """A file of the page as text."""
    return files("selfview.report").joinpath("assets", name).read_text(encoding="utf-8")
