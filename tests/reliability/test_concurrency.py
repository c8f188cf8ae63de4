"""Many threads and many fits in one process; fits that fail."""

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from small_fits import bits, figures, rows, small_encoder, small_model
from torch import nn

from selfview import SelfView
from selfview.baselines import PCA

pytestmark = pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")


@pytest.mark.parametrize("kind", [SelfView, PCA])
def test_transform_from_eight_threads_equals_one(kind):
    X = np.random.default_rng(0).normal(size=(300, 20))
    given = {} if kind is PCA else dict(epochs=1, verbose=0)
    model = kind(n_components=4, random_state=0, **given).fit(X)
    # Parts of unlike lengths, so that threads are at unlike places; all start at once.
    parts = [X[i * 10 : i * 10 + 1 + 20 * i] for i in range(8)]
    alone = [model.transform(part) for part in parts]
    start = threading.Barrier(8)

    def work(number):
        start.wait()
        found = {i: model.transform(parts[i]) for i in np.roll(np.arange(8), number)}
        return [found[i] for i in range(8)]

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(work, range(8)):
            for one, other in zip(alone, found, strict=True):
                np.testing.assert_array_equal(one, other)


class Failing(nn.Module):
    """An encoder that raises in the middle of training."""

    def __init__(self, error):
        super().__init__()
        self.inner, self.error, self.left = small_encoder(), error, 50

    def forward(self, x):
        self.left -= self.training
        if self.left < 0:
            raise self.error
        return self.inner(x)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, MemoryError])
def test_a_fit_that_fails_leaves_the_model_as_it_was(error):
    model = small_model().fit(rows())
    before, history, Z = bits(model), list(model.history_), model.transform(rows())
    mode, random = model.network_.training, torch.random.get_rng_state()
    model.set_params(encoder=Failing(error()))
    with pytest.raises(error):
        model.fit(rows())
    model.set_params(encoder=small_encoder())
    assert bits(model) == before
    assert model.history_ == history
    assert model.network_.training == mode
    assert torch.equal(torch.random.get_rng_state(), random)
    np.testing.assert_array_equal(model.transform(rows()), Z)


def test_a_pass_that_fails_can_be_repeated():
    model, twin = small_model(), small_model()
    for _ in range(2):
        model.partial_fit(rows())
        twin.partial_fit(rows())
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((10, 6), np.nan))
    model.partial_fit(rows())
    twin.partial_fit(rows())
    assert bits(model) == bits(twin)
    assert figures(model.history_) == figures(twin.history_)


def test_fits_leave_no_tensors_and_no_open_files_behind(tmp_path):
    def live():
        gc.collect()
        tensors = sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())
        return tensors, len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    def use(number):
        model = small_model(epochs=1, checkpoint=tmp_path / str(number)).fit(rows())
        model.transform(rows())

    use("first")
    before = live()
    for number in range(5):
        use(number)
    assert live() == before
