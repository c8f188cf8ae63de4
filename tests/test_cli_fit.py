"""`selfview fit` as a user meets it: repeating, resuming, forecasting, logging."""

import csv
import json
import re
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sklearn.base import clone

from selfview import InputError, SelfView
from selfview.cli.fit import CHOICES
from selfview.training.progress import duration


@pytest.fixture
def table(tmp_path, blobs):
    X, y = blobs
    header = ",".join([*(f"f{i}" for i in range(12)), "kind"])
    lines = [",".join([*map(repr, x.tolist()), f"k{c}"]) for x, c in zip(X, y, strict=True)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def same_weights(one, other):
    a, b = (load_file(run / "model.safetensors") for run in (one, other))
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("name", CHOICES)
def test_the_words_of_an_option_are_those_that_the_estimator_takes(name, blobs):
    with pytest.raises(InputError) as refusal:
        SelfView(**{name: "nonsense"}).fit(blobs[0])
    listed = str(refusal.value).partition("one of ")[2].partition(";")[0].partition(", got")[0]
    assert sorted(re.findall("'(.+?)'", listed)) == sorted(CHOICES[name])


def test_labels_that_cannot_be_scored_do_not_cost_the_model(call, table, tmp_path):
    lines = table.read_text().splitlines()
    one = [lines[0], *(line.rsplit(",", 1)[0] + ",same" for line in lines[1:])]
    (tmp_path / "one.csv").write_text("\n".join(one) + "\n")
    options = ("--label", "kind", "--epochs", 1, "--out", "run", "-q", "--no-report")
    code, _, err = call("fit", "one.csv", *options)
    assert code == 0
    assert "note: there are no scores: y must hold at least two classes" in err
    assert (tmp_path / "run" / "model.safetensors").is_file()


def test_measurements_are_judged_by_a_linear_fit(call, table, tmp_path):
    lines = table.read_text().splitlines()
    values = np.random.default_rng(0).normal(size=len(lines) - 1)
    new = [line.rsplit(",", 1)[0] + f",{v}" for line, v in zip(lines[1:], values, strict=True)]
    (tmp_path / "m.csv").write_text("\n".join([lines[0], *new]) + "\n")
    options = ("m.csv", "--label", "kind", "--epochs", 1, "--out", "run", "-q")
    assert "measurements (for scores only)" in call("fit", *options, "--dry-run")[1]
    code, out, _ = call("fit", *options)
    assert code == 0
    assert "linear R² " in out
    assert "kmeans_acc" not in out


def test_an_export_of_an_earlier_model_is_told(call, table, tmp_path):
    (tmp_path / "run" / "export").mkdir(parents=True)
    options = ("rows.csv", "--label", "kind", "--epochs", 1, "--out", "run", "-q", "--no-report")
    assert "export is of an earlier model" in call("fit", *options)[2]


def test_a_run_without_a_report_leaves_none_of_an_earlier_model(call, table, tmp_path):
    options = ("--label", "kind", "--epochs", 1, "--out", "run", "-q")
    assert call("fit", "rows.csv", *options)[0] == 0
    assert (tmp_path / "run" / "report.html").is_file()
    assert call("fit", "rows.csv", *options, "--no-report", "--force")[0] == 0
    assert not (tmp_path / "run" / "report.html").exists()


def test_the_verdict_is_told_once_at_the_end(call, tmp_path):
    np.save(tmp_path / "equal.npy", np.ones((20, 3), np.float32))
    code, out, err = call("fit", "equal.npy", "--epochs", 1, "--out", "run", "-q")
    assert (code, err) == (0, "")
    assert out.count("nothing beyond PCA: all rows are equal") == 1


def test_a_run_repeats_bit_for_bit_from_its_config(call, table, tmp_path, monkeypatch):
    options = (
        *("--label", "kind", "--epochs", 3, "--seed", 7, "--prototypes", 20, "--xi", 5),
        *("-q", "--no-report"),
    )
    assert call("fit", "rows.csv", *options, "--out", "one")[0] == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)  # the data's path is kept in full
    given = ("--config", "../one/config.json", "--out", "two", "-q", "--no-report")
    code, _, err = call("fit", *given)
    assert (code, err) == (0, "")
    assert same_weights(tmp_path / "one", elsewhere / "two")
    first, second = (
        json.loads((run / "config.json").read_text())
        for run in (tmp_path / "one", elsewhere / "two")
    )
    assert first.pop("command") == shlex.join(
        ["selfview", "fit", "rows.csv", *map(str, options), "--out", "one"]
    )
    second.pop("command")
    assert first == second
    assert first["parameters"]["random_state"] == 7


