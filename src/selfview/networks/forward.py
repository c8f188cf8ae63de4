"""Cheaper passes with the same values: views in one pass, weights held constant.

What each is worth is the time of a step without it over one with it, by `benchmarks/passes.py` on
two cores of a Xeon with AMX. A processor without bfloat16 gains as in float32.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Layers that make of a row what they make of it in any batch.
ROW_BY_ROW = (nn.Linear, nn.ReLU, nn.Flatten)


def forward_views(layers: nn.Sequential, x: Tensor, parts: int) -> Tensor:
    """`layers` of several batches of equal size, interleaved row by row in `x`.

    The values are those of each batch by itself, in one pass: a product of twice as many rows costs
    less than two products. Batch norm takes the batches for further columns. Convolutions, for
    which one pass costs more than two, and unknown layers get one batch after the other. Worth 1.1
    of a perceptron's step in float32, 1.2 in bfloat16.
    """
    if parts == 1:
        z: Tensor = nn.Sequential.forward(layers, x)  # type: ignore[no-untyped-call]
        return z
    if any(isinstance(layer, nn.Conv2d) for layer in layers):
        return per_view(partial(forward_views, layers, parts=1), x, parts)
    for layer in layers:
        if isinstance(layer, ROW_BY_ROW):
            x = layer(x)
        elif type(layer) is nn.BatchNorm1d and layer.training:
            x = batch_norm_per_view(layer, x, parts)
        else:
            x = per_view(layer, x, parts)
    return x


def split_views(x: Tensor, parts: int) -> Sequence[Tensor]:
    """The batches that are interleaved row by row in `x`."""
    return x.reshape(-1, parts, *x.shape[1:]).unbind(1)


def per_view(function: Callable[[Tensor], Tensor], x: Tensor, parts: int) -> Tensor:
    """`function` of each of the batches that are interleaved in `x`."""
    return torch.stack([function(part) for part in split_views(x, parts)], 1).flatten(0, 1)


def batch_norm_per_view(norm: nn.BatchNorm1d, x: Tensor, parts: int) -> Tensor:
    """`per_view` of a batch norm in training, in one call: the batches as further columns."""
    wide = x.reshape(len(x) // parts, -1)
    weight, bias = norm.weight.repeat(parts), norm.bias.repeat(parts)
    means, variances = x.new_zeros(2, wide.shape[1], dtype=torch.float32)
    y = F.batch_norm(wide, means, variances, weight, bias, True, 1.0, norm.eps)
    if norm.track_running_stats:
        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.num_batches_tracked is not None
        assert norm.momentum is not None
        for mean, variance in zip(means.chunk(parts), variances.chunk(parts), strict=True):
            norm.running_mean.lerp_(mean, norm.momentum)
            norm.running_var.lerp_(variance, norm.momentum)
        norm.num_batches_tracked += parts
    return y.view_as(x)


@contextmanager
def without_weight_grad(layers: Iterable[nn.Module]) -> Iterator[None]:
    """Within it, weights are constants: autograd computes and stores nothing for them.

    Worth 1.16 of a step of the paper's CNN in bfloat16, 1.12 of the default's, elsewhere 1.03.
    """
    places: list[Any] = [layer._parameters for layer in layers]
    before = [dict(place) for place in places]
    try:
        for place in places:
            place.update({name: p.detach() for name, p in place.items() if p is not None})
        yield
    finally:
        for place, own in zip(places, before, strict=True):
            place.update(own)
