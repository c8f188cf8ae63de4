"""Several batches in one pass: what each gives by itself, in values, gradients and statistics."""

import copy

import pytest
import torch
from torch import nn

from selfview import networks
from selfview.networks import EncoderHead, ScaledEncoder, cnn_encoder, mlp_encoder


class Centred(nn.Module):
    """An own encoder that looks at the batch as a whole."""

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
    return EncoderHead(encoder, networks.head(5, 8), epsilon=1.0, temperature=1.0)


def batches(kind, count):
    generator = torch.Generator().manual_seed(1)
    shape = (1, 12, 12) if kind == "cnn" else (20,)
    # Unlike each other, so that statistics over all of them would show.
    return [3 * i + torch.randn(16, *shape, generator=generator) for i in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("kind", "scale"), [("mlp", 1.0), ("mlp", 4.0), ("cnn", 1.0), ("own", 1)])
def test_one_pass_equals_a_pass_for_each(kind, scale, count):
    together = network(kind, scale)
    apart = copy.deepcopy(together)
    xs = batches(kind, count)
    found = together(torch.cat(xs), parts=count)
    expected = torch.cat([apart(x) for x in xs])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    found.square().sum().backward()
    expected.square().sum().backward()
    for (name, a), b in zip(together.named_parameters(), apart.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-3, msg=name)
    for (name, a), b in zip(together.named_buffers(), apart.buffers(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, msg=name)


def test_batches_are_not_normalised_together():
    model = network("mlp")
    xs = batches("mlp", 2)
    assert not torch.allclose(model(torch.cat(xs), parts=2), model(torch.cat(xs)), atol=0.1)
