"""The command line: `selfview COMMAND ...`.

Every module of this package holds one command (or one group) and imports only typer at its top;
what a command works with is imported when it runs. Errors of ours become one line on standard
error and exit code 1; wrong calls exit with 2.
"""

import sys

import typer

from selfview.cli import compare, data, demo, embed, evaluate, explain, export, fit, paper, report
from selfview.errors import SelfViewError

app = typer.Typer(
    name="selfview",
    help="Small, discriminative embeddings from unlabelled data, without augmentations.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("fit")(fit.fit)
app.command("embed")(embed.embed)
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("explain")(explain.explain)
app.command("report")(report.report)
app.command("export")(export.export)
app.add_typer(data.app, name="data")
app.add_typer(paper.app, name="paper")


def _version(show: bool) -> None:
    if show:
        from selfview import __version__

        typer.echo(f"selfview {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    pass


def main() -> None:
    """Run the command line; the exit code is 0, 1 for an error, 2 for a wrong call."""
    try:
        app(prog_name="selfview")  # also for `python -m selfview`: completion goes by it
    except (SelfViewError, MemoryError) as error:
        _fail(str(error) or "not enough memory")
    except OSError as error:
        _fail(f"{error.filename or 'the system'}: {error.strerror or error}")


def _fail(message: str) -> None:
    line = " ".join(message.split())  # some messages of others have several
    typer.echo(f"selfview: {line}", err=True)
    sys.exit(1)
