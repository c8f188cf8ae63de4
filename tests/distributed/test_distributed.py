"""Many processes do what one does: real torchrun, two processes, gloo."""

import subprocess
import sys
import warnings
from pathlib import Path

import cases
import numpy as np
import pytest
import torch

from selfview import InputError, SelfView, SelfViewWarning
from selfview.distributed import Group

HERE = Path(__file__).parent
CASES = (
    *("batch_norm", "transport", "noise", "fifty_steps", "fifty_uneven_steps", "perceptron"),
    *(
        "convolutions",
        "baselines",
        "frozen_parts",
        "frozen_encoder",
        "own_chance",
        "refusals",
        "uninterrupted",
        "ended",
        "searched",
        "table",
    ),
)


def torchrun(*arguments, restarts=0):
    """A command whose first words are torchrun's own, for two processes."""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return [*start, f"--max-restarts={restarts}", *map(str, arguments)]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Of every case, what each of two processes found."""
    folder = tmp_path_factory.mktemp("results")
    command = torchrun(HERE / "worker.py", folder, *CASES)
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return {
        name: [dict(np.load(folder / f"{name}-{rank}.npz")) for rank in (0, 1)] for name in CASES
    }


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def difference(one, many):
    """Largest distance of two arrays relative to the size of the first."""
    return np.linalg.norm(many - one) / max(np.linalg.norm(one), 1e-12)


def assert_same_as_one(results, name, tolerance):
    one = getattr(cases, name)()
    for many in results[name]:
        assert many.keys() == one.keys()
        for key, value in one.items():
            if not key.endswith(("state", "marginal_error")):
                assert difference(value, many[key]) <= tolerance, key
    return one


def test_batch_norm_is_that_of_all_rows(results):
    one = cases.batch_norm()
    for many in results["batch_norm"]:
        for key, value in one.items():
            np.testing.assert_allclose(many[key], value, rtol=1e-5, atol=2e-6, err_msg=key)


def test_targets_are_those_of_all_rows(results):
    one = cases.transport()
    for many in results["transport"]:
        for key, value in one.items():
            np.testing.assert_allclose(many[key], value, rtol=1e-4, atol=2e-6, err_msg=key)


def test_noise_is_the_same_for_a_row_wherever_it_is(results):
    for many in results["noise"]:
        np.testing.assert_array_equal(many["step"], cases.noise()["step"])


@pytest.mark.parametrize("name", ["fifty_steps", "fifty_uneven_steps"])
def test_fifty_steps_of_two_processes_are_those_of_one(results, name):
    one = assert_same_as_one(results, name, tolerance=1e-4)
    # It has learned something on the way. InfoNCE is part of every step, the other loss of some.
    assert one["info_nce"].max() > 1.05 * one["info_nce"][-1]
    for many in results[name]:
        np.testing.assert_allclose(many["loss"], one["loss"], rtol=1e-4)


@pytest.mark.parametrize(
    "name", ["perceptron", "convolutions", "baselines", "frozen_parts", "frozen_encoder"]
)
def test_first_steps_of_two_processes_are_those_of_one(results, name):
    assert_same_as_one(results, name, tolerance=1e-4)


def test_processes_end_with_the_same_weights(results):
    for name in ("fifty_steps", "fifty_uneven_steps", "convolutions", "own_chance"):
        first, second = results[name]
        np.testing.assert_array_equal(first["state"], second["state"], err_msg=name)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("other rows", ("different data", "different data")),
        ("one fails", ("process 1 stopped", "row 3, column 2")),
        ("not finite", ("Lower learning_rate", "Lower learning_rate")),
        ("can't write", ("can't be written", "process 0 stopped")),
    ],
)
def test_an_error_ends_all_processes_and_says_why(results, case, words):
    for found, word in zip(results["refusals"], words, strict=True):
        assert word in str(found[case])


def test_every_process_looks_up_its_part_of_the_rows(results):
    pytest.importorskip("faiss")
    one = cases.searched()
    assert one["looked_up"].tolist() == [1003]
    assert [many["looked_up"].tolist() for many in results["searched"]] == [[501], [502]]
    for many in results["searched"]:
        assert (many["numbers"] == one["numbers"]).mean() > 0.999  # equally near ones may differ


def test_all_processes_end_a_fit_at_the_same_step(results):
    one = cases.ended()
    assert int(one["word_epochs"]) == 3
    assert one["time_steps"].tolist() == [1]
    for many in results["ended"]:
        for key in ("word_steps", "time_steps"):
            assert many[key].tolist() == one[key].tolist()
        for key in ("word_weights", "time_weights"):
            assert difference(one[key], many[key]) <= 1e-5, key
    assert [int(many["calls"]) for many in results["ended"]] == [3, 0]


def test_a_batch_needs_a_row_for_every_process():
    with pytest.raises(InputError, match="batches of 3 rows can't be shared by 4 processes"):
        Group(0, 4).expect_enough(3)


def test_shares_of_a_batch_are_disjoint_and_all_of_it():
    shares = [Group(rank, 3).shard(11) for rank in range(3)]
    assert np.concatenate([np.arange(11)[s.rows] for s in shares]).tolist() == list(range(11))
    assert sum(s.weight for s in shares) == pytest.approx(1)


def test_every_process_gets_the_rows_that_the_others_embedded(results):
    for found in results["table"]:
        np.testing.assert_allclose(found["shared"], found["Z"], rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are listed by Linux")
def test_the_threads_of_a_group_end_with_it(tmp_path):
    # Those that were left raced with the interpreter's end, and at times aborted the process.
    command = torchrun(HERE / "leaving.py", tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for rank in ("0", "1"):
        assert "gloo" not in (tmp_path / rank).read_text()


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run folder of `selfview fit` under torchrun, one of whose processes was killed."""
    folder = tmp_path_factory.mktemp("killed")
    np.save(folder / "rows.npy", cases.rows(40))
    options = ["--epochs=6", "--batch-size=20", "--no-report", "--out", folder / "run"]
    fit = [HERE / "killed_fit.py", folder / "journal", "fit", folder / "rows.npy", *options]
    command = torchrun(*fit, restarts=1)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the run is in") == 1  # one process speaks
    return folder


