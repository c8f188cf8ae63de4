"""Weights to start from that depend on the data."""

import copy
import math

import torch
from torch import Tensor, nn

START_ROWS = 512  # that initialise the last layer


@torch.no_grad()
def principal_start(layers: nn.Sequential, x: Tensor) -> None:
    """Initialise the last, linear layer to the whitened principal components of its input.

    From random weights all outputs first follow the direction of largest variance, and take
    hundreds of steps to decorrelate. (A data-dependent initialisation, as in Krahenbuhl, Doersch,
    Donahue, Darrell, ICLR 2016.) Outputs beyond the rank of the features keep random weights.

    Parameters
    ----------
    layers : nn.Sequential
        Untrained; its last layer is changed.
    x : Tensor (n, *shape)

    Examples
    --------
    >>> x = torch.randn(200, 5, generator=torch.Generator().manual_seed(0))
    >>> layers = nn.Sequential(nn.Linear(5, 2))
    >>> principal_start(layers, x)
    >>> layers(x).T.cov().round(decimals=3).abs().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    last = layers[-1]
    assert isinstance(last, nn.Linear)
    features = copy.deepcopy(layers[:-1])(x).double()  # a copy: batch norms remember what they see
    mean = features.mean(0)
    _, sizes, directions = torch.linalg.svd(features - mean, full_matrices=False)
    count = min(last.out_features, int((sizes > 1e-4 * sizes[0]).sum()))
    deviation = sizes[:count, None] / math.sqrt(max(len(x) - 1, 1))
    # The sign of a component is arbitrary: here its largest entry is positive.
    components = directions[:count] / deviation
    largest = components.gather(1, components.abs().argmax(1, keepdim=True))
    components = components * largest.sign()
    last.weight[:count] = components.to(last.weight)
    last.bias[:count] = -(components @ mean).to(last.bias)
