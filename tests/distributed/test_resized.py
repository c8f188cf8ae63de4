"""A fit goes on with another number of processes: no row of an epoch is lost or taken twice."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parent / "resized_fit.py"
ROWS, EPOCHS = 100, 3
LAUNCHES = ((1, 2), (2, 4), (3, 3), (1, -1))  # processes, and steps until they end; 4 an epoch


def launch(folder, number, processes, steps):
    command = [sys.executable, str(SCRIPT), str(folder), str(number), str(steps)]
    if processes > 1:
        torchrun = ["-m", "torch.distributed.run", "--standalone"]
        command[1:1] = [*torchrun, f"--nproc-per-node={processes}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def steps_of(folder, number, processes):
    """The rows of each step, of all processes together."""
    files = [folder / f"rows-{number}-{rank}.txt" for rank in range(processes)]
    lines = [file.read_text().splitlines() for file in files]
    assert len({len(each) for each in lines}) == 1
    return [np.array(" ".join(parts).split(), int) for parts in zip(*lines, strict=True)]


@pytest.mark.slow  # nine processes, one after the other
def test_a_fit_of_changing_processes_takes_every_row_once_and_ends_as_that_of_one(tmp_path):
    resized, alone = tmp_path / "resized", tmp_path / "alone"
    resized.mkdir()
    alone.mkdir()
    for number, (processes, steps) in enumerate(LAUNCHES):
        launch(resized, number, processes, steps)
    launch(alone, 0, 1, -1)
    found = [
        step
        for number, (processes, _) in enumerate(LAUNCHES)
        for step in steps_of(resized, number, processes)
    ]
    for epoch in np.split(np.concatenate(found), EPOCHS):
        assert np.sort(epoch).tolist() == list(range(ROWS))
    for one, other in zip(found, steps_of(alone, 0, 1), strict=True):
        np.testing.assert_array_equal(one, other)
    expected, weights = (np.load(folder / "weights.npy") for folder in (alone, resized))
    assert np.linalg.norm(weights - expected) <= 1e-3 * np.linalg.norm(expected)