def test_a_fit_whose_process_is_killed_goes_on_from_its_checkpoint(killed):
    steps = (killed / "journal-1-0").read_text().splitlines()
    assert steps[-1] == "3 1"
    assert (killed / "journal-1-1").read_text().splitlines()[0] == "3 1"


def test_and_ends_with_the_bits_of_one_that_was_not(killed, results):
    state = cases.joined(SelfView.load(killed / "run").network_.state_dict().values())
    np.testing.assert_array_equal(state, results["uninterrupted"][0]["state"])


def test_a_run_folder_of_many_processes_is_that_of_one(killed):
    names = {path.name for path in (killed / "run").iterdir()}
    assert {"model.safetensors", "config.json", "history.csv", "metrics.json"} <= names
    assert "checkpoint" not in names


def test_a_fit_with_groups_is_that_of_one_process(tmp_path):
    X, days = cases.rows(60), np.array(["mon", "tue"])[np.arange(60) % 2]
    X[1::2] += 5
    np.savez(tmp_path / "rows.npz", X=X, day=days)
    options = ["--groups=day", "--epochs=1", "--batch-size=60", "--precision=float32", "-q"]
    fit = ["-m", "selfview", "fit", tmp_path / "rows.npz", *options, "--no-report"]
    done = subprocess.run(
        torchrun(*fit, "--out", tmp_path / "run"), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("How groups mix: 2 groups") == 1  # one process speaks
    alone = SelfView(epochs=1, batch_size=60, precision="float32", random_state=0, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelfViewWarning)
        alone.fit(X, groups=days)
    loss = SelfView.load(tmp_path / "run").history_[0]["info_nce"]
    assert loss == pytest.approx(alone.history_[0]["info_nce"], rel=1e-4)


def test_embed_writes_disjoint_ranges_to_one_file(killed):
    out = killed / "deep" / "z.npy"
    command = torchrun("-m", "selfview", "embed", killed / "run", killed / "rows.npy", "-o", out)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("40 rows embedded") == 1
    expected = SelfView.load(killed / "run").transform(cases.rows(40))
    np.testing.assert_allclose(np.load(out), expected, rtol=1e-5, atol=1e-6)
    assert [path.name for path in out.parent.iterdir()] == ["z.npy"]
