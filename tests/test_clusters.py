"""Clusters: of points whose clusters are known, of a model, for new rows, saved and loaded."""

import numpy as np
import pytest
from sklearn.base import is_clusterer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

from selfview import InputError, SelfView
from selfview.clusters import find_clusters, mixture

SMALL = dict(epochs=8, random_state=0, verbose=0)
EXPECTED_FAILURES = {
    "check_dtype_object": "arrays of objects are refused, also those that hold numbers",
    "check_estimator_sparse_array": "expects predict_proba to be over clusters, not prototypes",
    "check_estimator_sparse_matrix": "expects predict_proba to be over clusters, not prototypes",
}
pytestmark = pytest.mark.filterwarnings("ignore::selfview.CollapseWarning")


def points(rng, k=5, n=300, spread=1.0, dim=4):
    y = rng.integers(0, k, n)
    return 6 * rng.normal(size=(k, dim))[y] + spread * rng.normal(size=(n, dim)), y


@pytest.mark.parametrize("k", [2, 5, 9])
@pytest.mark.parametrize("n", [300, 900])  # above 500, rows are gathered into nodes first
def test_clusters_that_are_there_are_found_and_counted(rng, k, n):
    Z, y = points(rng, k, n, spread=0.5, dim=8)
    found = find_clusters(Z, None, seed=0)
    assert found.count == k
    assert adjusted_rand_score(y, found.assign(Z)) > 0.95
    assert found.stability[k] > 0.95


def test_a_ring_and_its_middle_are_two_clusters_which_k_means_cannot_find(rng):
    angle = rng.uniform(0, 2 * np.pi, 400)
    ring = 8 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.3 * rng.normal(size=(400, 2))
    Z, y = np.concatenate([ring, rng.normal(size=(200, 2))]), np.repeat([0, 1], [400, 200])
    found = find_clusters(Z, 2, seed=0)
    assert adjusted_rand_score(y, found.assign(Z)) > 0.9


def test_a_few_outliers_are_no_cluster_where_two_are_asked_for(rng):
    parts = [
        rng.normal(size=(n, 4)) + at
        for n, at in ((400, 0), (400, [3, 0, 0, 0]), (6, [0, 14, 0, 0]))
    ]
    found = find_clusters(np.concatenate(parts), 2, seed=0)
    labels = [found.assign(part) for part in parts[:2]]
    assert adjusted_rand_score(np.repeat([0, 1], 400), np.concatenate(labels)) > 0.6


def test_one_homogeneous_cloud_is_no_confetti(rng):
    assert find_clusters(rng.normal(size=(1500, 10)), None, seed=0).count <= 2


def test_the_largest_cluster_comes_first_and_the_number_asked_for_is_given(rng):
    Z, _ = points(rng)
    labels = find_clusters(Z, 7, seed=0).assign(Z)
    counts = np.bincount(labels)
    assert len(counts) == 7
    assert (np.diff(counts) <= 0).all()


def test_equal_rows_are_one_cluster_however_many_are_asked_for():
    Z = np.ones((30, 3))
    found = find_clusters(Z, 4, seed=0)
    assert len(np.unique(found.assign(Z))) == 1
    assert np.isfinite(found.probabilities(Z)).all()


def test_probabilities_are_calibrated_by_clusters_of_half_of_the_rows(rng):
    Z, _ = points(rng, k=3, n=1200, spread=3.0, dim=2)
    found = find_clusters(Z, 3, seed=0)
    p = found.probabilities(Z)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(p.argmax(axis=1), found.assign(Z))
    kept = np.zeros(len(Z))
    for seed in range(1, 6):  # halves that were not looked at
        half = rng.random(len(Z)) < 0.5
        other = find_clusters(Z[half], 3, seed=seed)
        names = other.assign(found.centres)
        match = [np.bincount(found.labels[names == c], minlength=3).argmax() for c in range(3)]
        kept += np.array(match)[other.assign(Z)] == found.assign(Z)
    sure = p.max(axis=1)
    assert abs(sure.mean() - (kept / 5).mean()) < 0.1
    assert (kept / 5)[sure > 0.9].mean() > (kept / 5)[sure < 0.6].mean()


