"""Neighbours that users bring, and metrics for the search."""

import warnings

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from selfview import SelfView
from selfview.errors import CheckpointError, InputError, SelfViewWarning
from selfview.neighbours.precomputed import LinkedNeighbours, linked_rows
from selfview.training.loop import Step

X = load_digits().data[:300].astype(np.float32)
FEW = dict(epochs=2, random_state=0, verbose=0)


def nearest(count=5):
    return NearestNeighbors(n_neighbors=count).fit(X).kneighbors(return_distance=False)


def drawn(links, n, rounds=200):
    """How often each row draws each other: (n, n)."""
    counts = np.zeros((n, n), int)
    neighbours = LinkedNeighbours(links, lambda index: torch.from_numpy(np.asarray(index)))
    generator = torch.Generator().manual_seed(0)
    rows = np.arange(n)
    for _ in range(rounds):
        step = Step(torch.zeros(n, 1), 0.0, generator, rows=rows)
        counts[rows, neighbours.draw(step).numpy()] += 1
    return counts


def test_an_array_with_the_rows_themselves_in_it_is_the_array_without():
    numbers = NearestNeighbors(n_neighbors=6).fit(X).kneighbors(X, return_distance=False)
    with_self, without = linked_rows(numbers, len(X)), linked_rows(nearest(), len(X))
    assert np.array_equal(with_self.starts, without.starts)
    assert np.array_equal(with_self.rows, without.rows)


def test_only_linked_rows_are_drawn_and_the_nearest_most_often():
    counts = drawn(linked_rows(nearest(), len(X)), len(X))
    linked = kneighbors_graph(X, 5).toarray() > 0
    assert (counts[~linked] == 0).all()
    by_rank = np.take_along_axis(counts, nearest(), axis=1).sum(axis=0)
    expected = counts.sum() * np.diff(np.sqrt(np.arange(6) / 5))
    np.testing.assert_allclose(by_rank, expected, rtol=0.05)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array])
def test_every_entry_of_a_graph_is_drawn_alike(make):
    graph = make(np.array([[0, 0.1, 0.9, 0], [1, 0, 0, 0], [5, 5, 5, 5], [0, 0, 1e-9, 0]]))
    counts = drawn(linked_rows(graph, 4), 4, rounds=3000)
    np.testing.assert_allclose(counts[0], [0, 1500, 1500, 0], rtol=0.1)
    np.testing.assert_allclose(counts[2], [1000, 1000, 0, 1000], rtol=0.1)
    assert counts[1, 0] == counts[3, 2] == 3000


def test_a_row_without_links_is_its_own_second_view_and_a_warning_says_so():
    graph = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    with pytest.warns(SelfViewWarning, match="1 of 3 rows have no neighbour"):
        links = linked_rows(graph, 3)
    assert drawn(links, 3)[2, 2] == 200


def test_numbers_below_zero_stand_for_none():
    links = linked_rows(np.array([[1, -1], [0, 2], [-1, 1]]), 3)
    assert [links.of(i).tolist() for i in range(3)] == [[1], [0, 2], [1]]


@pytest.mark.parametrize(
    ("neighbours", "words"),
    [
        (np.zeros((10, 3), int), "a row for each of the 300 rows, got 10"),
        (np.full((300, 2), 300), "row numbers from 0 to 299, got 300"),
        (np.full((300, 2), -2), "row numbers from 0 to 299, got -2"),
        (np.zeros((300, 2)), "integers, got an array of float64"),
        (sparse.eye_array(10).tocsr(), r"between the 300 rows, \(300, 300\), got \(10, 10\)"),
        (np.zeros(300, int), "must be"),
        ("ten", "must be 'auto' or an integer"),
    ],
)
def test_what_are_no_neighbours_of_these_rows_is_refused(neighbours, words):
    with pytest.raises(InputError, match=words):
        SelfView(neighbours=neighbours, **FEW).fit(X)


def test_groups_and_streams_take_no_neighbours_of_ones_own():
    groups = np.arange(len(X)) % 2
    with pytest.raises(InputError, match="left out with groups"):
        SelfView(neighbours=nearest(), **FEW).fit(X, groups=groups)
    with pytest.raises(InputError, match="metric must be left out with groups"):
        SelfView(metric="manhattan", **FEW).fit(X, groups=groups)
    with pytest.raises(InputError, match="a number in a stream"):
        SelfView(neighbours=nearest(), **FEW).partial_fit(X)
    with pytest.raises(InputError, match="got neighbours=a graph"):
        SelfView(neighbours=nearest(), views="random+adversarial", **FEW).fit(X)


