"""Streams: partial_fit learns from rows that come in chunks, without a known end."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from selfview import SelfView, evaluate, load_dataset
from selfview.estimator import verdict
from selfview.neighbours.search import nearest, search_points
from selfview.rows.conversion import as_rows
from selfview.rows.stream import WINDOW_BYTES, WINDOW_ROWS, Stream
from selfview.training.schedules import stream_rate

CHUNK = 256


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X.astype(np.float32), y


def streamed(X, chunk=CHUNK, **options):
    given = {"random_state": 0, "verbose": 0} | options
    model = SelfView(**given)
    for start in range(0, len(X), chunk):
        model.partial_fit(X[start : start + chunk])
    return model


@pytest.fixture(scope="module")
def passed(digits):
    """A model after one pass over all digits."""
    return streamed(digits[0])


def linear(model, X, y):
    return evaluate(model.transform(X), y, measures=["linear"])["linear_accuracy"]


def test_one_pass_over_a_stream_is_as_good_as_one_epoch(digits, passed):
    X, y = digits
    whole = SelfView(epochs=1, random_state=0, verbose=0).fit(X)
    assert linear(passed, X, y) > linear(whole, X, y) - 0.02


def test_a_pass_in_chunks_is_called_what_it_is(passed):
    assert passed.health_["outcome"] == verdict.SOUND
    noise = np.random.default_rng(0).normal(size=(1024, 20))
    assert streamed(noise).health_["outcome"] == verdict.NOTHING


def test_a_stream_warns_of_nothing_while_it_goes_on():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = streamed(np.random.default_rng(0).normal(size=(512, 20)))
    assert len(model.history_) == 2


def test_the_first_chunk_fixes_no_end(passed):
    assert passed.epochs_ == 0
    assert [row["steps"] for row in passed.history_] == [1] * 8
    assert passed._optimisers[0].learning_rate > 1e-3  # half of the peak


def test_the_rate_of_a_stream_rises_and_then_falls_by_the_root_of_the_step():
    rates = [stream_rate(1.0, step) for step in (0, 11, 49, 199, 4999)]
    np.testing.assert_allclose(rates, [1 / 12, 1, 1, 0.5, 0.1])


def test_epochs_and_schedule_change_nothing_in_a_stream(digits):
    X, _ = digits
    a, b = streamed(X[:512]), streamed(X[:512], epochs=3, schedule="drop")
    np.testing.assert_array_equal(a.transform(X), b.transform(X))


def test_chunks_of_many_batches_count_every_step(digits):
    X, _ = digits
    model = streamed(X, chunk=1000, batch_size=100)
    assert [row["steps"] for row in model.history_] == [10, 8]


def test_neighbours_come_from_earlier_chunks_too():
    rows = np.arange(8.0)[:, None]
    recent = torch.arange(0.1, 8.1)[:, None]
    stream = Stream.pass_over(as_rows(rows), recent, passes=1, steps=1, batches=1)
    near = nearest(search_points(stream.window, 0, angle=False), 1, first=8)
    assert near.ravel().tolist() == list(range(8, 16))


def test_a_window_holds_the_newest_rows_within_its_bounds():
    recent = torch.zeros(WINDOW_ROWS, 2)
    stream = Stream.pass_over(as_rows(np.ones((5, 2))), recent, passes=1, steps=1, batches=1)
    assert stream.window.n == len(stream.recent()) == WINDOW_ROWS
    assert stream.recent()[:5].eq(1).all()
    wide = as_rows(np.ones((9, WINDOW_BYTES // 16)))  # of which four fit
    assert len(Stream.pass_over(wide, None, passes=0, steps=0, batches=1).recent()) == 4


def test_a_stream_goes_on_from_a_file_and_from_a_pickle(digits, tmp_path):
    X, _ = digits
    model = streamed(X[:1024])
    model.save(tmp_path / "m")
    for again in (SelfView.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        assert again.health_ == model.health_
        again.partial_fit(X[1024:1280])
        assert again.epochs_ == 0
        assert len(again.history_) == len(model.history_) + 1
        assert again._optimisers[0].learning_rate == pytest.approx(2e-3 * 5 / 12)


def test_a_stream_is_repeatable_bit_for_bit(digits):
    X, _ = digits
    np.testing.assert_array_equal(streamed(X[:768]).transform(X), streamed(X[:768]).transform(X))


@pytest.mark.parametrize("options", [{"neighbours": 0}, {"recipe": "paper"}, {"encoder": "own"}])
def test_any_recipe_learns_from_a_stream(digits, options):
    X, _ = digits
    if "encoder" in options:
        options = {"encoder": nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))}
    model = streamed(X[:768], **options)
    assert np.isfinite(model.transform(X)).all()
    assert "verdict" in model.health_


@pytest.mark.slow
def test_one_pass_over_mnist_is_within_two_points_of_one_epoch(real_data):
    dataset = load_dataset("mnist")
    X, y = dataset.X[:60_000], dataset.y[:60_000]
    order = np.random.default_rng(1).permutation(len(X))
    test, truth = dataset.X[60_000:], dataset.y[60_000:]
    split = np.r_[np.zeros(20_000, bool), np.ones(len(test), bool)]

    def score(model):
        Z = np.concatenate([model.transform(X[order[:20_000]]), model.transform(test)])
        labels = np.concatenate([y[order[:20_000]], truth])
        return evaluate(Z, labels, split=split, measures=["linear"])["linear_accuracy"]

    whole = SelfView(epochs=1, random_state=0, verbose=0).fit(X)
    assert score(streamed(X[order])) > score(whole) - 0.02
