"""Explanations: completeness, a linear encoder's weights, planted features, deletion."""

import numpy as np
import pytest
import torch
from torch import nn

from selfview import InputError, SelfView
from selfview.explain import path_gradient

# Blobs without any structure within are not what an embedding is for, and the verdict says so.
pytestmark = pytest.mark.filterwarnings("ignore::selfview.CollapseWarning")
PLANTED = (3, 7, 11)  # columns that hold classes, the strongest first


@pytest.fixture(scope="module")
def planted():
    """Rows of noise, with three columns of which each tells two halves of the rows apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 16)).astype(np.float32)
    for column, strength in zip(PLANTED, (9.0, 6.0, 4.0), strict=True):
        X[:, column] += strength * rng.integers(0, 2, 600)
    model = SelfView(4, n_clusters=8, random_state=0, verbose=0)
    return X, model.fit(X)


def test_integrated_gradients_sum_to_the_difference_of_the_function():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
    x, baseline = torch.randn(7, 5), torch.randn(5)
    slope = path_gradient(lambda x: network(x)[:, 0], x, baseline, steps=200)
    total = (slope * (x - baseline)).sum(1)
    expected = (network(x) - network(baseline))[:, 0].detach()
    torch.testing.assert_close(total, expected, rtol=1e-3, atol=1e-3)


def test_a_linear_encoder_is_explained_by_its_weights(rng):
    X = rng.normal(size=(60, 6)).astype(np.float32)
    model = SelfView(encoder=nn.Linear(6, 2), epochs=2, random_state=0, verbose=0).fit(X)
    told = model.explain(X)
    weights = model.encoder_.weight.detach().numpy()
    np.testing.assert_allclose(told.slopes, weights, rtol=1e-4, atol=1e-6)
    deviation = np.abs(X - X.mean(0)).mean(0)
    np.testing.assert_allclose(told.contributions, weights * deviation, rtol=1e-3, atol=1e-5)


def test_the_contributions_to_a_row_sum_to_its_way_from_the_baseline(planted):
    X, model = planted
    told = model.explain(X[:20], by="row", steps=200)
    baseline = X[:20] - told.differences
    np.testing.assert_allclose(baseline, np.tile(baseline[:1], (20, 1)), atol=1e-4)
    ways = model.transform(X[:20]) - model.transform(baseline[:1])
    lengths = np.linalg.norm(ways, axis=1)
    np.testing.assert_allclose(told.contributions.sum(1), lengths, rtol=0.02)


@pytest.mark.parametrize("by", ["component", "cluster", "row"])
def test_planted_features_lead(planted, by):
    X, model = planted
    told = model.explain(X[:200] if by == "row" else X, by=by)
    size = np.abs(told.contributions).sum(0)
    assert set(np.argsort(-size)[:3]) == set(PLANTED)


def test_planted_features_are_in_the_order_of_their_strength(planted):
    X, model = planted
    size = np.abs(model.explain(X, by="row").contributions).sum(0)
    assert tuple(np.argsort(-size)[:3]) == PLANTED


def test_taking_out_the_named_features_changes_the_embedding_more_than_random_ones(planted, rng):
    X, model = planted
    told = model.explain(X[:100], by="row")
    baseline = X[:100] - told.differences

    def moved(columns):
        changed = X[:100].copy()
        np.put_along_axis(changed, columns, np.take_along_axis(baseline, columns, 1), 1)
        return np.linalg.norm(model.transform(changed) - model.transform(X[:100]), axis=1).mean()

    named = np.argsort(-np.abs(told.contributions), axis=1)[:, :2]
    chance = [moved(rng.permuted(np.tile(np.arange(16), (100, 1)), axis=1)[:, :2]) for _ in "abc"]
    assert moved(named) > 2 * max(chance)


def test_top_lists_the_leading_features_by_name(planted):
    X, model = planted
    told = model.explain(X)
    assert told.features[3] == "feature 4"
    assert told.targets == ("selfview0", "selfview1", "selfview2", "selfview3")
    table = told.top(2)
    assert len(table) == 8
    target, feature, value, difference = table[0]
    assert target == "selfview0"
    assert abs(value) == np.abs(told.contributions[0]).max()
    assert difference == told.differences[0][told.features.index(feature)]


def test_a_feature_without_a_unit_has_no_slope(planted):
    X, model = planted
    told = model.explain(X[:20])
    count = len(told.features)
    moved = told.in_units(told.features, [0.0] + [2.0] * (count - 1))
    assert not moved.slopes[:, 0].any()
    np.testing.assert_allclose(moved.slopes[:, 1:], told.slopes[:, 1:] / 2)


def test_images_are_explained_pixel_by_pixel(rng):
    X = rng.random((40, 1, 8, 8), dtype=np.float32)
    model = SelfView(2, epochs=1, encoder="dense-cnn", random_state=0, verbose=0).fit(X)
    assert model.explain(X).contributions.shape == (2, 64)
    with pytest.raises(InputError, match="baseline must be given"):
        model.explain(X[:1], by="row")
    assert model.explain(X[:1], by="row", baseline=X.mean(0)).contributions.shape == (1, 64)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (dict(by="column"), "by must be one of"),
        (dict(steps=0), "steps must be an integer of at least 1"),
        (dict(baseline=np.zeros(3)), "baseline must be one row of 16 finite numbers"),
    ],
)
def test_what_cannot_be_explained_is_an_error(planted, options, told):
    X, model = planted
    with pytest.raises(InputError, match=told):
        model.explain(X[:5], **options)
