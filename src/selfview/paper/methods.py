"""The methods of the paper's tables by name: where each lives, and what it costs."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Method:
    """An estimator of this package, or of umap-learn."""

    home: str
    class_name: str
    learned: bool = False  # by gradient steps: takes epochs, checkpoint, verbose
    sampled: bool = False  # takes fit_rows
    share: float = 0.0  # of a step of our method, in time
    version: int = 1  # to be raised when its results change: records of before no longer count

    def make(self, **settings: Any) -> Any:
        """An unfitted estimator."""
        return getattr(import_module(self.home), self.class_name)(**settings)


_BASELINES = "selfview.baselines"

METHODS = {
    "pca": Method(_BASELINES, "PCA"),
    "nmf": Method(_BASELINES, "NMF"),
    "lle": Method(_BASELINES, "LLE", sampled=True),
    "isomap": Method(_BASELINES, "Isomap", sampled=True),
    "ae": Method(_BASELINES, "AutoEncoder", learned=True, share=0.6),
    "aae": Method(_BASELINES, "AdversarialAutoEncoder", learned=True, share=1.5),
    "sae": Method(_BASELINES, "SparseAutoEncoder", learned=True, share=0.65),
    "dae": Method(_BASELINES, "DenoisingAutoEncoder", learned=True, share=0.65),
    "vae": Method(_BASELINES, "VariationalAutoEncoder", learned=True, share=0.65),
    "cpc": Method(_BASELINES, "CPC", learned=True),
    "selfview": Method("selfview.method", "SelfView", learned=True, share=1.0, version=2),
    "umap": Method("selfview.paper.umap", "UMAP"),
    "raw": Method(_BASELINES, "Raw"),
}
