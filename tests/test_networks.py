"""Sizes and shapes of the networks, against the paper's numbers."""

import pytest
import torch
from torch import nn

from selfview.errors import InputError
from selfview.networks.encoders import (
    EncoderHead,
    cnn_encoder,
    head,
    input_shape,
    make_encoder,
    mlp_encoder,
    output_size,
)


def count(*modules):
    return sum(p.numel() for module in modules for p in module.parameters())


def test_the_papers_cnn_with_its_head_has_895854_parameters():
    assert count(cnn_encoder((1, 28, 28), 10), head(10, 100)) == 895_854


def test_the_papers_mlp_with_its_head_has_2_11_million_parameters():
    # Table I, MSI: 1,024 bins.
    total = count(mlp_encoder(1024, 10, batch_norm=False), head(10, 100, batch_norm=False))
    assert round(total / 1e6, 2) == 2.14
    assert round(count(mlp_encoder(1024, 10, batch_norm=False)) / 1e6, 2) == 2.11


@pytest.mark.parametrize(
    "shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (3, 5, 40), (1, 1, 1), (2, 3, 3), (4, 96, 64)]
)
def test_images_of_any_size_and_channels_are_encoded(shape):
    encoder = cnn_encoder(shape, 7)
    assert encoder(torch.zeros(2, *shape)).shape == (2, 7)


def test_a_large_image_does_not_make_a_large_network():
    assert count(cnn_encoder((3, 224, 224), 10)) < 10e6


@pytest.mark.parametrize(
    ("where", "encoder", "top"),
    [(("both"), 2, 2), (("encoder"), 2, 0), (("head"), 0, 2), (("none"), 0, 0)],
)
def test_batch_norm_stands_where_it_is_asked_for(where, encoder, top):
    def norms(module):
        return sum(isinstance(m, nn.BatchNorm1d) for m in module.modules())

    assert norms(mlp_encoder(9, 3, where in ("both", "encoder"))) == encoder
    assert norms(head(3, 4, where in ("both", "head"))) == top


def test_logits_are_the_head_of_the_embedding():
    network = EncoderHead(mlp_encoder(4, 3), head(3, 6), epsilon=1.0, temperature=1.0).eval()
    x = torch.randn(5, 4)
    torch.testing.assert_close(network(x), network.head(network.encoder(x)))


def test_grey_images_get_their_channel():
    assert input_shape((28, 28), "auto") == (1, 28, 28)
    assert input_shape((28, 28), "mlp") == (28, 28)
    assert input_shape((64,), "auto") == (64,)


def test_channels_last_images_are_pointed_out():
    with pytest.raises(InputError, match=r"transpose\(0, 3, 1, 2\)"):
        input_shape((32, 32, 3), "auto")


def test_cnn_on_vectors_is_an_error_that_says_what_to_do():
    with pytest.raises(InputError, match="reshape X, or take encoder='mlp'"):
        make_encoder("cnn", (64,), 10, True)


def test_an_own_encoder_is_copied_and_asked_for_its_size():
    own = nn.Linear(6, 4)
    copy = make_encoder(own, (6,), 10, True)
    assert copy is not own
    assert torch.equal(copy.weight, own.weight)
    assert output_size(copy, (6,)) == 4


@pytest.mark.parametrize("own", [nn.Linear(5, 4), nn.Conv2d(1, 1, 1), nn.Flatten(0)])
def test_an_own_encoder_that_does_not_fit_is_an_error(own):
    with pytest.raises(InputError, match="the encoder"):
        output_size(own, (6,))
