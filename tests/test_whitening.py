"""Local whitening: a linear map after training, that training never sees."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from torch import nn

from selfview import SelfView
from selfview.whitening import local_whitening

# Two epochs of noise teach nothing, and the model says so.
pytestmark = pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")


def embeddings(n=500, dim=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    spread = torch.tensor([9.0, 4.0, 1.0, 0.25])[:dim]
    mixing = torch.linalg.qr(torch.randn(dim, dim, generator=generator)).Q
    return 7 + torch.randn(n, dim, generator=generator) * spread @ mixing


def turned(z):
    centre, axes = local_whitening(z)
    return ((z - centre) @ axes).numpy()


def test_axes_are_uncorrelated_centred_and_sorted():
    found = turned(embeddings())
    covariance = np.cov(found.T)
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-3)
    assert (np.diff(np.diag(covariance)) < 0).all()


def islands(stds, n=31, seed=0):
    """Small clusters, long in some directions, and the cluster of each row."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(20), n)
    centres = 100.0 * rng.permutation(np.indices((3,) * len(stds)).reshape(len(stds), -1).T)[:20]
    return torch.from_numpy(centres[y] + rng.normal(size=(len(y), len(stds))) * stds), y


def test_it_is_a_mahalanobis_distance_of_rows_within_clusters():
    z, y = islands([4, 2, 1])
    rows = z.numpy()
    C = np.cov((rows - np.array([rows[y == c].mean(0) for c in y])).T)
    inverse = np.linalg.inv(C + np.eye(3) * np.trace(C) / 3)
    ratios = pdist(turned(z)) / pdist(rows, "mahalanobis", VI=inverse)
    assert ratios.std() < 0.02 * ratios.mean()


def test_a_direction_in_which_near_rows_are_equal_is_not_widened_much():
    # As an embedding of a category that says nothing: rows of one value are alike in it.
    rng = np.random.default_rng(0)
    z = rng.normal(size=(600, 3)) * [3, 3, 0]
    z[:, 2] = rng.choice([-2.0, 2.0], 600)
    _, axes = local_whitening(torch.from_numpy(z))
    widths = torch.linalg.vector_norm(axes, dim=1)
    assert widths[2] < 2 * widths[0]


def test_the_mean_square_length_stays():
    z = embeddings()
    before = (z - z.mean(0)).square().mean().item()
    assert np.square(turned(z)).mean() == pytest.approx(before, rel=1e-4)


def test_a_turned_and_moved_embedding_has_the_same_axes():
    z = embeddings()
    turn = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(1))).Q
    np.testing.assert_allclose(np.abs(turned(z @ turn + 3)), np.abs(turned(z)), atol=1e-2)


@pytest.mark.parametrize("z", [torch.ones(5, 3), torch.zeros(1, 3), torch.eye(3)[:2]])
def test_flat_embeddings_stay_finite_and_keep_their_length(z):
    centre, axes = local_whitening(z)
    assert axes.shape == (3, 3)
    assert torch.isfinite((z - centre) @ axes).all()


def small(**given):
    return SelfView(3, n_prototypes=5, epochs=2, random_state=0, verbose=0, **given)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(90, 6)).astype(np.float32)


def test_axes_are_all_that_changes(rows):
    principal, learned = small().fit(rows), small(axes="learned").fit(rows)
    np.testing.assert_array_equal(principal.predict_proba(rows), learned.predict_proba(rows))
    own = ("loss", "structure", "prototype_use")  # not of the embedding
    assert all(principal.health_.get(name) == learned.health_.get(name) for name in own)
    encoder = principal.network_.encoder
    z = torch.from_numpy(learned.transform(rows))
    expected = ((z - encoder.centre) @ encoder.axes).numpy()
    np.testing.assert_allclose(principal.transform(rows), expected, rtol=1e-5, atol=1e-6)
    covariance = np.corrcoef(principal.transform(rows).T)
    np.testing.assert_allclose(covariance, np.eye(3), atol=1e-3)


def test_learning_goes_on_as_if_there_were_no_axes(rows):
    principal, learned = (small(axes=axes).fit(rows) for axes in ("principal", "learned"))
    for model in (principal, learned):
        model.partial_fit(rows)
    np.testing.assert_array_equal(principal.predict_proba(rows), learned.predict_proba(rows))


def test_axes_are_saved(rows, tmp_path):
    model = small().fit(rows)
    model.save(tmp_path)
    np.testing.assert_array_equal(SelfView.load(tmp_path).transform(rows), model.transform(rows))


def test_the_papers_recipe_and_own_encoders_keep_theirs(rows):
    assert torch.equal(small(recipe="paper").fit(rows).network_.encoder.axes, torch.eye(3))
    own = small(encoder=nn.Linear(6, 3)).fit(rows)
    assert not hasattr(own.network_.encoder, "axes")
