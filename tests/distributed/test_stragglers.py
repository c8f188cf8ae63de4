"""A process that keeps the others waiting is named: by two looks, and in a real hanging fit."""

import subprocess
from pathlib import Path

import cases
import numpy as np
import pytest
from test_distributed import torchrun

from selfview import SelfView
from selfview.stragglers import Look, stragglers


def look(time, begun, waited):
    return Look(float(time), np.array(begun, float), np.array(waited, float))


@pytest.mark.parametrize(
    ("first", "last", "ranks", "words"),
    [
        (([9, 8, 9], [0, 0, 0]), ([9, 8, 9], [0, 0, 0]), [1], "process 1 is silent"),
        (([8, 9, 8], [0, 0, 0]), ([8, 9, 8], [0, 0, 0]), [0, 2], "process 0, 2 is silent"),
        (([8, 8, 8], [0, 0, 0]), ([9, 8, 9], [0, 0, 0]), [], ""),  # not behind for long
        (([8, 8, 8], [0, 0, 0]), ([8, 8, 8], [0, 0, 0]), [], ""),  # all of them compute
        (([9, 8, 9], [0, 0, 0]), ([9, 9, 9], [0, 0, 0]), [], ""),  # it goes on
        (([1, 1, 1], [5, 5, 5]), ([9, 9, 9], [50, 50, 6]), [2], "process 2 is slow"),
        (([1, 1, 1], [5, 5, 5]), ([9, 9, 9], [50, 50, 30]), [], ""),  # all wait for the network
    ],
)
def test_who_is_behind_for_all_the_time_is_silent_and_who_never_waits_is_slow(
    first, last, ranks, words
):
    found, sentence = stragglers(look(0, *first), look(60, *last))
    assert found == ranks
    assert sentence.startswith(words)
    assert ("60 s" in sentence) == bool(words)


@pytest.mark.slow
def test_a_hanging_process_is_named_then_given_up_and_the_fit_goes_on(tmp_path):
    np.save(tmp_path / "rows.npy", cases.rows(40))
    options = ["--epochs=4", "--batch-size=20", "--no-report", "--out", tmp_path / "run"]
    script = Path(__file__).with_name("hanging_fit.py")
    command = torchrun(script, "fit", tmp_path / "rows.npy", *options, restarts=1)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # Once by the process that waits, when the time has come; again in the error that ends it.
    named = [line for line in done.stderr.splitlines() if "process 1 is silent" in line]
    assert len(named) >= 2, done.stderr
    assert named[0].endswith("s"), named
    assert not any("process 0" in line for line in named)
    assert len(SelfView.load(tmp_path / "run").history_) == 4
