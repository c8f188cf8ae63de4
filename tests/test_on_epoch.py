"""`on_epoch` sees every epoch and may end a fit; `max_seconds` ends it too. Both leave a model."""

import pickle
import time

import numpy as np
import pytest
from sklearn.base import clone

from selfview import CollapseWarning, InputError, SelfView
from selfview.baselines import AutoEncoder

pytestmark = pytest.mark.filterwarnings(f"ignore::{CollapseWarning.__module__}.CollapseWarning")
SHORT = dict(epochs=6, batch_size=64, random_state=0, verbose=0)  # four steps an epoch


class Recorder:
    """Keeps every embedding, and stops after `last` epochs."""

    def __init__(self, last=None):
        self.last, self.ends, self.embeddings = last, [], []

    def __call__(self, end):
        self.ends.append(end)
        self.embeddings.append(end.embedding())
        return end.epoch == self.last


def weights(model):
    return np.concatenate(
        [p.detach().numpy().ravel() for p in model.network_.state_dict().values()]
    )


KINDS = [
    pytest.param(lambda **more: SelfView(3, **SHORT, **more), id="default"),
    pytest.param(lambda **more: SelfView(3, recipe="paper", **SHORT, **more), id="paper"),
    pytest.param(lambda **more: AutoEncoder(3, **SHORT, **more), id="autoencoder"),
]


@pytest.mark.parametrize("make", KINDS)
def test_every_epoch_is_told_with_its_metrics(make, blobs):
    seen = Recorder()
    model = make(on_epoch=seen).fit(blobs[0])
    assert [end.epoch for end in seen.ends] == [1, 2, 3, 4, 5, 6]
    assert {end.epochs for end in seen.ends} == {6}
    assert [dict(end.metrics) for end in seen.ends] == model.history_
    assert model.health_["stopped"] is None


@pytest.mark.parametrize("make", KINDS)
def test_looking_changes_no_bit_of_the_fit(make, blobs):
    seen = Recorder()
    np.testing.assert_array_equal(
        weights(make(on_epoch=seen).fit(blobs[0])), weights(make().fit(blobs[0]))
    )


@pytest.mark.parametrize("make", KINDS)
def test_the_embedding_is_what_a_fit_that_ends_there_delivers(make, blobs):
    X = blobs[0]
    seen = Recorder()
    whole = make(on_epoch=seen).fit(X)
    np.testing.assert_array_equal(seen.embeddings[-1], whole.transform(X))
    part = make(on_epoch=Recorder(last=2)).fit(X)
    np.testing.assert_array_equal(seen.embeddings[1], part.transform(X))
    new = make(on_epoch=lambda end: end.transform(X[:7]).shape == (7, 3)).fit(X)
    assert len(new.history_) == 1


@pytest.mark.parametrize("make", KINDS)
def test_true_ends_the_fit_with_a_whole_model(make, blobs, tmp_path):
    model = make(on_epoch=Recorder(last=2)).fit(blobs[0])
    assert len(model.history_) == 2
    assert model.epochs_ == 6
    assert model.health_["stopped"] == "on_epoch"
    assert model.health_["verdict"].endswith("; stopped by on_epoch after 2 of 6 epochs")
    model.save(tmp_path)
    loaded = type(model).load(tmp_path)
    np.testing.assert_array_equal(loaded.transform(blobs[0]), model.transform(blobs[0]))
    assert loaded.on_epoch is None
    assert loaded.health_["stopped"] == "on_epoch"


@pytest.mark.parametrize("answer", [None, 1, "stop", np.ones(3), False, np.False_])
def test_only_true_ends_a_fit(answer, blobs):
    model = SelfView(3, on_epoch=lambda end: answer, **SHORT).fit(blobs[0])
    assert len(model.history_) == 6


def test_true_after_the_last_epoch_is_no_early_end(blobs):
    model = SelfView(3, on_epoch=lambda end: np.bool_(end.epoch == 6), **SHORT).fit(blobs[0])
    assert model.health_["stopped"] is None