def test_options_win_over_the_config_and_changed_rows_are_told(call, table, tmp_path):
    quick = ("-q", "--no-report")
    call("fit", "rows.csv", "--label", "kind", "--epochs", 2, "--out", "one", *quick)
    lines = table.read_text().splitlines()
    table.write_text("\n".join(lines[:-1]) + "\n")
    again = ("--config", "one/config.json", "--epochs", 1, "--out", "two")
    code, _, err = call("fit", *again, *quick)
    assert code == 0
    assert "the rows of" in err
    assert "have changed" in err
    assert len((tmp_path / "two" / "history.csv").read_text().splitlines()) == 2
    assert not same_weights(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not JSON"),
        ("[1]", "it holds no object"),
        ("{}", "not the config.json of a run"),
        ('{"format": 9, "data": "digits"}', "has format 9"),
        ('{"format": 1, "data": "digits", "options": 3}', "options is no object"),
        ('{"format": 1, "data": "digits", "options": {"rows": 1}}', "no option 'rows'"),
        ('{"format": 1, "data": "digits", "parameters": {"eps": 1}}', "no parameter 'eps'"),
        ('{"format": 1, "data": "digits", "parameters": {"encoder": "own"}}', "custom encoder"),
        ('{"format": 1, "data": "digits", "parameters": {"epochs": []}}', "epochs must be"),
    ],
)
def test_a_broken_config_is_named_in_one_line(call, tmp_path, content, words):
    (tmp_path / "config.json").write_text(content)
    code, _, err = call("fit", "--config", "config.json", "--out", "run")
    assert code == 1
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_dry_run_says_what_would_happen_and_writes_nothing(call, table, tmp_path):
    before = set(tmp_path.iterdir())
    code, out, err = call("fit", "rows.csv", "--label", "kind", "--epochs", 40, "--dry-run")
    assert (code, err) == (0, "")
    said = {line.split()[0]: line for line in out.splitlines()}
    assert "240, 3 classes" in said["rows"]
    assert said["features"].endswith("12")
    assert re.search(r"perceptron, [0-9.]+ M parameters", said["encoder"])
    assert "40 (40 epochs of 1)" in said["steps"]
    assert "about" in said["time"]
    assert "MB" in said["memory"]
    X = np.loadtxt(table, delimiter=",", skiprows=1, usecols=range(12))
    epsilon = float(said["epsilon"].split()[1])
    assert 0 < epsilon < np.linalg.norm(X, axis=1).mean() / 5
    assert set(tmp_path.iterdir()) == before
    np.save(tmp_path / "unlike.npy", X * np.where(np.arange(12) == 3, 1e4, 1))
    out = call("fit", "unlike.npy", "--epochs", 1, "--dry-run")[1]
    assert "12, of different scale: each divided by its standard deviation" in out


@pytest.mark.filterwarnings("ignore::selfview.CollapseWarning")
def test_the_forecast_is_near_the_time_that_a_fit_takes(rng):
    X = rng.normal(size=(256, 30)).astype(np.float32)
    model = SelfView(epochs=8, random_state=0, verbose=0)
    foretold = model.forecast(X)
    assert not hasattr(model, "network_")
    start = time.perf_counter()
    model.fit_transform(X)
    # Wide, because other processes may take the processor meanwhile.
    assert 0.3 < foretold.seconds / (time.perf_counter() - start) < 3
    assert 1e8 < foretold.memory < 1e10