def test_a_graph_decides_what_is_learned():
    """Links between pairs of blobs, which are far apart, bring them together."""
    rows, blob = make_blobs(480, 10, centers=8, cluster_std=1.0, random_state=0)
    pair = blob // 2
    generator = np.random.default_rng(0)
    numbers = np.stack([generator.choice(np.flatnonzero(pair == p), 10) for p in pair])
    Z = SelfView(3, neighbours=numbers, epochs=40, random_state=0, verbose=0).fit_transform(rows)
    centres = np.stack([Z[blob == b].mean(0) for b in range(8)])
    apart = np.linalg.norm(centres[:, None] - centres, axis=2)
    linked = [apart[2 * p, 2 * p + 1] for p in range(4)]
    others = [apart[a, b] for a in range(8) for b in range(8) if a // 2 != b // 2]
    assert max(linked) < 0.5 * min(others)


def test_the_verdict_is_on_the_links_that_were_given():
    """Links to rows that are no neighbours are kept better than by PCA, which knows none."""
    numbers = np.random.default_rng(0).integers(0, len(X), (len(X), 5))
    model = SelfView(neighbours=numbers, random_state=0, verbose=0).fit(X)
    assert model.health_["outcome"] == "sound"
    assert model.health_["neighbour_perplexity_pca"] > 200  # of 300


def test_pairs_are_linked_and_share_no_row():
    links = linked_rows(nearest(), len(X))
    found = links.pairs(100, seed=0)
    assert len(found) == len(set(found.tolist())) <= 200
    assert all(b in links.of(a) for a, b in found.reshape(-1, 2))


def test_scanpys_and_pynndescents_forms_are_taken():
    graph = kneighbors_graph(X, 10, mode="distance")
    connectivities = graph.maximum(graph.T)  # symmetric, as scanpy's are
    for neighbours in (graph, connectivities, nearest().astype(np.int32)):
        assert SelfView(neighbours=neighbours, **FEW).fit_transform(X).shape == (300, 10)


def test_the_same_neighbours_give_the_same_bits_in_a_copy_too():
    model = SelfView(neighbours=nearest(), **FEW)
    first, again = model.fit_transform(X), clone(model).fit_transform(X)
    assert np.array_equal(first, again)
    other = SelfView(neighbours=nearest(20), **FEW).fit_transform(X)
    assert not np.array_equal(first, other)


def test_a_saved_model_keeps_no_neighbours(tmp_path):
    model = SelfView(neighbours=nearest(), **FEW).fit(X)
    model.save(tmp_path / "run")
    loaded = SelfView.load(tmp_path / "run")
    assert loaded.neighbours == "auto"
    assert np.array_equal(loaded.transform(X), model.transform(X))


def test_a_checkpoint_is_of_its_neighbours(tmp_path):
    def stop(end):
        return end.epoch == 1

    first = SelfView(neighbours=nearest(), checkpoint=tmp_path, on_epoch=stop, **FEW)
    first.fit(X)
    with pytest.raises(CheckpointError, match="neighbours"):
        SelfView(neighbours=nearest(6), checkpoint=tmp_path, **FEW).fit(X)
    resumed = SelfView(neighbours=nearest(), checkpoint=tmp_path, **FEW).fit(X)
    whole = SelfView(neighbours=nearest(), **FEW).fit(X)
    assert np.array_equal(resumed.embedding_, whole.embedding_)


@pytest.mark.parametrize("metric", ["manhattan", "cosine", "correlation", "chebyshev", "jaccard"])
def test_a_metric_finds_the_rows_that_scikit_learn_finds(metric):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = NearestNeighbors(n_neighbors=10, metric=metric)
        rows = X > 0 if metric == "jaccard" else X
        found = search.fit(rows).kneighbors(return_distance=False)
    by_metric = SelfView(metric=metric, **FEW).fit_transform(X)
    by_array = SelfView(neighbours=found, **FEW).fit_transform(X)
    assert np.array_equal(by_metric, by_array)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("euclid", "one of 'auto'"),
        ("precomputed", "pass the graph as neighbours="),
        ("haversine", "can't be compared by metric='haversine'"),
    ],
)
def test_a_metric_that_cannot_serve_is_refused(metric, words):
    with pytest.raises(InputError, match=words):
        SelfView(metric=metric, **FEW).fit(X)
