"""A picture of an embedding: points in the plane, coloured by label."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.errors import MissingDependencyError

# Paul Tol's "muted" and black: told apart also by readers who are colour-blind.
PALETTE = (
    *("#332288", "#88CCEE", "#44AA99", "#117733", "#999933"),
    *("#DDCC77", "#CC6677", "#882255", "#AA4499", "#000000"),
)


def draw_scatter(points: NDArray[Any], labels: NDArray[Any], path: Path, *, title: str) -> None:
    """Write a PNG of `points` (n, 2), one colour and one number in the plane for each label.

    Parameters
    ----------
    points : ndarray (n, 2)
    labels : ndarray (n,)
    path : Path
        Of the PNG; its folder must exist.
    title : str
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            "pictures need matplotlib: pip install 'selfview[plots]'"
        ) from error
    figure = Figure(figsize=(6.4, 6.0), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for i, label in enumerate(np.unique(labels)):
        group = points[labels == label]
        colour = PALETTE[i % len(PALETTE)]
        axes.scatter(group[:, 0], group[:, 1], s=6, color=colour, linewidths=0, alpha=0.8)
        # The name stands at the point nearest to the middle of its group, readable also in grey.
        middle = np.median(group, axis=0)
        nearest = group[np.argmin(((group - middle) ** 2).sum(1))]
        axes.annotate(
            str(label),
            nearest,
            ha="center",
            va="center",
            fontsize=13,
            fontweight="bold",
            bbox={"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": colour},
        )
    axes.set(title=title, xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)
    FigureCanvasAgg(figure).print_figure(str(path))
