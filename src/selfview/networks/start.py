"""Weights to start from that depend on the data."""

import copy
import math

import torch
from torch import Tensor, nn

START_ROWS = 512  # that initialise the last layer
PAIRS = 2048  # of neighbours, that do
RIDGE = 1e-3  # of the features' mean variance, so that no direction has none


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


@torch.no_grad()
def locality_start(layers: nn.Sequential, x: Tensor, near: Tensor) -> None:
    """Initialise the last, linear layer to a locality preserving projection of its input.

    Of all linear outputs w of variance 1 it takes those in which neighbours differ least (He and
    Niyogi, "Locality preserving projections", NIPS 2003): the smallest eigenvalues of
    ``D w = lambda C w``, with D the covariance of the neighbours' differences and C that of the
    features. The embedding begins with the slowest directions along the data, where principal
    components are the longest.

    Parameters
    ----------
    layers : nn.Sequential
        Untrained; its last layer is changed.
    x, near : Tensor (n, *shape)
        Rows, and a neighbour of each.

    Examples
    --------
    >>> x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    >>> near = x + torch.tensor([0.1, 9.0])  # neighbours have the first column in common
    >>> layers = nn.Sequential(nn.Linear(2, 1))
    >>> locality_start(layers, x, near)
    >>> bool((layers[0].weight[0, 0].abs() > 20 * layers[0].weight[0, 1].abs()).item())
    True
    """
    last = layers[-1]
    assert isinstance(last, nn.Linear)
    features = copy.deepcopy(layers[:-1])(torch.cat([x, near])).double()
    mean = features.mean(0)
    features -= mean
    variance = features.square().mean()
    if variance == 0:  # rows are all the same: any start is as good
        return
    C = features.T @ features / len(features)
    C.diagonal().add_(RIDGE * variance)
    difference = features[: len(x)] - features[len(x) :]
    D = difference.T @ difference / (2 * len(x))
    half = torch.linalg.inv(torch.linalg.cholesky(C))
    _, turned = torch.linalg.eigh(half @ D @ half.T)
    components = turned[:, : last.out_features].T @ half
    largest = components.gather(1, components.abs().argmax(1, keepdim=True))
    components = components * largest.sign()
    last.weight[: len(components)] = components.to(last.weight)
    last.bias[: len(components)] = -(components @ mean).to(last.bias)
