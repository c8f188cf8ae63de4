"""The methods that SelfView is compared with, under the same interface, and raw features.

>>> from selfview.baselines import PCA
>>> PCA(n_components=2)
PCA(n_components=2)
"""

from selfview.baselines.autoencoders import AutoEncoder
from selfview.baselines.classical import NMF, PCA, Raw
from selfview.baselines.cpc import CPC
from selfview.baselines.generative import AdversarialAutoEncoder, VariationalAutoEncoder
from selfview.baselines.manifolds import LLE, Isomap
from selfview.baselines.regularised import DenoisingAutoEncoder, SparseAutoEncoder

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
