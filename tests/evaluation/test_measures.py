"""Each measure against an oracle that is not ours."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.manifold import trustworthiness
from sklearn.metrics import (
    adjusted_rand_score,
    normalized_mutual_info_score,
    r2_score,
    silhouette_score,
)
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selfview import InputError, SelfViewWarning, evaluate
from selfview.evaluation import matched_accuracy, neighbourhood, probes
from selfview.evaluation.neighbourhood import majority_vote, tsne_layout


def overlapping(n=600, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, 5)) * [1, 2, 3, 0.1, 9] + 1.5 * np.eye(classes, 5)[y], y


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40))
def test_clustering_accuracy_is_the_best_of_all_permutations(pairs):
    codes, clusters = np.array(pairs).T
    best = max(
        np.mean(np.array(order)[clusters] == codes) for order in itertools.permutations(range(5))
    )
    assert matched_accuracy(codes, clusters) == pytest.approx(best)


def test_clustering_is_kmeans_of_scikit_learn_on_the_rows_as_they_are():
    Z, y = overlapping()
    clusters = KMeans(4, n_init=20, random_state=7).fit_predict(Z)
    scores = evaluate(Z, y, measures="clustering", random_state=7)
    assert scores["kmeans_nmi"] == pytest.approx(normalized_mutual_info_score(y, clusters))
    assert scores["kmeans_ari"] == pytest.approx(adjusted_rand_score(y, clusters))
    assert scores["kmeans_acc"] == matched_accuracy(y, clusters)


def test_linear_is_logistic_regression_with_the_training_parts_statistics():
    Z, y = overlapping()
    train, test = train_test_split(np.arange(600), test_size=0.2, stratify=y, random_state=0)
    oracle = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    expected = oracle.fit(Z[train], y[train]).score(Z[test], y[test])
    scores = evaluate(Z, y, measures="linear", random_state=99)
    assert scores["linear_accuracy"] == pytest.approx(expected)
    assert scores["linear_converged"] == 1


def test_a_linear_probe_that_stops_early_says_so(monkeypatch):
    monkeypatch.setattr(probes, "MAX_ITERATIONS", 2)
    with pytest.warns(SelfViewWarning, match="did not converge"):
        assert evaluate(*overlapping(), measures="linear")["linear_converged"] == 0


def test_linear_takes_a_class_missing_from_training_and_a_constant_feature():
    Z, y = overlapping()
    Z[:, 2] = 1e9 + 0.1
    split = (np.flatnonzero(y != 3), np.flatnonzero(y == 3)[:9])
    with pytest.warns(SelfViewWarning, match="one class only"):
        assert evaluate(Z, y, split=split, measures="linear")["linear_accuracy"] == 0


def test_knn_is_scikit_learns():
    Z, y = overlapping()
    test = np.arange(600) % 4 == 0
    expected = KNeighborsClassifier(21).fit(Z[~test], y[~test]).score(Z[test], y[test])
    assert evaluate(Z, y, split=test, measures="knn")["knn_accuracy"] == expected


def test_graph_vote_of_a_hand_counted_line():
    # The two nearest of each point on a line, itself left out: 0 and 1 and 2.1 have each other,
    # and so have 10 and 11 and 12.5.
    points = np.array([[0.0], [1.0], [2.1], [10.0], [11.0], [12.5]])
    codes = np.array([0, 1, 1, 2, 2, 0])
    # votes: {1,1}->1  {0,1}->tie->0  {1,0}->tie->0  {2,0}->tie->0  {2,0}->0  {2,2}->2
    assert majority_vote(points, codes, k=2).tolist() == [1, 0, 0, 0, 0, 2]


def test_a_point_may_count_among_its_own_nearest():
    points = np.array([[0.0], [1.0], [2.1], [9.0]])
    codes = np.array([0, 1, 1, 2])
    assert majority_vote(points, codes, k=1, itself=True).tolist() == codes.tolist()
    assert majority_vote(points, codes, k=1).tolist() == [1, 0, 1, 1]


def test_graph_layout_is_a_function_of_rows_and_seed_but_not_of_scale():
    Z, _ = overlapping(150)
    first = tsne_layout(Z, 0)
    assert first.shape == (150, 2)
    np.testing.assert_array_equal(first, tsne_layout(Z, 0))
    np.testing.assert_array_equal(first, tsne_layout(1000 * Z, 0))


def test_graph_subsamples_above_its_limit_and_shows_the_number(monkeypatch):
    monkeypatch.setattr(neighbourhood, "GRAPH_ROWS", 100)
    Z, y = overlapping()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = evaluate(Z, y, measures="graph")
    assert (scores["n_rows"], scores["graph_rows"]) == (600, 100)


def test_silhouette_and_trustworthiness_are_scikit_learns():
    Z, y = overlapping(200)
    X = np.random.default_rng(1).normal(size=(200, 9))
    scores = evaluate(Z, y, X=X, measures=["silhouette", "trustworthiness"])
    assert scores["silhouette"] == pytest.approx(silhouette_score(Z, y))
    assert scores["trustworthiness"] == pytest.approx(trustworthiness(X, Z, n_neighbors=5))


def test_effective_rank_counts_equal_orthogonal_directions():
    axes = np.concatenate([np.eye(4), -np.eye(4)])
    y = [0, 1] * 4
    rank = evaluate(axes, y, measures="effective_rank")["effective_rank"]
    assert rank == pytest.approx(4)
    line = np.outer(np.arange(8.0), [1, 2, 3])
    assert evaluate(line, y, measures="effective_rank")["effective_rank"] == pytest.approx(1)


def test_regression_is_least_squares_over_all_outputs():
    Z, _ = overlapping(300)
    rng = np.random.default_rng(2)
    target = Z @ rng.normal(size=(5, 3)) + 40 + rng.normal(size=(300, 3))
    predicted = LinearRegression().fit(Z, target).predict(Z)
    scores = evaluate(Z, target, measures="regression")
    assert scores["regression_rss"] == pytest.approx(np.square(target - predicted).sum())
    expected = r2_score(target, predicted, multioutput="variance_weighted")
    assert scores["regression_r2"] == pytest.approx(expected)


def test_regression_with_a_split_is_scored_on_the_test_rows():
    Z, _ = overlapping(300)
    target = Z[:, :2] + np.random.default_rng(3).normal(size=(300, 2))
    test = np.arange(300) % 2 == 0
    predicted = LinearRegression().fit(Z[~test], target[~test]).predict(Z[test])
    scores = evaluate(Z, target, split=test, measures="regression")
    assert scores["regression_rss"] == pytest.approx(np.square(target[test] - predicted).sum())


@pytest.mark.parametrize(
    ("y", "continuous"),
    [
        (np.linspace(0, 1, 120), True),
        (np.arange(120.0) // 10, False),
        (np.arange(120) % 3 + 0.5, False),
        (np.zeros((120, 3)) + np.arange(120)[:, None], True),
    ],
)
def test_how_a_target_is_read(y, continuous):
    Z = np.random.default_rng(0).normal(size=(120, 2))
    if continuous:
        assert "regression_r2" in evaluate(Z, y, measures="regression")
    else:
        assert "linear_accuracy" in evaluate(Z, y, measures="linear")
        with pytest.raises(InputError, match="target='continuous'"):
            evaluate(Z, y, measures="regression")
        assert "regression_r2" in evaluate(Z, y, measures="regression", target="continuous")
