"""`selfview demo`: the method on scikit-learn's digits, beside raw features and PCA."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from selfview.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from selfview.data import Dataset
    from selfview.method import SelfView

ROWS = "scikit-learn's digits"
PICTURE = "embedding.png"


def demo(
    out: Annotated[Path, typer.Option(help="Run folder to write, with a picture.")] = Path(
        "runs/demo"
    ),
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Passes over the 1,797 digits; SelfView's own if not given."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Learn scikit-learn's digits without labels; compare with raw features and PCA.

    Example: selfview demo --out runs/demo
    """
    from selfview import SelfView
    from selfview.cli.compare import show
    from selfview.cli.report import try_report
    from selfview.data import load_dataset
    from selfview.report.scores import score_table
    from selfview.rows.conversion import as_rows

    _check_own(out)
    digits = load_dataset("digits")
    model = SelfView(n_components=10, epochs=epochs or "auto", random_state=seed)
    Z = model.fit_transform(digits.X)
    scores = score_table(digits, Z, seed=seed)
    assert scores is not None  # of so many rows
    _save(out, model, digits, scores.values)
    typer.echo(f"Digits. {scores.note}")
    show(scores.table)
    note = _draw(out, Z, digits, seed)
    typer.echo(f"The run is in {out}: model, metrics.json{note}")
    page = try_report(out, model, digits, as_rows(digits.X), Z, scores=scores)
    typer.echo(f"The {page}" if page.startswith("report") else page)


def _check_own(out: Path) -> None:
    """A demo may replace a demo, and nothing else."""
    from selfview.cli.run_folder import finished, home
    from selfview.saving.files import read_object

    metrics = home(out) / "metrics.json"
    known = str(read_object(metrics).get("data")) if metrics.is_file() else ""
    if finished(out) and not known.startswith(ROWS):
        raise InputError(f"{out} holds a finished run of other rows: name a folder with --out")


def _save(out: Path, model: "SelfView", digits: "Dataset", scores: dict[str, Any]) -> None:
    import shlex
    import sys

    from selfview.cli.configuration import describe
    from selfview.cli.run_folder import save_run
    from selfview.saving.files import locked

    command = shlex.join(["selfview", *sys.argv[1:]])
    config = describe(model, digits.X, data="digits", options={}, command=command)
    rows = f"{ROWS}, {len(digits):,} rows of {digits.X.shape[1]}"
    with locked(out):
        save_run(out, model, digits, config=config, scores=scores, data=rows)
        (out / PICTURE).unlink(missing_ok=True)  # of an earlier demo


def _draw(out: Path, Z: Any, digits: "Dataset", seed: int) -> str:
    """Draw the embedding, and say so; without matplotlib say how to get it."""
    from sklearn.manifold import TSNE

    from selfview.paper.figures import new_figure, picture, scatter
    from selfview.saving.files import write_bytes

    try:
        figure = new_figure(6.4, 6.0)  # before t-SNE, which takes seconds
    except MissingDependencyError:
        return "; for a picture of the embedding: pip install 'selfview[plots]'"
    points = TSNE(random_state=seed).fit_transform(Z)
    title = "scikit-learn's digits: t-SNE of the 10-d embedding, learned without labels"
    scatter(figure.add_subplot(), points, digits.y, digits.classes, title)
    write_bytes(out / PICTURE, picture(figure, "png"))
    return f" and {PICTURE}"
