"""One fit at a time writes to a folder; the lock of a dead owner is no lock."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from small_fits import bits, rows, small_model

import selfview
from selfview.errors import CheckpointError
from selfview.saving.files import LOCK, locked

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="the lock is POSIX flock"),
    pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning"),
]

# Imports no torch: a second of a test is not worth a lock.
OWNER = """
import sys
from pathlib import Path
from selfview.saving.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def owner(tmp_path):
    """Another process that holds tmp_path/run until its standard input ends."""
    source = str(Path(selfview.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_fit_is_told_who_has_the_folder(owner, tmp_path):
    folder = tmp_path / "run"
    who = f"in use by process {owner.pid} on {socket.gethostname()}"
    with pytest.raises(CheckpointError, match=who):
        small_model(checkpoint=folder).fit(rows())
    assert [path.name for path in folder.iterdir()] == [LOCK]
    owner.communicate()  # the owner ends in peace
    assert not folder.exists()
    small_model(checkpoint=folder, epochs=1).fit(rows())
    assert LOCK not in [path.name for path in folder.iterdir()]


def test_the_lock_of_a_killed_owner_is_none(owner, tmp_path):
    folder = tmp_path / "run"
    (folder / ".checkpoint-000001-000000000.safetensors.abc.selfview.tmp").write_text("half")
    (folder / ".mine.tmp").write_text("not ours")
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    assert (folder / LOCK).exists()
    with locked(folder):
        assert str(os.getpid()) in (folder / LOCK).read_text()
    assert [path.name for path in folder.iterdir()] == [".mine.tmp"]


def test_the_command_line_refuses_a_run_folder_in_use(owner, tmp_path, capsys, monkeypatch):
    from selfview.cli import main

    np.save(tmp_path / "rows.npy", rows())
    command = ["selfview", "fit", str(tmp_path / "rows.npy"), "--out", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    assert f"in use by process {owner.pid}" in capsys.readouterr().err


def test_the_run_folder_and_its_checkpoint_are_locked_one_in_the_other(tmp_path):
    with locked(tmp_path), locked(tmp_path / "checkpoint"):
        assert (tmp_path / LOCK).exists()
    assert list(tmp_path.iterdir()) == []


def test_two_threads_exclude_each_other(tmp_path):
    """Of many threads at once each has the folder to itself or is refused."""
    inside, most, refused, taken = [], [], [], []

    def take():
        for _ in range(50):
            try:
                with locked(tmp_path / "run"):
                    inside.append(1)
                    most.append(len(inside))
                    taken.append(1)
                    inside.pop()
            except CheckpointError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert len(taken) + len(refused) == 400
    assert all("in use by" in words for words in refused)


def test_a_fit_in_a_second_thread_is_refused(tmp_path):
    errors = []

    def second():
        try:
            small_model(checkpoint=tmp_path).fit(rows())
        except CheckpointError as error:
            errors.append(str(error))

    with locked(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert f"process {os.getpid()} on" in errors[0]


def test_a_link_in_the_locks_place_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("text")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK).symlink_to(precious)
    with pytest.raises(CheckpointError, match="can't be written"), locked(tmp_path / "run"):
        pass
    assert precious.read_text() == "text"


def test_a_failed_fit_lets_the_folder_go(tmp_path):
    model = small_model(checkpoint=tmp_path / "run").fit(rows())
    before = bits(model)
    with pytest.raises(CheckpointError, match="another run"):
        model.fit(rows(60))
    assert bits(model) == before
    model.fit(rows())
