"""`plot` and `report`: a fitted embedding to look at.

Both are made by the report room, which stands after this one: it is imported when they are called.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.clusters import Clusters
from selfview.errors import InputError
from selfview.rows.base import Rows


class ShowMixin:
    """The part of an estimator that shows what it has learned."""

    seed_: int
    clusters_: Clusters | None
    embedding_: NDArray[np.float32]

    _rows: Callable[[Any], Rows]
    _fitted_network: Callable[[], Any]
    transform: Callable[[Any], Any]

    def plot(self, color: Any = None, X: Any = None, ax: Any = None) -> Any:
        """Draw the embedding in the plane: itself if it has two columns, else a t-SNE of it.

        Needs matplotlib (the extra `plots`). Without openTSNE (the extra `graph`) the t-SNE is
        scikit-learn's.

        Parameters
        ----------
        color : array (n,) or None, default None
            A label or a number for each row: categories get a legend, measurements a colour bar.
            None: clusters, if the model has them.
        X : rows as in `fit`, or None, default None
            None: the rows of `fit`, whose embedding is in `embedding_`.
        ax : matplotlib Axes or None, default None
            None: those of a new figure.

        Returns
        -------
        matplotlib Axes
        """
        from selfview.report.drawing import draw_embedding

        self._fitted_network()
        if X is None and not hasattr(self, "embedding_"):
            raise InputError("X must be given: the embedding of the rows of fit was not kept")
        Z: NDArray[Any] = self.embedding_ if X is None else np.asarray(self.transform(X))
        if color is None and self.clusters_ is not None:
            color = [f"cluster {label}" for label in self.clusters_.assign(Z)]
        return draw_embedding(Z, color, ax, self.seed_)

    def report(
        self,
        path: str | Path,
        X: Any,
        labels: Any = None,
        *,
        groups: Any = None,
        ids: Any = None,
        layout: str = "auto",
        clusters: int | None = None,
    ) -> Path:
        """Write the page that `selfview report` writes: one HTML file that needs no network.

        Needs plotly and jinja2 (the extra `plots`).

        Parameters
        ----------
        path : str or Path
            The file is replaced if it is there.
        X : rows as in `fit`
        labels : array (n,) or None, default None
            To colour by, and to judge the embedding by.
        groups : array (n,) or None, default None
            Whose mixing is measured.
        ids : array (n,) or None, default None
            A name for each row.
        layout : {"auto", "tsne", "pca"}, default "auto"
            Of the map. "auto": t-SNE if openTSNE is installed.
        clusters : int or None, default None
            Number of clusters. None: those of the model, or as many as "auto" finds.

        Returns
        -------
        Path
        """
        from selfview.report.models import dataset_of, page_of, preparation_of
        from selfview.saving.files import write_bytes

        rows, path = self._rows(X), Path(path)
        rows.check()
        beside = {"labels": labels, "groups": groups, "ids": ids}
        dataset = dataset_of(path.stem, X, rows, preparation_of(self), **beside)
        Z = np.asarray(self.transform(rows))
        html = page_of(self, dataset, rows, Z, layout=layout, clusters=clusters)
        write_bytes(path, html.encode("utf-8", "replace"))
        return path
