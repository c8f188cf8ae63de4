"""The methods of the paper's tables and of comparisons, by name: where each is, and its cost."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from selfview.errors import MissingDependencyError


@dataclass(frozen=True)
class Method:
    """An estimator of this package, or of umap-learn."""

    title: str
    class_name: str
    home: str = "selfview.baselines"
    learned: bool = False  # by gradient steps: takes epochs, checkpoint, verbose
    sampled: bool = False  # takes fit_rows
    share: float = 0.0  # of a step of our method, in time
    version: int = 1  # raised when its results change: records of before no longer count
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"": {}})

    def make(self, **settings: Any) -> Any:
        """An unfitted estimator."""
        return getattr(import_module(self.home), self.class_name)(**settings)


@dataclass
class UMAP:
    """umap-learn's UMAP with its own settings, and as many components as the other methods."""

    n_components: int = 10
    random_state: int = 0

    n_parameters_ = None  # the fitted rows themselves are the model

    def fit_transform(self, X: Any) -> Any:
        """The embedding of `X`."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of its imports, and that a seed allows one thread only
            try:
                import umap
            except ImportError as error:
                raise MissingDependencyError(
                    "the row of UMAP needs umap-learn: pip install 'selfview[peers]'"
                ) from error
            rows = X.reshape(len(X), -1) if getattr(X, "ndim", 2) > 2 else X
            model = umap.UMAP(n_components=self.n_components, random_state=self.random_state)
            return model.fit_transform(rows)


def n_parameters(model: Any) -> int | None:
    """How many numbers a fitted method learned; None where its rows themselves are the model."""
    if (network := getattr(model, "network_", None)) is not None:
        return sum(int(p.numel()) for p in network.parameters())
    count: int | None = getattr(model, "n_parameters_", None)
    return count


def _autoencoder(title: str, class_name: str, share: float) -> Method:
    # The paper trains every autoencoder both ways and reports the better one.
    both = {"batch norm": {"batch_norm": True}, "no batch norm": {"batch_norm": False}}
    return Method(title, class_name, learned=True, share=share, variants=both)


METHODS = {
    "raw": Method("raw features", "Raw"),
    "pca": Method("PCA", "PCA"),
    "nmf": Method("NMF", "NMF"),
    "lle": Method("LLE", "LLE", sampled=True),
    "isomap": Method("Isomap", "Isomap", sampled=True),
    "ae": _autoencoder("AE", "AutoEncoder", 0.6),
    "sae": _autoencoder("SAE", "SparseAutoEncoder", 0.65),
    "dae": _autoencoder("DAE", "DenoisingAutoEncoder", 0.65),
    "vae": _autoencoder("VAE", "VariationalAutoEncoder", 0.65),
    "aae": _autoencoder("AAE", "AdversarialAutoEncoder", 1.5),
    "cpc": Method("CPC", "CPC", learned=True),
    "selfview": Method(
        "SelfView", "SelfView", "selfview.method", learned=True, share=1.0, version=2
    ),
    "umap": Method("UMAP", "UMAP", "selfview.paper.methods"),
}
