"""The methods that SelfView is compared with, under the same interface, and raw features.

>>> from selfview.baselines import PCA
>>> PCA(n_components=2)
PCA(n_components=2)

Each is imported on first use: the classical ones need no PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selfview.baselines.autoencoders import (
        AutoEncoder,
        DenoisingAutoEncoder,
        SparseAutoEncoder,
    )
    from selfview.baselines.classical import NMF, PCA, Raw
    from selfview.baselines.cpc import CPC
    from selfview.baselines.generative import AdversarialAutoEncoder, VariationalAutoEncoder
    from selfview.baselines.manifolds import LLE, Isomap

_HOMES = {
    **dict.fromkeys(("NMF", "PCA", "Raw"), "classical"),
    **dict.fromkeys(("LLE", "Isomap"), "manifolds"),
    **dict.fromkeys(("AutoEncoder", "DenoisingAutoEncoder", "SparseAutoEncoder"), "autoencoders"),
    **dict.fromkeys(("AdversarialAutoEncoder", "VariationalAutoEncoder"), "generative"),
    "CPC": "cpc",
}

__all__ = [
    "CPC",
    "LLE",
    "NMF",
    "PCA",
    "AdversarialAutoEncoder",
    "AutoEncoder",
    "DenoisingAutoEncoder",
    "Isomap",
    "Raw",
    "SparseAutoEncoder",
    "VariationalAutoEncoder",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'selfview.baselines' has no attribute {name!r}")
    return getattr(import_module(f"selfview.baselines.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