def test_time_is_up_after_a_step_within_an_epoch(blobs):
    model = SelfView(3, max_seconds=1e-9, **SHORT).fit(blobs[0])
    assert [row["steps"] for row in model.history_] == [1]
    assert np.isfinite(model.history_[0]["loss"])
    assert np.isfinite(model.transform(blobs[0])).all()
    assert model.health_["stopped"] == "max_seconds"
    assert model.health_["verdict"].endswith("; stopped by max_seconds after 0.25 of 6 epochs")


def test_time_is_up_at_the_end_of_an_epoch(blobs):
    def wait(end):
        time.sleep(0 if end.epoch < 3 else 2)

    model = SelfView(3, on_epoch=wait, max_seconds=2.0, **SHORT).fit(blobs[0])
    assert model.health_["stopped"] == "max_seconds"
    assert len(model.history_) <= 3  # fewer on a machine that is busy


def test_time_that_is_enough_changes_nothing(blobs):
    model = SelfView(3, max_seconds=1000, **SHORT).fit(blobs[0])
    assert model.health_["stopped"] is None
    np.testing.assert_array_equal(weights(model), weights(SelfView(3, **SHORT).fit(blobs[0])))


@pytest.mark.parametrize("early", [dict(on_epoch=Recorder(last=2)), dict(max_seconds=1e-9)])
def test_an_ended_fit_goes_on_from_its_checkpoint_with_the_same_bits(early, blobs, tmp_path):
    X = blobs[0]
    SelfView(3, checkpoint=tmp_path, **early, **SHORT).fit(X)
    seen = Recorder()
    resumed = SelfView(3, checkpoint=tmp_path, on_epoch=seen, **SHORT).fit(X)
    assert seen.ends[0].epoch == (3 if "on_epoch" in early else 1)
    np.testing.assert_array_equal(weights(resumed), weights(SelfView(3, **SHORT).fit(X)))
    assert [row["steps"] for row in resumed.history_] == [4] * 6


def test_a_fit_whose_time_was_up_is_the_same_when_called_again(blobs, tmp_path):
    given = dict(checkpoint=tmp_path, max_seconds=1e-9, **SHORT)
    first = SelfView(3, **given).fit(blobs[0])
    again = SelfView(3, **given).fit(blobs[0])
    np.testing.assert_array_equal(weights(first), weights(again))
    assert again.health_["stopped"] == "max_seconds"
    assert [row["steps"] for row in again.history_] == [1]


def test_an_epoch_is_told_before_its_state_is_kept(blobs, tmp_path):
    """A callback that writes a file of every epoch misses none through a kill."""

    def fail(end):
        if end.epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SelfView(3, checkpoint=tmp_path, on_epoch=fail, **SHORT).fit(blobs[0])
    seen = Recorder()
    SelfView(3, checkpoint=tmp_path, on_epoch=seen, **SHORT).fit(blobs[0])
    assert seen.ends[0].epoch <= 3


def test_a_clone_has_both(blobs):
    model = SelfView(3, on_epoch=print, max_seconds=5.0)
    assert clone(model).get_params() == model.get_params()
    fitted = SelfView(3, on_epoch=print, **SHORT | {"epochs": 1}).fit(blobs[0])
    assert pickle.loads(pickle.dumps(fitted)).on_epoch is print


def test_passes_over_a_stream_are_told_and_not_ended(blobs):
    seen = Recorder(last=1)
    model = SelfView(3, on_epoch=seen, max_seconds=1e-9, **SHORT)
    for _ in range(2):
        model.partial_fit(blobs[0])
    assert [end.epoch for end in seen.ends] == [1, 2]
    np.testing.assert_array_equal(seen.embeddings[-1], model.transform(blobs[0]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(on_epoch=3), "on_epoch must be callable or None, got 3"),
        (dict(max_seconds=0), "max_seconds must be positive and finite, got 0"),
        (dict(max_seconds="long"), "max_seconds must be a positive number, got 'long'"),
    ],
)
def test_what_can_not_be_used_is_named(given, message, blobs):
    with pytest.raises(InputError, match=message):
        SelfView(**given).fit(blobs[0])