@pytest.mark.filterwarnings("ignore::selfview.CollapseWarning")
def test_saying_how_long_it_takes_changes_no_bit(blobs, capsys):
    X, _ = blobs
    small = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.Dropout(), torch.nn.Linear(16, 4))
    model = SelfView(encoder=small, epochs=20, random_state=0)
    loud = clone(model).set_params(verbose=1).fit(X)
    assert "; about " in capsys.readouterr().err.splitlines()[0]
    silent = clone(model).set_params(verbose=0).fit(X)
    a, b = loud.network_.state_dict(), silent.network_.state_dict()
    assert all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "a second"),
        (7.2, "7 s"),
        (99, "99 s"),
        (150, "2.5 min"),
        (6100, "1.7 h"),
        (1e6, "12 days"),
    ],
)
def test_times_are_told_in_the_unit_people_take(seconds, words):
    assert duration(seconds) == words


# A state is written after every epoch, so that the test needn't wait for one.
OFTEN = (
    "import selfview.saving.checkpoints as c, selfview.cli as m; "
    "c.Checkpoints.INTERVAL = 0; m.main()"
)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_says_how_to_go_on_and_ends_with_the_same_bits(
    call, table, tmp_path, number, code
):
    options = ("rows.csv", "--label", "kind", "--epochs", "60")
    process = subprocess.Popen(
        [sys.executable, "-c", OFTEN, "fit", *options, "--out", "run"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if line.startswith("epoch "):  # the state after the epoch before it is on disk
            process.send_signal(number)
            break
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    last = err.strip().splitlines()[-1]
    assert "Traceback" not in err
    command = last.partition("To go on: ")[2]
    assert command == "selfview fit --resume --out run"
    assert list((tmp_path / "run" / "checkpoint").glob("checkpoint-*.safetensors"))
    assert not (tmp_path / "run" / "model.safetensors").exists()

    if number == signal.SIGINT:  # once is enough
        done, _, err = call(*shlex.split(command)[1:], "--no-report")
        assert done == 0
        assert "epoch 12/60" not in err
        assert not (tmp_path / "run" / "checkpoint").exists()
        call("fit", "--config", "run/config.json", "--out", "whole", "-q", "--no-report")
        assert same_weights(tmp_path / "run", tmp_path / "whole")


def test_tensorboard_gets_the_metrics_of_the_history(call, table, tmp_path):
    accumulators = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="tensorboard is not installed",
    )
    for _ in range(2):  # the second run replaces the first one's events
        options = ("--label", "kind", "--epochs", 3, "-q", "--tensorboard", "--force")
        assert call("fit", "rows.csv", *options, "--no-report")[0] == 0
    events = accumulators.EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    with (tmp_path / "run" / "history.csv").open() as file:
        history = list(csv.DictReader(file))
    for name in ("loss", "entropy", "temperature"):
        found = events.Scalars(name)
        assert [event.step for event in found] == [1, 2, 3]
        expected = [np.float32(row[name]) for row in history]
        assert [np.float32(event.value) for event in found] == expected


def test_tensorboard_that_is_not_installed_is_named_before_the_fit(call, table, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    code, _, err = call("fit", "rows.csv", "--label", "kind", "--tensorboard")
    assert code == 1
    assert "pip install 'selfview[tensorboard]'" in err


def test_every_output_format_holds_the_same_numbers(call, table, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    call("fit", "rows.csv", "--label", "kind", "--epochs", 1, "-q", "--no-report")
    for name in ("z.npy", "z.CSV", "z.parquet"):
        assert call("embed", "run", "rows.csv", "--out", name)[0] == 0
    Z = np.load(tmp_path / "z.npy")
    assert Z.shape == (240, 10)
    text = np.loadtxt(tmp_path / "z.CSV", delimiter=",", skiprows=1, dtype=np.float32)
    np.testing.assert_array_equal(text, Z)
    columns = pq.read_table(tmp_path / "z.parquet").columns
    np.testing.assert_array_equal(np.array([c.to_numpy() for c in columns]).T, Z)


def test_an_embedding_with_row_names_is_evaluated_without_them(call, tmp_path, blobs):
    X, y = blobs
    header = ",".join(["id", *(f"selfview{i}" for i in range(12))])
    # Names that would give every label away, were they taken for a feature.
    lines = [",".join(map(str, [1000 * c, *x])) for x, c in zip(X, y, strict=True)]
    (tmp_path / "z.csv").write_text("\n".join([header, *lines]) + "\n")
    np.save(tmp_path / "z.npy", X)
    (tmp_path / "y.txt").write_text("".join(f"{c}\n" for c in y))
    found = [call("evaluate", z, "y.txt", "--measures", "silhouette") for z in ("z.csv", "z.npy")]
    assert found[0][0] == 0
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("fit",), 2, "name the data"),
        (("fit", "--resume"), 1, "run: no such folder"),
        (("fit", "--config", "nothing.json"), 1, "nothing.json: no such file"),
        (("fit", "rows.csv", "--numeric", "knd"), 1, "numeric must name columns of the table"),
        (("fit", "rows.csv", "--label", "nokind"), 1, "no column 'nokind'"),
        (("fit", "rows.csv", "--label", "kind", "--out", "rows.csv"), 1, "is a file"),
        (("fit", "rows.csv", "--bins", "10"), 1, "bins means nothing for .csv files"),
        (("fit", "rows.csv", "--encoder", "rnn"), 1, "encoder must be one of"),
        (("fit", "rows.csv", "--label", "kind", "--encoder", "cnn"), 1, "needs images"),
        (("fit", "rows.csv", "--label", "kind", "--device", "gpu9"), 1, "device must be"),
        (("fit", "rows.csv", "--temperature", "hot"), 1, "temperature must be 'adaptive' or"),
        (("fit", "rows.csv", "--seed", "-1"), 2, "greater than or equal to 0"),
        (("fit", "empty.csv"), 1, "empty.csv"),
        (("fit", "folder"), 1, "holds no .wav"),
        (("fit", "digits", "--label", "x"), 1, "can't be given with the dataset"),
        (("embed", "run", "rows.csv", "--out", "folder.csv"), 1, "is a folder"),
        (("embed", "rows.csv", "rows.csv"), 1, "can't be read"),
        (("export", "nowhere"), 1, "nowhere: no such folder"),
        (("export", "nowhere", "--format", "gguf"), 2, "onnx, torchscript, safetensors"),
    ],
)
def test_a_wrong_call_gets_one_line_that_says_what_to_do(call, table, tmp_path, args, code, words):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.csv").mkdir()
    found, out, err = call(*args)
    assert found == code
    assert words in err
    assert not out
    if code == 1:
        assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("selfview ex", {"explain", "export"}),
        ("selfview fit fsd", {"fsdd"}),
        ("selfview fit ro", {"rows.csv"}),
        ("selfview fit digits --recipe pa", {"paper"}),
        ("selfview compare digits --methods pca,a", {"pca,ae", "pca,aae", "pca,all"}),
        ("selfview data get 20", {"20news"}),
    ],
)
def test_the_shell_completes_commands_datasets_files_and_values(
    call, table, monkeypatch, line, offered
):
    monkeypatch.setenv("_SELFVIEW_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    code, out, _ = call()
    assert code == 0
    assert set(out.split()) == offered


def test_clusters_of_a_fit_are_written_and_kept_with_the_model(call, tmp_path, blobs):
    np.save(tmp_path / "rows.npy", blobs[0])
    given = ("--clusters", 3, "--epochs", 2, "--no-report", "--quiet")
    code, _, _ = call("fit", "rows.npy", "--out", "run", *given)
    assert code == 0
    first, *lines = (tmp_path / "run" / "clusters.csv").read_text().splitlines()
    assert first == "id,cluster"
    labels = SelfView.load(tmp_path / "run").predict(blobs[0])
    assert lines == [f"{i},{label}" for i, label in enumerate(labels)]