@pytest.fixture(scope="module")
def fitted():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X, y = X[:600].astype(np.float32), y[:600]
    return X, y, SelfView(n_clusters=10, random_state=0, verbose=0).fit(X)


def test_labels_are_those_that_predict_gives_and_agree_with_the_classes(fitted):
    X, y, model = fitted
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.predict(X[:7]), model.labels_[:7])
    assert model.n_clusters_ == 10
    assert normalized_mutual_info_score(y, model.labels_) > 0.8
    assert set(model.cluster_stability_) == {10}


def test_probabilities_of_a_model_name_the_predicted_cluster(fitted):
    X, _, model = fitted
    p = model.cluster_proba(X)
    assert p.shape == (600, 10)
    np.testing.assert_array_equal(p.argmax(axis=1), model.labels_)


def test_a_saved_model_gives_the_same_clusters(fitted, tmp_path):
    X, _, model = fitted
    model.save(tmp_path)
    loaded = SelfView.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    np.testing.assert_array_equal(loaded.cluster_proba(X), model.cluster_proba(X))
    assert loaded.cluster_stability_ == model.cluster_stability_


def test_the_embedding_of_the_fit_is_kept_and_is_that_of_transform(fitted):
    X, _, model = fitted
    np.testing.assert_array_equal(model.embedding_, model.transform(X))


def test_the_same_seed_gives_the_same_clusters(blobs):
    X, _ = blobs
    one, two = (SelfView(3, n_clusters="auto", **SMALL).fit_predict(X) for _ in "ab")
    np.testing.assert_array_equal(one, two)


def test_without_n_clusters_there_is_no_predict(blobs):
    X, _ = blobs
    model = SelfView(3, **SMALL).fit(X)
    assert not hasattr(model, "predict")
    assert not hasattr(model, "labels_")
    assert not hasattr(model, "n_clusters_")
    assert not is_clusterer(model)
    with pytest.raises(InputError, match="needs n_clusters"):
        model.explain(X, by="cluster")


@pytest.mark.parametrize("given", [0, -1, 2.5, "many", True])
def test_a_number_of_clusters_that_is_none_is_an_error(blobs, given):
    with pytest.raises(InputError, match="n_clusters must be"):
        SelfView(n_clusters=given, **SMALL).fit(blobs[0])


def test_more_clusters_than_rows_are_an_error(blobs):
    with pytest.raises(InputError, match="n_clusters must be at most the number of rows, 240"):
        SelfView(n_clusters=241, **SMALL).fit(blobs[0])


def test_a_stream_has_no_clusters_and_says_so(blobs):
    X, _ = blobs
    model = SelfView(3, n_clusters=3, **SMALL).partial_fit(X)
    with pytest.raises(InputError, match="clusters are found by fit"):
        model.predict(X)


@parametrize_with_checks(
    [SelfView(n_components=2, n_prototypes=5, n_clusters=3, epochs=2, random_state=0, verbose=0)],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learns_checks_of_clusterers(estimator, check):
    assert is_clusterer(estimator)
    check(estimator)


def test_without_clusters_predict_says_what_to_set():
    with pytest.raises(AttributeError, match="predict") as caught:
        SelfView().predict  # noqa: B018
    assert "set n_clusters" in str(caught.value.__cause__)
    assert not hasattr(SelfView(), "cluster_proba")


def test_a_mixture_is_that_of_scikit_learn_with_one_covariance():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    Z = rng.normal(size=(600, 4)) * [4, 1, 1, 1]
    Z[:, 1] += 5 * y
    theirs = GaussianMixture(3, covariance_type="tied", random_state=0).fit_predict(Z)
    found = mixture(Z, np.ones(600), 3, seed=0)
    assert adjusted_rand_score(theirs, found) > 0.98
    assert adjusted_rand_score(y, found) > 0.95
    # A node of size 2 counts as two equal rows do.
    doubled = mixture(np.concatenate([Z, Z]), np.ones(1200), 3, seed=0)
    assert adjusted_rand_score(doubled[:600], mixture(Z, np.full(600, 2.0), 3, seed=0)) > 0.98


def test_a_mixture_of_equal_rows_has_a_cluster_for_each():
    assert mixture(np.zeros((20, 3)), np.ones(20), 2, seed=0).shape == (20,)
