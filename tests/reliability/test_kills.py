"""Fits killed with SIGKILL, again and again and at the worst moments, end with the same bits."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from killer import MOMENTS
from safetensors.torch import load_file
from small_fits import bits, metrics, rows, small_encoder, small_model
from torch import nn

import selfview
from selfview.saving.checkpoints import Checkpoints
from selfview.saving.interrupts import HeldInterrupts
from selfview.saving.tensor_file import read_state

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="kills are POSIX signals"),
    pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning"),
]

SOURCE = Path(selfview.__file__).parents[1]


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCE)}


def killed(folder, endings):
    """The ends of fits that are stopped as `endings` say; whatever they come to is the whole's."""
    script = Path(__file__).with_name("killer.py")
    command = [sys.executable, str(script), str(folder), *map(str, endings)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=900, check=True
    )
    ends = json.loads(done.stdout)
    # The end, SIGKILL or an interrupt: a fit that fails by itself is no kill.
    assert {end["code"] for end in ends} <= {0, -9, 130}, done.stderr
    finished = [end for end in ends if end["code"] == 0]
    assert ends[-1] in finished
    whole, history = result(folder / "whole")
    for number, end in enumerate(finished):
        # At most two states, and neither the lock of the dead nor anything half written.
        assert 1 <= len(end["kept"]) <= 2
        assert all(name.startswith("checkpoint-") for name in end["kept"])
        resumed, resumed_history = result(folder / str(number))
        assert resumed == whole
        assert metrics(resumed_history) == metrics(history)
    return ends


def result(path):
    tensors = {name: t.numpy().tobytes() for name, t in load_file(path).items()}
    return tensors, json.loads(path.with_suffix(".json").read_text())


def test_kills_at_any_moment_change_no_bit(tmp_path):
    draw = random.Random(0)
    shares = [f"{draw.uniform(0.0, 0.5):.3f}" for _ in range(6)]
    interrupt = "interrupt:0.5"  # this fit keeps no state but on SIGINT
    ends = killed(tmp_path, [*MOMENTS, *shares, interrupt, *MOMENTS])
    assert sum(end["code"] == -9 for end in ends) >= 10
    # The first of each: the later ones may find fewer than three steps left to take.
    at = {end["ending"]: end for end in reversed(ends)}
    assert all(at[moment]["code"] == -9 for moment in MOMENTS)
    for moment in ("half-written", "before-sync", "before-rename"):
        left = [name for name in at[moment]["kept"] if name.endswith(".tmp")]
        assert len(left) == 1, "the kill came at another moment"
    # Three states at least, for a kill after a rename leaves an old one too; and the lock.
    assert len(at["before-the-old-are-removed"]["kept"]) >= 4


@pytest.fixture(scope="module")
def whole():
    """The fit that nothing stopped."""
    return small_model().fit(rows())


def test_a_state_within_an_epoch_is_resumed_with_its_metrics(whole, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "INTERVAL", 0.0)
        keep = Checkpoints.keep

        def stop(self, training):
            keep(self, training)
            if training.place == (2, 7):
                raise ZeroDivisionError

        patch.setattr(Checkpoints, "keep", stop)
        with pytest.raises(ZeroDivisionError):
            small_model(checkpoint=tmp_path).fit(rows())
    newest = tmp_path / "checkpoint-000002-000000007.safetensors"
    assert sorted(tmp_path.glob("checkpoint-*"))[-1] == newest
    meta = read_state(newest)[1]
    assert len(meta["history"]) == 2
    assert meta["sums"]["loss"] > 0
    model = small_model(checkpoint=tmp_path).fit(rows())
    assert bits(model) == bits(whole)
    assert metrics(model.history_) == metrics(whole.history_)


def test_an_interrupt_keeps_the_last_whole_step(whole, tmp_path):
    calls = []

    class Interrupting(nn.Module):
        """Sends Ctrl-C once, in the middle of a step."""

        def __init__(self):
            super().__init__()
            self.inner = small_encoder()

        def forward(self, x):
            calls.append(1)
            if len(calls) == 100:
                os.kill(os.getpid(), signal.SIGINT)
            return self.inner(x)

    given = dict(checkpoint=tmp_path, encoder=Interrupting())
    with pytest.raises(KeyboardInterrupt):
        small_model(**given).fit(rows())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    kept = [path.suffix for path in tmp_path.iterdir()]
    assert kept
    assert set(kept) == {".safetensors"}
    resumed = small_model(**given).fit(rows())
    assert [*bits(resumed).values()] == [*bits(whole).values()]
    assert metrics(resumed.history_) == metrics(whole.history_)


