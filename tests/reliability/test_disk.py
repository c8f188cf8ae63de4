"""Full disks, read-only folders and limits: a clear error, and the last good state intact."""

import os
import resource
import subprocess

import numpy as np
import pytest
from small_fits import bits, metrics, rows, small_model

from selfview.cli.options import write_embedding
from selfview.data.texts import TextPreparation
from selfview.errors import CheckpointError
from selfview.saving.checkpoints import Checkpoints
from selfview.saving.files import TEMPORARY, write_bytes
from selfview.saving.tensor_file import read_state

pytestmark = pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")


@pytest.fixture
def mount(tmp_path):
    """A way to mount a small file system in memory at tmp_path/disk."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def with_options(options):
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip("there is no `mount` here")
        if done.returncode:
            pytest.skip(f"mounting needs more rights: {done.stderr.strip()}")
        return folder

    yield with_options
    if os.path.ismount(folder):
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def every_step(monkeypatch):
    monkeypatch.setattr(Checkpoints, "INTERVAL", 0.0)


def check_states(folder, whole):
    """All that is left are whole states, and a fit from them ends as if nothing had been."""
    kept = sorted(folder.glob("checkpoint-*"))
    assert kept
    for path in kept:
        assert path.name.startswith("checkpoint-")
        read_state(path)
    resumed = small_model(checkpoint=folder).fit(rows())
    assert bits(resumed) == bits(whole)
    assert metrics(resumed.history_) == metrics(whole.history_)


@pytest.fixture
def whole():
    return small_model().fit(rows())


def test_a_full_disk_keeps_the_last_good_state(mount, whole, every_step):
    folder = mount("size=2m")
    stuffing = folder / "stuffing"
    # Room for one and a half states, after which the next can be written by half.
    small_model(checkpoint=folder / "probe", epochs=1).fit(rows())
    state = max(path.stat().st_size for path in (folder / "probe").iterdir())
    for path in (folder / "probe").iterdir():
        path.unlink()
    stuffing.write_bytes(bytes((2 << 20) - int(1.5 * state)))
    with pytest.raises(CheckpointError) as caught:
        small_model(checkpoint=folder / "run").fit(rows())
    words = str(caught.value)
    assert "No space left on device. Free some space" in words
    assert "checkpoint-000000-000000002.safetensors can't be written" in words
    assert f"The last good state is {folder}/run/checkpoint-000000-000000001" in words
    stuffing.unlink()
    check_states(folder / "run", whole)


def test_a_disk_that_is_full_from_the_start_is_told_before_training(mount, monkeypatch):
    folder = mount("size=64k")
    (folder / "stuffing").write_bytes(bytes(64 << 10))
    monkeypatch.setattr("selfview.training.loop.step_seed", None)  # no step can be taken
    with pytest.raises(CheckpointError, match=r"No space left on device\. Free some space"):
        small_model(checkpoint=folder / "run").fit(rows())


def test_a_read_only_disk_is_told_before_training(mount, monkeypatch):
    folder = mount("size=64k,ro")
    monkeypatch.setattr("selfview.training.loop.step_seed", None)  # no step can be taken
    with pytest.raises(CheckpointError, match=r"disk can't be written: Read-only file system\."):
        small_model(checkpoint=folder).fit(rows())
    with pytest.raises(CheckpointError, match=r"run can't be written: Read-only file system\."):
        small_model(checkpoint=folder / "run").fit(rows())


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0,
    reason="permissions bind no root",
)
def test_a_folder_without_permission_is_told_before_training(tmp_path, monkeypatch):
    tmp_path.chmod(0o555)
    monkeypatch.setattr("selfview.training.loop.step_seed", None)
    try:
        with pytest.raises(CheckpointError, match=r"can't be written: Permission denied\."):
            small_model(checkpoint=tmp_path).fit(rows())
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize("below", ["", "run"])
def test_a_file_in_the_way_is_told_before_training(tmp_path, monkeypatch, below):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setattr("selfview.training.loop.step_seed", None)
    with pytest.raises(CheckpointError, match=r"can't be written: .* A file is in the way"):
        small_model(checkpoint=blocked / below).fit(rows())
    assert blocked.read_text() == "in the way"


@pytest.fixture
def size_limit():
    """A way to limit the size of files, as `ulimit -f` does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_in_mid_training_keeps_the_last_good_state(
    whole, tmp_path, every_step, size_limit, monkeypatch
):
    keep = Checkpoints.keep

    def limited(self, training):
        if training.place == (1, 4):
            size_limit(50_000)
        keep(self, training)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "keep", limited)
        with pytest.raises(CheckpointError) as caught:
            small_model(checkpoint=tmp_path).fit(rows())
    size_limit(resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    words = str(caught.value)
    assert "checkpoint-000001-000000004.safetensors can't be written: File too large" in words
    assert "ulimit -f" in words
    assert "checkpoint-000001-000000003.safetensors: a fit with the same parameters" in words
    check_states(tmp_path, whole)


def test_a_file_is_whole_or_as_it_was(tmp_path, size_limit):
    path = tmp_path / "file"
    write_bytes(path, b"old")
    size_limit(1000)
    with pytest.raises(CheckpointError, match="File too large"):
        write_bytes(path, bytes(100_000))
    assert path.read_bytes() == b"old"
    assert [p for p in tmp_path.iterdir() if p.name.endswith(TEMPORARY)] == []


@pytest.mark.parametrize("kind", ["npy", "csv", "parquet"])
def test_an_embedding_is_whole_or_as_it_was(tmp_path, size_limit, kind):
    path = tmp_path / f"z.{kind}"
    Z = np.random.default_rng(0).normal(size=(5000, 4)).astype(np.float32)
    write_embedding(path, Z[:3])
    before = path.read_bytes()
    size_limit(1000)
    with pytest.raises(CheckpointError, match=rf"z\.{kind} can't be written: File too large"):
        write_embedding(path, Z)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_all_files_of_a_run_can_be_read_by_those_whom_the_system_lets(tmp_path):
    how = TextPreparation(("cat", "dog"), np.ones(2))
    how.save(tmp_path)
    write_bytes(tmp_path / "file", b"")
    write_embedding(tmp_path / "z.npy", np.ones((2, 2)))
    (tmp_path / "plain").touch()
    assert len({path.stat().st_mode for path in tmp_path.iterdir()}) == 1
