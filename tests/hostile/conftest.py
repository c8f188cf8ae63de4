"""Every test here has little memory, a cache of its own, and a watch on what is written where."""

import resource
import shutil
import signal

import pytest

from hostile import FIXTURE


@pytest.fixture(autouse=True)
def _little_memory_and_time():
    """An allocation of gigabytes, or a hang, fails the test instead of the machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as stream:
        now = int(stream.read().split()[0]) * resource.getpagesize()

    def late(*_):
        raise TimeoutError("this file takes too long")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(120)
    resource.setrlimit(resource.RLIMIT_AS, (now + 3 * 2**30, hard))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SELFVIEW_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def sentinel(tmp_path):
    """A folder that appears if code of a file was run; nothing else may appear outside either."""
    outside = tmp_path / "outside"
    outside.mkdir()
    yield outside / "was-here"
    assert not any(outside.iterdir())


@pytest.fixture
def model(tmp_path):
    """A copy of the fixture's models, free to be spoiled."""
    shutil.copytree(FIXTURE, tmp_path / "model")
    return tmp_path / "model"
