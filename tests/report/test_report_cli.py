"""`selfview fit` leaves a report, and `selfview report` makes it again."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from selfview.cli import app
from selfview.errors import InputError
from selfview.report.payload import unpack

from .conftest import payload_text


def call(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def facts_of(path):
    return unpack(payload_text(path.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A table, its run folder, and what the fit said."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    lines = ["name,a,b,c,kind"]
    for i in range(60):
        values = ",".join(f"{value:.4f}" for value in rng.normal(size=3) + 4 * (i % 2))
        lines.append(f"row {i},{values},kind {i % 2}")
    (folder / "rows.csv").write_text("\n".join(lines))
    options = ("--label", "kind", "--id", "name", "--epochs", 1, "--components", 3, "--quiet")
    done = call("fit", folder / "rows.csv", *options, "--out", folder / "run")
    return folder, done.output


def test_fit_writes_a_report_of_its_rows(run):
    folder, said = run
    assert "report.html" in said
    known, arrays = facts_of(folder / "run" / "report.html")
    assert known["ids"][:2] == ["row 0", "row 1"]
    assert [column["name"] for column in known["columns"]] == ["label", "cluster", "prototype"]
    assert known["columns"][0]["names"] == ["kind 0", "kind 1"]
    assert known["features"] == ["a", "b", "c"]
    assert arrays["embedding"].shape == (60, 3)


def test_report_makes_the_same_page_again(run):
    folder, _ = run
    page = folder / "run" / "report.html"
    before = page.read_bytes()
    page.unlink()
    done = call("report", folder / "run")
    assert "report of 60 rows" in done.output
    assert page.read_bytes() == before


def test_new_rows_can_be_shown(run):
    folder, _ = run
    lines = (folder / "rows.csv").read_text().splitlines()
    (folder / "new.csv").write_text("\n".join(lines[:6]))
    out = folder / "new.html"
    options = ("--id", "name", "--layout", "pca", "--clusters", 2, "--out", out)
    call("report", folder / "run", folder / "new.csv", *options)
    known, _ = facts_of(out)
    assert known["n"] == 5
    assert known["method"] == "PCA"


def test_data_that_moved_is_asked_for(run):
    folder, _ = run
    config = folder / "run" / "config.json"
    before = config.read_text()
    config.write_text(json.dumps(json.loads(before) | {"data": str(folder / "gone.csv")}))
    try:
        done = call("report", folder / "run", code=1)
    finally:
        config.write_text(before)
    assert isinstance(done.exception, InputError)
    assert "gone.csv" in str(done.exception)
    assert "DATA" in str(done.exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [(("--layout", "umap"), "auto, tsne, pca"), (("--clusters", "61"), "the 60 rows, got 61")],
)
def test_wrong_options_are_told(run, options, message):
    done = call("report", run[0] / "run", *options, code=1)
    assert message in str(done.exception)


def test_a_folder_that_is_no_run_is_named(tmp_path):
    done = call("report", tmp_path, code=1)
    assert str(tmp_path) in str(done.exception)


def test_fit_succeeds_without_plotly_and_says_that_there_is_no_report(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    out = run[0] / "plain"
    options = ("--label", "kind", "--id", "name", "--epochs", 1, "--quiet", "--out", out)
    done = call("fit", run[0] / "rows.csv", *options)
    assert "no report was written" in done.output
    assert "pip install 'selfview[plots]'" in done.output
    assert (out / "model.safetensors").is_file()
    assert not (out / "report.html").exists()


def test_fit_writes_no_report_if_told_so(run):
    out = run[0] / "bare"
    options = ("--label", "kind", "--id", "name", "--epochs", 1, "--quiet", "--no-report")
    done = call("fit", run[0] / "rows.csv", *options, "--out", out)
    assert "report" not in done.output
    assert not (out / "report.html").exists()
