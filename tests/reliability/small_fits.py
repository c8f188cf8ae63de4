"""Fits that take a second, for tests that stop them; and what two of them have in common."""

import numpy as np
import torch
from torch import nn

from selfview import SelfView


def rows(n=120):
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(3, 6))
    return (centres[np.arange(n) % 3] + rng.normal(size=(n, 6))).astype(np.float32)


def small_encoder():
    """Small, so that a state is written in a moment; batch norm and dropout carry state too."""
    torch.manual_seed(0)
    layers = [nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3)]
    return nn.Sequential(*layers)


def small_model(**kwargs):
    given = dict(n_prototypes=8, epochs=4, batch_size=12, random_state=0, verbose=0)
    return SelfView(**dict(encoder=small_encoder()) | given | kwargs)


def bits(model):
    """Every tensor of a fitted model as bytes."""
    state = model.network_.state_dict()
    return {name: tensor.numpy().tobytes() for name, tensor in state.items()}


def metrics(history):
    """A history without its seconds, which no two runs share."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in history]
