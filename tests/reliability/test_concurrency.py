"""Many threads and many fits in one process; fits that fail."""

import gc
import os
import platform
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from small_fits import bits, metrics, rows, small_encoder, small_model
from torch import nn

from selfview import SelfView
from selfview.baselines import PCA, DenoisingAutoEncoder, VariationalAutoEncoder
from selfview.training.seeding import own_weights

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


FITS = [
    lambda seed: SelfView(**SHORT, random_state=seed).fit(WIDE),
    lambda seed: SelfView(**SHORT, random_state=seed).fit(WIDE[:, :64].reshape(-1, 1, 8, 8)),
    lambda seed: DenoisingAutoEncoder(**SHORT, random_state=seed).fit(WIDE),
    lambda seed: VariationalAutoEncoder(**SHORT, random_state=seed).fit(WIDE),
]
SHORT = dict(n_components=4, epochs=2, batch_size=32, verbose=0)
WIDE = np.random.default_rng(0).normal(size=(96, 70)).astype(np.float32)


def test_fits_in_four_threads_equal_fits_in_sequence():
    """Bit for bit, and the caller's random state is given back."""
    jobs = [(fit, seed) for seed in (0, 1) for fit in FITS]
    torch.manual_seed(5)
    random = torch.random.get_rng_state()
    alone = [bits(fit(seed)) for fit, seed in jobs]
    start = threading.Barrier(4)

    def work(number):
        start.wait()
        return {i: bits(jobs[i][0](jobs[i][1])) for i in np.roll(np.arange(len(jobs)), number)}

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, range(4)):
            assert all(found[i] == one for i, one in enumerate(alone))
    assert torch.equal(torch.random.get_rng_state(), random)


def test_first_weights_do_not_depend_on_what_other_threads_draw():
    def weights():
        with own_weights(3):
            layers = nn.Sequential(nn.Linear(20, 20), nn.Conv2d(2, 3, 5), nn.BatchNorm1d(9))
        return [p.detach().clone() for p in layers.parameters()]

    torch.manual_seed(3)
    plain = nn.Sequential(nn.Linear(20, 20), nn.Conv2d(2, 3, 5), nn.BatchNorm1d(9))
    done = threading.Event()

    def stranger():
        while not done.is_set():
            torch.rand(10)

    with ThreadPoolExecutor(1) as pool:
        drawing = pool.submit(stranger)
        try:
            every = [weights() for _ in range(50)]
        finally:
            done.set()
        drawing.result()
    for found in every:
        assert all(map(torch.equal, found, plain.parameters()))


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
    assert metrics(model.history_) == metrics(twin.history_)


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


ALLOCATING = """
import ctypes
import numpy as np
from torch import nn
from selfview import SelfView

class Mallinfo(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_int) for name in names.split()]

libc = ctypes.CDLL(None)
libc.mallinfo.restype = Mallinfo
libc.malloc.restype = ctypes.c_void_p
mapped = []

class Allocating(nn.Linear):
    def forward(self, x):
        before = libc.mallinfo().hblks
        block = libc.malloc(ctypes.c_size_t(64 << 20))
        mapped.append(libc.mallinfo().hblks - before)
        libc.free(ctypes.c_void_p(block))
        return super().forward(x)

SelfView(3, encoder=Allocating(6, 3), epochs=1, verbose=0).fit(np.eye(40, 6))
print(set(mapped))
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallinfo is glibc's")
def test_a_fit_leaves_the_allocators_settings_alone():
    # In a process of its own: blocks that other tests have freed would be taken first.
    done = subprocess.run(
        [sys.executable, "-c", ALLOCATING], capture_output=True, text=True, check=True
    )
    # Blocks above 32 MiB are mapped one by one, unless somebody told glibc otherwise.
    assert done.stdout.strip() == "{1}"
