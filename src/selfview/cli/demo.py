"""`selfview demo`: the method on scikit-learn's digits, beside raw features and PCA."""

from pathlib import Path
from typing import Annotated, Any

import typer

EPOCHS = 100  # 800 steps: under a minute and a half on two cores

COLUMNS = {
    "linear_accuracy": "linear",
    "kmeans_acc": "k-means ACC",
    "kmeans_nmi": "NMI",
    "kmeans_ari": "ARI",
}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the model, metrics and picture.")] = Path(
        "runs/demo"
    ),
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the 1,797 digits.")] = EPOCHS,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Learn scikit-learn's digits without labels; compare with raw features and PCA.

    Example: selfview demo --out runs/demo
    """
    import json

    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    from selfview import SelfView, __version__
    from selfview.evaluation import evaluate
    from selfview.report.scatter import draw_scatter

    X, y = load_digits(return_X_y=True)
    model = SelfView(n_components=10, epochs=epochs, random_state=seed)
    Z = model.fit_transform(X)
    embeddings = {
        "raw features (64)": X,
        "PCA (10)": PCA(10, random_state=seed).fit_transform(X),
        "selfview (10)": Z,
    }
    scores = {
        name: evaluate(E, y, measures=["linear", "clustering"], random_state=seed)
        for name, E in embeddings.items()
    }
    model.save(out)
    metrics = {
        "data": "scikit-learn's digits, 1,797 rows of 64",
        "selfview": __version__,
        "epochs": epochs,
        "seed": seed,
        "seconds": round(model.history_[-1]["seconds"], 1),
        "health": model.health_,
        "scores": scores,
    }
    (out / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
    points = TSNE(random_state=seed).fit_transform(Z)
    title = "scikit-learn's digits: t-SNE of the 10-d embedding, learned without labels"
    draw_scatter(points, y, out / "embedding.png", title=title)
    _show(scores)
    typer.echo(f"Model, metrics.json and embedding.png are in {out}")


def _show(scores: dict[str, dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Digits, in percent: linear probe on a held-out fifth, k-means on all")
    table.add_column("features")
    best = {key: max(row[key] for row in scores.values()) for key in COLUMNS}
    for heading in COLUMNS.values():
        table.add_column(heading, justify="right")
    for name, row in scores.items():
        cells = (f"{100 * row[key]:.1f}" for key in COLUMNS)
        marked = (
            f"[bold]{cell}[/bold]" if row[key] == best[key] else cell
            for key, cell in zip(COLUMNS, cells, strict=True)
        )
        table.add_row(name, *marked)
    Console().print(table)
