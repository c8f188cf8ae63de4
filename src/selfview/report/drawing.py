"""The embedding as a picture of matplotlib."""

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.errors import InputError, MissingDependencyError
from selfview.paper.figures import COLOURS
from selfview.report.columns import column_of
from selfview.report.plane import Plane, lay_out, scikit_tsne

MOST_IN_LEGEND = 30


def draw_embedding(Z: NDArray[Any], color: Any, ax: Any, seed: int) -> Any:
    """Draw the rows of an embedding (n, dim) in the plane, coloured by a value of each.

    Parameters
    ----------
    Z : ndarray (n, dim)
    color : array (n,) or None
        Categories or measurements.
    ax : matplotlib Axes or None
    seed : int
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingDependencyError(
            "plot needs matplotlib: pip install 'selfview[plots]'"
        ) from error
    values = None if color is None else np.asarray(color)
    if values is not None and values.shape != (len(Z),):
        raise InputError(
            f"color must have a value for each of the {len(Z)} rows, got {values.shape}"
        )
    plane = _plane(Z, seed)
    if ax is None:
        ax = pyplot.subplots(figsize=(6.4, 6.0), layout="constrained")[1]
    style = {"s": float(np.clip(9000 / max(1, len(Z)), 2, 30)), "linewidths": 0}
    column = None if values is None else column_of("color", values)
    if column is None:
        ax.scatter(*plane.points.T, color=COLOURS[0], **style)
    elif column.codes is None:
        drawn = ax.scatter(*plane.points.T, c=column.values, cmap="viridis", **style)
        ax.figure.colorbar(drawn, ax=ax, shrink=0.7)
    else:
        for code, name in enumerate(column.names):
            points = plane.points[column.codes == code]
            ax.scatter(*points.T, color=COLOURS[code % len(COLOURS)], label=name, **style)
        if len(column.names) <= MOST_IN_LEGEND:
            ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, markerscale=2)
    ax.set(xticks=[], yticks=[], title=plane.method, aspect="equal")
    return ax


def _plane(Z: NDArray[Any], seed: int) -> Plane:
    if Z.shape[1] == 2:
        return Plane(np.asarray(Z, np.float64), "Embedding", "The embedding itself.")
    if find_spec("openTSNE") is None and len(Z) >= 10:
        return scikit_tsne(Z, seed)
    return lay_out(Z, "auto", seed)
