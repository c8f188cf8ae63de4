"""What all tests share: small data, small models, and real data where there is some."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# The same cases every time: a suite that fails by chance teaches to run it again.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")

# A shell starts what runs behind it deaf to Ctrl-C, and so would be the fits that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def blobs(rng):
    """240 rows of 12 features around three centres, and their labels."""
    centres = 4 * rng.normal(size=(3, 12))
    labels = np.repeat(np.arange(3), 80)
    return (centres[labels] + rng.normal(size=(240, 12))).astype(np.float32), labels


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in `tmp_path`; gives (exit code, stdout, stderr)."""
    import torch

    from selfview.cli import main

    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["selfview", *map(str, args)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    yield run
    torch.set_num_threads(threads)


@pytest.fixture
def real_data():
    """The folder of real datasets; a test that asks for it is skipped where there is none."""
    folder = os.environ.get("SELFVIEW_DATA")
    if not folder:
        pytest.skip("SELFVIEW_DATA is not set: no real data")
    return Path(folder)
