"""Several batches in one pass, and weights converted once: the values stay as they were."""

import copy

import pytest
import torch
from torch import nn

from selfview.networks import encoders
from selfview.networks.encoders import (
    EncoderHead,
    ScaledEncoder,
    cnn_encoder,
    mlp_encoder,
)
from selfview.networks.forward import without_weight_grad


class Centred(nn.Module):
    """A custom encoder that looks at the batch as a whole."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(20, 5)

    def forward(self, x):
        return self.linear(x - x.mean(0))


def network(kind, scale=1.0):
    torch.manual_seed(0)
    if kind == "own":
        encoder = Centred()
    else:
        made = cnn_encoder((1, 12, 12), 5) if kind == "cnn" else mlp_encoder(20, 5)
        encoder = ScaledEncoder(scale, *made)
    return EncoderHead(encoder, encoders.head(5, 8), epsilon=1.0, temperature=1.0)


def batches(kind, count):
    generator = torch.Generator().manual_seed(1)
    shape = (1, 12, 12) if kind == "cnn" else (20,)
    # Unlike each other, so that statistics over all of them would show.
    return [3 * i + torch.randn(16, *shape, generator=generator) for i in range(count)]


def in_turn(batches):
    return torch.stack(batches, 1).flatten(0, 1)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("kind", "scale"), [("mlp", 1.0), ("mlp", 4.0), ("cnn", 1.0), ("own", 1)])
def test_one_pass_equals_a_pass_for_each(kind, scale, count):
    one_pass = network(kind, scale)
    per_batch = copy.deepcopy(one_pass)
    xs = batches(kind, count)
    found = one_pass(in_turn(xs), parts=count)
    expected = in_turn([per_batch(x) for x in xs])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    found.square().sum().backward()
    expected.square().sum().backward()
    for (name, a), b in zip(one_pass.named_parameters(), per_batch.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-3, msg=name)
    for (name, a), b in zip(one_pass.named_buffers(), per_batch.buffers(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, msg=name)


def test_batches_are_not_normalised_together():
    model = network("mlp")
    xs = batches("mlp", 2)
    assert not torch.allclose(model(in_turn(xs), parts=2), model(in_turn(xs)), atol=0.1)


@pytest.mark.parametrize("kind", ["mlp", "cnn", "own"])
def test_where_weights_are_constants_rows_have_the_same_gradient(kind):
    model = network(kind)
    x = batches(kind, 1)[0].requires_grad_()
    (expected,) = torch.autograd.grad(model(x).square().sum(), x)
    with without_weight_grad(model.layers):
        learned = [name for name, p in model.named_parameters() if p.requires_grad]
        (found,) = torch.autograd.grad(model(x).square().sum(), x)
    assert learned == (["encoder.linear.weight", "encoder.linear.bias"] if kind == "own" else [])
    torch.testing.assert_close(found, expected)


def test_weights_are_given_back_also_after_an_error():
    model = network("mlp")
    before = list(model.parameters())
    with pytest.raises(RuntimeError, match="in between"), without_weight_grad(model.layers):
        raise RuntimeError("in between")
    assert all(a is b for a, b in zip(model.parameters(), before, strict=True))
