"""The command line as a user meets it: help, exit codes, one-line errors, files to embeddings.

The demo, the version and one error are real processes; all else runs in this one (`call`), which
saves the seconds of importing PyTorch again.
"""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.io import wavfile


def selfview(*args, cwd=None, check=True):
    done = subprocess.run(
        [sys.executable, "-m", "selfview", *map(str, args)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    "command", ["demo", "fit", "embed", "evaluate", "compare", "export", "data"]
)
def test_every_command_has_help_with_an_example(command, call):
    code, text, _ = call(command, "--help")
    assert code == 0
    assert "Usage" in text
    assert "Example: selfview" in text or command == "data"


def test_the_version_is_told():
    assert selfview("--version").stdout.startswith("selfview 0.")


def test_the_demo_writes_model_metrics_picture_and_page(tmp_path):
    done = selfview("demo", "--epochs", 1, "--out", tmp_path / "demo")
    for words in ("Raw features", "PCA", "selfview", "Linear", "k-means ACC", "NMI", "ARI"):
        assert words in done.stdout
    assert "epoch 1/1" in done.stderr
    names = {path.name for path in (tmp_path / "demo").iterdir()}
    assert names == {
        *("model.safetensors", "preparation.json", "config.json", "history.csv"),
        *("metrics.json", "embedding.png", "report.html"),
    }
    assert f"report: {tmp_path / 'demo' / 'report.html'}" in done.stdout
    scores = json.loads((tmp_path / "demo" / "metrics.json").read_text())["scores"]
    assert all(
        0.9 < scores[row]["linear_accuracy"] <= 1 for row in ("Raw features (64)", "PCA (10)")
    )
    assert (tmp_path / "demo" / "embedding.png").read_bytes().startswith(b"\x89PNG")


def test_a_table_is_fitted_and_new_rows_are_embedded_alike(call, tmp_path, blobs):
    X, y = blobs
    header = ",".join(["name", *(f"f{i}" for i in range(12)), "kind"])
    rows = [
        ",".join([f"row {i}", *map(repr, map(float, x)), f"class {c}"])
        for i, (x, c) in enumerate(zip(X, y, strict=True))
    ]
    (tmp_path / "all.csv").write_text("\n".join([header, *rows]))
    (tmp_path / "new.csv").write_text("\n".join([header, *rows[:7]]))
    options = ("--label", "kind", "--id", "name", "--epochs", 5, "--no-report")
    code, out, err = call("fit", "all.csv", *options, "--out", "run")
    assert code == 0, err
    assert "linear probe " in out
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"model.safetensors", "preparation.json", "config.json", "history.csv"} <= names
    assert "checkpoint" not in names
    assert call("embed", "run", "all.csv", "--out", "all.npy")[0] == 0
    assert call("embed", "run", "new.csv", "--id", "name", "--out", "new.csv.csv")[0] == 0
    everything = np.load(tmp_path / "all.npy")
    lines = (tmp_path / "new.csv.csv").read_text().splitlines()
    assert lines[1].startswith("row 0,")
    found = np.array([line.split(",")[1:] for line in lines[1:]], dtype=float)
    np.testing.assert_allclose(found, everything[:7], rtol=1e-5, atol=1e-6)


def test_recordings_are_fitted_and_one_new_file_is_embedded(call, tmp_path, rng):
    folder = tmp_path / "recordings"
    folder.mkdir()
    for i in range(12):
        tone = np.sin(np.arange(4000) * (0.05 + 0.2 * (i % 3))) + 0.1 * rng.normal(size=4000)
        wavfile.write(folder / f"{i % 3}_{i}.wav", 8000, (8000 * tone).astype(np.int16))
    options = ("--labels-from-name", r"^(\d)_", "--epochs", 2, "--no-report")
    assert call("fit", folder, *options, "--out", "run")[0] == 0
    _, out, _ = call("embed", "run", folder / "0_0.wav", "--out", "z.npy")
    assert "1 row embedded in 10 dimensions" in out
    assert np.load(tmp_path / "z.npy").shape == (1, 10)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("fit", "nothing-here.csv"), 1, "no such file"),
        (("fit", "digits", "--epochs", "0"), 1, "epochs must be an integer of at least 1, got 0"),
        (("fit", "digits", "--epsilon", "big"), 1, "epsilon must be 'auto' or a positive number"),
        (("fit", "digits", "--no-such-option"), 2, "No such option"),
        (("embed", "nowhere", "digits"), 1, "nowhere: no such folder"),
        (("embed", "nowhere", "digits", "--out", "z.doc"), 1, ".npy, .csv, .parquet"),
        (("dance",), 2, "No such command"),
    ],
)
def test_wrong_calls_end_with_one_line_and_a_code(args, code, message, call, tmp_path):
    found, _, err = call(*args)
    assert found == code
    assert message in err
    if code == 1:
        assert len(err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_process_that_fails_ends_with_its_code_and_without_a_traceback(tmp_path):
    done = selfview("fit", "nothing-here.csv", cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("selfview: nothing-here.csv: no such file")
    assert "Traceback" not in done.stderr