def test_a_second_interrupt_does_not_wait():
    reached = []

    def twice():
        with HeldInterrupts():
            for _ in range(3):
                os.kill(os.getpid(), signal.SIGINT)
                reached.append(1)

    with pytest.raises(KeyboardInterrupt):
        twice()
    assert len(reached) == 1
    with pytest.raises(KeyboardInterrupt), HeldInterrupts():
        os.kill(os.getpid(), signal.SIGINT)


def test_a_finished_fit_returns_at_once_with_the_same_bits(whole, tmp_path, monkeypatch):
    small_model(checkpoint=tmp_path).fit(rows())
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    monkeypatch.setattr("selfview.training.loop.step_seed", None)  # no step can be taken
    again = small_model(checkpoint=tmp_path).fit(rows())
    assert bits(again) == bits(whole)
    assert metrics(again.history_) == metrics(whole.history_)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(10))
def test_hundreds_of_kills_change_no_bit(tmp_path, seed):
    draw = random.Random(seed)
    endings = [draw.choice([*MOMENTS, *[draw.uniform(0, 0.8)] * 10]) for _ in range(60)]
    killed(tmp_path, endings)


OTHER_THREADS = """
import os, signal, sys
import numpy as np, torch
from torch import nn
from selfview import SelfView
from selfview.saving.checkpoints import Checkpoints

def die_after(keep):
    def kept(*given):
        keep(*given)
        os.kill(os.getpid(), signal.SIGKILL)
    return kept

Checkpoints.INTERVAL = 0
if sys.argv[2] == "die":
    Checkpoints.keep = die_after(Checkpoints.keep)
X = np.random.default_rng(1).normal(size=(100_000, 5)).astype(np.float32) * [1e4, 1, 1, 1, 1]
given = dict(n_prototypes=2, views="none", neighbours=0, temperature=1.0, sinkhorn_iterations=1)
given |= dict(batch_size=100_000, epochs=2, random_state=0, verbose=0)
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))  # also above the number of cores
model = SelfView(encoder=nn.Linear(5, 2), checkpoint=sys.argv[1], **given).fit(X)
print([row["seconds"] for row in model.history_])
"""


def test_a_killed_fit_goes_on_with_another_number_of_threads(tmp_path):
    def fit(threads, end):
        command = [sys.executable, "-W", "ignore", "-c", OTHER_THREADS, str(tmp_path), end]
        threads = {"OMP_NUM_THREADS": str(threads)}
        return subprocess.run(
            command, env=environment() | threads, capture_output=True, text=True, timeout=300
        )

    killed = fit(1, "die")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (state,) = tmp_path.glob("checkpoint-*")
    (first,) = read_state(state)[1]["history"]
    resumed = fit(4, "live")
    assert resumed.returncode == 0, resumed.stderr
    # Two epochs, of which the first is the one before the kill.
    assert resumed.stdout.startswith(f"[{first['seconds']}, ")


@pytest.mark.chaos
def test_the_command_line_killed_and_resumed_writes_the_same_model(tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(4000, 20)))
    command = [sys.executable, "-m", "selfview", "fit", str(tmp_path / "rows.npy")]
    command += ["--epochs", "20", "--quiet"]

    def fit(out, *options, kill_after=None):
        process = subprocess.Popen(
            [*command, "--out", str(out), *options],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            process.communicate(timeout=kill_after)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        return process.returncode

    assert fit(tmp_path / "whole") == 0
    codes = [fit(tmp_path / "killed", "--resume", kill_after=25) for _ in range(3)]
    assert -9 in codes
    assert codes[-1] == 0 or fit(tmp_path / "killed", "--resume") == 0
    one, other = (read_state(tmp_path / name / "model.safetensors") for name in ("whole", "killed"))
    assert {n: t.numpy().tobytes() for n, t in one[0].items()} == {
        n: t.numpy().tobytes() for n, t in other[0].items()
    }
    assert metrics(one[1]["history"]) == metrics(other[1]["history"])
