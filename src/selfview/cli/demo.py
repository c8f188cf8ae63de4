"""`selfview demo`."""

import typer


def demo() -> None:
    """Learn scikit-learn's digits and compare with raw features and PCA."""
    typer.echo("not built yet")
    raise typer.Exit(1)
