"""Cases that one process and many run alike: each returns named arrays to compare."""

import numpy as np
import torch
from torch import nn

from selfview import SelfView

SMALL = dict(n_prototypes=20, n_components=4, batch_size=256, random_state=0, verbose=0)


def rows(n, dim=16):
    rng = np.random.default_rng(1)
    centres = 4 * rng.normal(size=(5, dim))
    return (centres[rng.integers(5, size=n)] + rng.normal(size=(n, dim))).astype(np.float32)


def small_encoder():
    torch.manual_seed(3)
    layers = [nn.Linear(16, 64), nn.BatchNorm1d(64), nn.ReLU()]
    layers += [nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(64, 4))


def fitted(model, X):
    """The curves and the weights of a fit."""
    model.fit(X)
    curves = {
        name: np.array([row[name] for row in model.history_])
        for name in model.history_[0]
        if name not in ("epoch", "seconds")
    }
    weights = {name: t.numpy() for name, t in model.network_.state_dict().items()}
    return curves | weights


def fifty_steps():
    return fitted(SelfView(encoder=small_encoder(), epochs=50, **SMALL), rows(256))


def fifty_uneven_steps():
    return fitted(SelfView(encoder=small_encoder(), epochs=25, **SMALL), rows(511))


def mlp():
    return fitted(SelfView(epochs=50, **SMALL), rows(256))


def cnn():
    return fitted(SelfView(epochs=3, **SMALL), rows(30, 12 * 12).reshape(30, 1, 12, 12))
