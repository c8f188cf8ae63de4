"""Decoders, the mirrors of the encoders, for autoencoders."""

import math
from collections.abc import Sequence

from torch import nn

from selfview.networks.encoders import (
    CONVOLUTIONAL,
    KERNEL,
    PAPERS,
    STRIDE,
    Convolutional,
    convolutions,
    perceptron,
)


def mlp_decoder(n_components: int, shape: Sequence[int], batch_norm: bool = True) -> nn.Sequential:
    """The mirror of `mlp_encoder`: n_components-1024-1024-n_features, as rows of `shape`."""
    layers = perceptron([n_components, 1024, 1024, math.prod(shape)], batch_norm)
    return nn.Sequential(*layers, nn.Unflatten(1, tuple(shape)))


def cnn_decoder(
    n_components: int, shape: Sequence[int], batch_norm: bool = True, kind: Convolutional = PAPERS
) -> nn.Sequential:
    """The mirror of `cnn_encoder`: linear, then transposed convolutions, to `shape` exactly."""
    plan = convolutions(shape, filters=kind.filters)
    filters, _, sides = plan[-1]
    sizes = [n_components, *reversed(kind.hidden), filters * math.prod(sides)]
    layers = [*perceptron(sizes, batch_norm), nn.Unflatten(1, (filters, *sides))]
    # Each layer undoes one of the encoder's: back to the channels and sides that it started from.
    before = [(shape[0], (shape[1], shape[2])), *((f, s) for f, _, s in plan[:-1])]
    for (filters, padding, sides), (channels, larger) in zip(
        reversed(plan), reversed(before), strict=True
    ):
        if batch_norm:
            layers.append(nn.BatchNorm2d(filters))
        # A strided convolution drops up to a row and a column, which have to be asked for.
        height, width = (
            side - ((small - 1) * STRIDE - 2 * padding + KERNEL)
            for side, small in zip(larger, sides, strict=True)
        )
        layers += [
            nn.ReLU(),
            nn.ConvTranspose2d(filters, channels, KERNEL, STRIDE, padding, (height, width)),
        ]
    return nn.Sequential(*layers)


def make_decoder(
    encoder: str, n_components: int, shape: tuple[int, ...], batch_norm: bool
) -> nn.Sequential:
    """The mirror of the encoder of that name for rows of `shape`."""
    if len(shape) == 3 and encoder != "mlp":
        return cnn_decoder(n_components, shape, batch_norm, CONVOLUTIONAL[encoder])
    return mlp_decoder(n_components, shape, batch_norm)
