"""The methods of the paper's tables and of comparisons, by name: where each is, and its cost."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from selfview.errors import MissingDependencyError


@dataclass(frozen=True)
class Method:
    """An estimator of this package, or of another (`PEERS`)."""

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
class _Peer:
    """A method of another package at its own settings, with as many components as the others."""

    n_components: int = 10
    random_state: int = 0

    n_parameters_ = None  # the fitted rows themselves are the model
    package = module = name = ""

    def fit_transform(self, X: Any) -> Any:
        """The embedding of `X`."""
        with warnings.catch_warnings():
            # Of its imports, and that a seed allows one thread only.
            warnings.simplefilter("ignore")
            try:
                method = getattr(import_module(self.module), self.name)
            except ImportError as error:
                raise MissingDependencyError(
                    f"{self.name} needs {self.package}: pip install 'selfview[peers]'"
                ) from error
            model = method(n_components=self.n_components, random_state=self.random_state)
            return model.fit_transform(self.taken(X))

    def taken(self, X: Any) -> Any:
        """The rows as the package takes them."""
        return X.reshape(len(X), -1) if getattr(X, "ndim", 2) > 2 else X


@dataclass
class UMAP(_Peer):
    """umap-learn's UMAP."""

    package, module, name = "umap-learn", "umap", "UMAP"


@dataclass
class PaCMAP(_Peer):
    """pacmap's PaCMAP, which takes dense rows only."""

    package, module, name = "pacmap", "pacmap", "PaCMAP"

    def taken(self, X: Any) -> Any:
        dense = X.toarray() if hasattr(X, "toarray") else super().taken(X)
        return np.ascontiguousarray(dense, dtype=np.float32)


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
    "pacmap": Method("PaCMAP", "PaCMAP", "selfview.paper.methods"),
}
PEERS = ("umap", "pacmap")  # of other packages
