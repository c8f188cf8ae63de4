"""A finished run is replaced when that is asked for, and then whole or not at all."""

import json
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from selfview import SelfView
from selfview.cli.configuration import describe
from selfview.cli.run_folder import home, save_run
from selfview.data import read

pytestmark = pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")


@pytest.fixture(autouse=True)
def rows(tmp_path, rng):
    """Two files of rows."""
    np.save(tmp_path / "a.npy", rng.normal(size=(60, 5)))
    np.save(tmp_path / "b.npy", rng.normal(size=(60, 6)))


def contents(folder):
    return {p.name: p.read_bytes() for p in Path(folder).iterdir() if p.is_file()}


def fit(*more):
    return ("fit", *more, "--epochs", 2, "--out", "r", "-q", "--no-report")


def test_a_finished_run_is_not_replaced_unasked(call):
    assert call(*fit("a.npy"))[0] == 0
    before = contents("r")
    for again in (fit("a.npy"), fit("b.npy"), fit("a.npy", "--resume"), fit("--resume")):
        code, _, err = call(*again)
        assert code == 1
        assert err.startswith("selfview: r holds a finished run")
        assert "--force" in err
        assert contents("r") == before


def test_a_model_saved_from_python_is_not_replaced_unasked(call):
    SelfView(2, epochs=1, random_state=0, verbose=0).fit(np.load("a.npy")).save("r")
    assert call(*fit("b.npy"))[0] == 1
    assert SelfView.load("r").n_features_in_ == 5


def test_force_replaces_a_finished_run(call):
    call(*fit("a.npy"))
    assert call(*fit("b.npy", "--force"))[0] == 0
    assert SelfView.load("r").n_features_in_ == 6
    assert json.loads(Path("r/preparation.json").read_text())["fields"]["row_shape"] == [6]
    assert json.loads(Path("r/metrics.json").read_text())["shape"] == [6]
    assert json.loads(Path("r/config.json").read_text())["data"].endswith("b.npy")
    assert not {".new", ".whole", "checkpoint"} & set(os.listdir("r"))


@pytest.mark.skipif(find_spec("tensorboard") is None, reason="tensorboard is not installed")
def test_events_of_the_earlier_run_are_replaced_and_nothing_else_beside_them(call):
    call(*fit("a.npy", "--tensorboard"))
    Path("r/tensorboard/notes.txt").write_text("mine")
    before = set(os.listdir("r/tensorboard"))
    assert call(*fit("b.npy", "--force"))[0] == 0
    assert os.listdir("r/tensorboard") == ["notes.txt"]
    assert call(*fit("a.npy", "--force", "--tensorboard"))[0] == 0
    found = set(os.listdir("r/tensorboard"))
    assert len(found) == len(before) == 2
    assert found & before == {"notes.txt"}


def test_a_dry_run_says_that_a_finished_run_is_there(call):
    call(*fit("a.npy"))
    code, out, _ = call(*fit("a.npy", "--dry-run"))
    assert code == 0
    assert "only --force replaces" in out


def test_a_forced_fit_that_fails_leaves_the_earlier_run(call, monkeypatch):
    call(*fit("a.npy"))
    Path("r/tensorboard").mkdir()
    Path("r/tensorboard/events.out.tfevents.1").write_text("of the first run")
    before = contents("r") | contents("r/tensorboard")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("selfview.saving.model_file.write_state", full)
    code, _, err = call(*fit("b.npy", "--force"))
    assert code == 1
    assert "No space left" in err
    assert contents("r") | contents("r/tensorboard") == before


def test_a_forced_fit_that_is_interrupted_leaves_the_earlier_run_and_goes_on(call, monkeypatch):
    call(*fit("a.npy"))
    before = contents("r")
    with monkeypatch.context() as patch:
        patch.setattr(SelfView, "transform", interrupt)
        assert call(*fit("b.npy", "--force"))[0] == 130
    assert contents("r") == before
    assert call("fit", "--resume", "--out", "r", "-q", "--no-report")[0] == 0
    assert SelfView.load("r").n_features_in_ == 6


def interrupt(*_):
    raise KeyboardInterrupt


class Killed(BaseException):
    """Stands for a kill: nothing of ours catches it."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What `save_run` takes, of two runs whose rows differ in shape and kind."""
    folder = tmp_path_factory.mktemp("rows")
    X = np.random.default_rng(0).normal(size=(40, 3))
    np.save(folder / "a.npy", X)
    text = "".join(f'{{"text": "{w} fish"}}\n' for w in ("red", "blue", "one", "two", "old") * 8)
    (folder / "b.jsonl").write_text(text)
    found = []
    for name in ("a.npy", "b.jsonl"):
        dataset = read(folder / name)
        model = SelfView(2, epochs=1, random_state=0, verbose=0).fit(dataset.X)
        config = describe(model, dataset.X, data=name, options={}, command="")
        found.append(dict(model=model, dataset=dataset, config=config, scores={"of": name}))
    return found


def of_run(folder):
    """Which run each file of a run folder is of."""
    where = home(folder)
    config = json.loads((where / "config.json").read_text())["data"]
    scores = json.loads((where / "metrics.json").read_text())["scores"]["of"]
    kind = json.loads((where / "preparation.json").read_text())["kind"]
    names = {3: "a.npy", 4: "b.jsonl"}
    words = {"array": "a.npy", "text": "b.jsonl"}
    width = SelfView.load(where).n_features_in_
    return {config, scores, words[kind], names[width]}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_kill_at_any_moment_leaves_one_run_whole(runs, tmp_path, monkeypatch, order):
    first, second = (runs[i] for i in order)
    ends, moment = [], 0
    while not ends or ends[-1] != "done":
        moment += 1
        folder = tmp_path / str(moment)
        save_run(folder, **first)
        with monkeypatch.context() as patch:
            _kill_at(patch, moment)
            try:
                save_run(folder, **second)
            except Killed:
                ends.append(of_run(folder))
            else:
                ends.append("done")
        save_run(folder, **second)
        assert of_run(folder) == {second["config"].data}
        assert (folder / "preparation.safetensors").exists() == (order == (0, 1))
    assert all(len(end) == 1 for end in ends[:-1])
    assert ends[0] != ends[-2]
    assert len(ends) > 8


def _kill_at(patch, moment):
    """The process ends at the given one of the renames."""
    left = [moment]
    renames = {(os, "replace"): os.replace, (Path, "rename"): Path.rename}

    def killing(rename):
        def call(*args):
            left[0] -= 1
            if left[0] <= 0:
                raise Killed
            return rename(*args)

        return call

    for (where, name), rename in renames.items():
        patch.setattr(where, name, killing(rename))
