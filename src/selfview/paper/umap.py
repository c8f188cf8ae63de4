"""UMAP under the surface of the other methods, for the tables' row of it; needs umap-learn."""

import warnings
from dataclasses import dataclass
from typing import Any

from selfview.errors import MissingDependencyError


@dataclass
class UMAP:
    """umap-learn's UMAP with its own settings, and as many components as the other methods."""

    n_components: int = 10
    random_state: int = 0

    n_parameters_ = None  # the fitted rows themselves are the model

    def fit_transform(self, X: Any) -> Any:
        """The embedding of `X`."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of its own imports
                import umap
        except ImportError as error:
            raise MissingDependencyError(
                "the row of UMAP needs umap-learn: pip install 'selfview[peers]'"
            ) from error
        rows = X.reshape(len(X), -1) if getattr(X, "ndim", 2) > 2 else X
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "n_jobs overridden": as a seed asks for
            warnings.simplefilter("ignore", FutureWarning)
            model = umap.UMAP(n_components=self.n_components, random_state=self.random_state)
            return model.fit_transform(rows)
