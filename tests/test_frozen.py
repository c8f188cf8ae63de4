"""Custom encoders of which some weights are frozen: those parts don't move, statistics included."""

import numpy as np
import pytest
import torch
from torch import nn

from selfview import SelfView, baselines
from selfview.rows.conversion import as_rows

# A few steps teach nothing, and a run says so; here that is meant.
pytestmark = pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")


def small(**kwargs):
    given = dict(n_components=3, n_prototypes=8, epochs=3, random_state=0, verbose=0)
    return SelfView(**given | kwargs)


def normed_encoder():
    torch.manual_seed(0)
    layers = [nn.Linear(12, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5)]
    layers += [nn.Linear(8, 6), nn.BatchNorm1d(6, affine=False), nn.ReLU(), nn.Linear(6, 4)]
    encoder = nn.Sequential(nn.Sequential(*layers[:4]), nn.Sequential(*layers[4:]))
    with torch.no_grad():  # statistics that are not those of the first batch
        encoder(3 + torch.randn(50, 12))
    return encoder


def moved(encoder, before):
    """Names of the parameters and buffers that are no longer what they were."""
    state = encoder.state_dict()
    return {name for name, value in before.items() if not torch.equal(value, state[name])}


@pytest.mark.parametrize("views", ["adversarial", "random", "none"])
def test_a_frozen_encoder_stays_as_it_is(blobs, views):
    own = normed_encoder().requires_grad_(False)
    before = {name: value.clone() for name, value in own.state_dict().items()}
    model = small(encoder=own, views=views).fit(blobs[0])
    assert moved(own, before) == moved(model.network_.encoder, before) == set()
    model.partial_fit(blobs[0])
    assert moved(model.network_.encoder, before) == set()
    expected = own.eval()(torch.tensor(blobs[0], dtype=torch.float32)).numpy()
    np.testing.assert_allclose(model.transform(blobs[0]), expected, atol=1e-6)


def test_a_frozen_encoder_does_in_training_what_it_does_in_transform(blobs):
    own = normed_encoder().requires_grad_(False)
    model = small(encoder=own)
    network = model._network(
        model._complete(as_rows(blobs[0]), model._plan(as_rows(blobs[0])))
    ).train()
    x = torch.tensor(blobs[0], dtype=torch.float32)
    assert torch.equal(network.features(x), own.eval()(x))
    assert network.head.training


def test_of_a_partly_frozen_encoder_the_frozen_part_stays_as_it_is(blobs):
    own = normed_encoder()
    own[0].requires_grad_(False)
    own[1][0].requires_grad_(False)
    before = {name: value.clone() for name, value in own.state_dict().items()}
    model = small(encoder=own).fit(blobs[0])
    statistics = {f"1.1.{name}" for name in ("running_mean", "running_var", "num_batches_tracked")}
    assert moved(model.network_.encoder, before) == statistics | {"1.3.weight", "1.3.bias"}


def test_an_encoder_that_learns_moves_whole(blobs):
    own = normed_encoder()
    before = {name: value.clone() for name, value in own.state_dict().items()}
    # Biases before a batch norm have no gradient but what rounding leaves.
    unsure = {"0.0.bias", "1.0.bias"}
    assert moved(small(encoder=own).fit(blobs[0]).network_.encoder, before) | unsure == set(before)


def test_an_autoencoder_leaves_a_frozen_encoder_as_it_is(blobs):
    own = normed_encoder().requires_grad_(False)
    before = {f"1.0.{name}": value.clone() for name, value in own.state_dict().items()}
    model = baselines.AutoEncoder(encoder=own, epochs=2, random_state=0, verbose=0).fit(blobs[0])
    assert moved(model.network_.encoder, before) == set()
