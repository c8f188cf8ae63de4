"""Principal components that networks see: scikit-learn's, and what folding them in gives."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA

from selfview import SelfView
from selfview.rows import projection
from selfview.rows.conversion import as_rows
from selfview.rows.projection import ProjectedRows, principal_components

pytestmark = pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")


def rows_of(rng, n, columns):
    return (rng.normal(size=(n, columns)) * np.geomspace(9, 0.01, columns) + 2).astype(np.float32)


@pytest.mark.parametrize(("n", "columns"), [(200, 12), (60, 150), (150, 120)])
def test_components_are_scikit_learns(rng, monkeypatch, n, columns):
    monkeypatch.setattr(projection, "SMALL_SIDE", 100)  # so that all three ways are tried
    X = rows_of(rng, n, columns)
    found = principal_components(as_rows(X), 3)(torch.from_numpy(X)).numpy()
    expected = PCA(3, svd_solver="full").fit_transform(X)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=2e-2 * np.abs(expected).max())


def test_distances_keep_their_proportions_without_whitening(rng):
    X = rows_of(rng, 100, 6)
    found = principal_components(as_rows(X), 6, length=16.0)
    Z = found(torch.from_numpy(X))
    assert Z.square().sum(1).mean().sqrt().item() == pytest.approx(16, rel=0.01)
    distances = torch.pdist(torch.from_numpy(X)) * found.unit
    torch.testing.assert_close(torch.pdist(Z), distances, rtol=1e-3, atol=1e-3)


def test_whitening_divides_by_a_power_of_the_standard_deviations(rng):
    X = rows_of(rng, 500, 6)
    plain = principal_components(as_rows(X), 6)(torch.from_numpy(X)).std(0)
    half = principal_components(as_rows(X), 6, whitening=0.5)
    found = half(torch.from_numpy(X)).std(0)
    torch.testing.assert_close(found / found[0], (plain / plain[0]).sqrt(), rtol=1e-3, atol=0)
    again = ProjectedRows(as_rows(X), half).components(6)
    torch.testing.assert_close(again.std(0), plain, rtol=1e-3, atol=0)


def test_rows_that_are_not_kept_in_memory_are_projected_when_they_are_taken(rng, monkeypatch):
    X = rows_of(rng, 50, 6)
    found = principal_components(as_rows(X), 3)
    kept = ProjectedRows(as_rows(X), found)
    monkeypatch.setattr(projection, "CACHED_ENTRIES", 10)
    taken = ProjectedRows(as_rows(X), found)
    index = np.array([3, 1, 40])
    torch.testing.assert_close(taken.take(index), kept.take(index))
    torch.testing.assert_close(taken.pick(index), kept.take(index))
    torch.testing.assert_close(taken.take(slice(2, 9)), kept.take(slice(2, 9)))


@pytest.mark.parametrize("scale", [1.0, 1e-6, np.geomspace(1e-3, 1e5, 30)])
def test_a_delivered_model_takes_rows_and_gives_what_training_saw(rng, scale):
    X = rows_of(rng, 300, 30) * np.float32(scale)
    model = SelfView(3, epochs=2, axes="learned", random_state=0, verbose=0)
    seen = {}
    finish = model._finish

    def spy(network, rows, plan):
        with torch.no_grad():
            seen["z"] = network.encoder.features(rows.take(slice(0, rows.n)))
        finish(network, rows, plan)

    model._finish = spy
    model.fit(X)
    expected = seen["z"].numpy()
    np.testing.assert_allclose(model.transform(X), expected, atol=2e-3 * np.abs(expected).max())
    assert model.network_.encoder[1].in_features == 30


@pytest.mark.parametrize(
    ("columns", "clusters", "n"), [(10, 3, 500), (50, 5, 1000), (150, 4, 2000)]
)
def test_neighbours_are_compared_without_plain_noise(columns, clusters, n):
    X = make_blobs(n, columns, centers=clusters, cluster_std=4.0, random_state=0)[0]
    found = principal_components(as_rows(X.astype(np.float32)), 100)
    assert found.signal == clusters - 1  # the centres span no more


@pytest.mark.parametrize(
    "kind", ["noise alone", "one-hot", "a falling spectrum", "few rows", "few columns"]
)
def test_what_may_be_more_than_noise_is_kept(rng, kind):
    X = {
        "noise alone": lambda: rng.normal(size=(2000, 30)),
        "one-hot": lambda: np.c_[20 * rng.normal(size=2000), np.eye(12)[rng.integers(0, 12, 2000)]],
        "a falling spectrum": lambda: rows_of(rng, 2000, 30),
        "few columns": lambda: rng.normal(size=(2000, 2)) * (9, 1),
        "few rows": lambda: make_blobs(40, 60, random_state=0)[0],
    }[kind]()
    found = principal_components(as_rows(X.astype(np.float32)), 100)
    assert found.signal == found.basis.shape[1]
