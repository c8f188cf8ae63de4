"""What a new user meets first: wrong paths, pictures of all sizes, the end of a fit."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from selfview.cli import app, paths
from selfview.data import DATASETS, read
from selfview.data.images import common_size

sys.path.insert(0, str(Path(__file__).parent / "data"))
import samples


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.mark.parametrize(
    "call",
    [
        ("fit", "missing.csv"),
        ("fit", "--config", "missing.json"),
        ("evaluate", "missing.npy", "labels.npy"),
        ("embed", "missing", "digits"),
        ("report", "missing"),
        ("export", "missing"),
        ("explain", "missing"),
        ("compare", "missing.npy"),
        ("fit", "--resume", "--out", "missing"),
        ("compare", "digits", "--labels", "missing.txt"),
        ("evaluate", "digits", "--groups", "missing.csv"),
    ],
)
def test_a_wrong_path_is_told_before_anything_heavy_is_imported(call, tmp_path):
    code = f"""
import sys
from selfview.cli import main
sys.argv = ["selfview", *{call!r}]
try:
    main()
except SystemExit as end:
    assert end.code == 1
assert not {{"numpy", "torch"}} & {{*sys.modules}}
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "no such" in done.stderr


def test_an_image_size_is_one_number_or_two(tmp_path):
    (tmp_path / "pictures").mkdir()
    for i in range(12):
        samples.write_image(tmp_path / "pictures" / f"{i}.png", size=(20 + i, 30))
    for size, said in {"24": "3 x 24 x 24", "24x16": "3 x 16 x 24", "24,16": "3 x 16 x 24"}.items():
        options = ("--image-size", size, "--dry-run", "--out", tmp_path / "run")
        done = run("fit", tmp_path / "pictures", *options)
        assert f"features  {said}" in done.stdout, done.output
    for size in ("wide", "24x", "24x24x24", "0"):
        done = run("fit", tmp_path / "pictures", "--image-size", size)
        assert "24, or a width and a height as 32x24" in done.stderr


def test_the_name_that_was_likely_meant_is_told(tmp_path):
    (tmp_path / "patients.csv").write_text("a,b\n1,2\n")
    done = run("fit", tmp_path / "patient.csv")
    assert f"did you mean {tmp_path / 'patients.csv'}?" in str(done.exception)
    assert "did you mean digits?" in str(run("fit", "digit").exception)


def test_the_names_of_datasets_are_those_that_can_be_loaded():
    assert tuple(DATASETS) == paths.NAMES


def test_pictures_of_many_sizes_get_a_common_one_that_is_said(tmp_path):
    for i, size in enumerate([(31, 20), (30, 24), (33, 25), (400, 300), (29, 23)]):
        samples.write_image(tmp_path / f"{i}.png", size=size)
    found = read(tmp_path)
    assert found.X.shape == (5, 3, 24, 32)
    told = found.messages[-1]
    assert told.count("32 x 24") == 1  # said once
    assert "to 32 x 24 (" in told
    assert "; they have 5 sizes (31 x 20 to 400 x 300), and --image-size WIDTHxHEIGHT" in told
    assert read(tmp_path, image_size=(10, 9)).X.shape == (5, 3, 9, 10)


def test_pictures_of_all_common_formats_are_read(tmp_path):
    names = ["a.bmp", "b.jpg", "c.png", "d.webp"]
    for name in names:
        samples.write_image(tmp_path / name, size=(8, 6))
    assert list(read(tmp_path).ids) == names


def test_a_size_that_most_pictures_have_is_theirs():
    assert common_size([(9, 7), (9, 7), (50, 60)]) == (9, 7)
    assert common_size([(4000, 3000)] * 3) == (128, 96)  # what a fit can bear
    assert common_size([(1, 2), (2, 1), (3, 3)]) == (8, 8)


def test_a_fit_ends_in_words(tmp_path, blobs):
    X, y = blobs
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    out = tmp_path / "run"
    done = run("fit", tmp_path / "rows.npz", "--label", "y", "--epochs", 3, "--out", out, "-q")
    assert done.exit_code == 0, done.output
    scores = json.loads((out / "metrics.json").read_text())["scores"]
    line = done.stdout.splitlines()[0]
    assert line.startswith(f"linear probe {100 * scores['linear_accuracy']:.1f} % (PCA ")
    assert "raw " in line
    assert f"report: {out / 'report.html'}" in done.stdout
    assert "n_left_out" not in done.stdout
    options = ("--label", "y", "--epochs", 1, "--out", tmp_path / "b", "-q", "--no-report")
    again = run("fit", tmp_path / "rows.npz", *options)
    assert re.match(r"linear probe \d+\.\d %\n", again.stdout)


def test_a_table_of_an_image_has_the_place_of_each_pixel(tmp_path):
    path = samples.write_imzml(tmp_path / "a.imzML")
    out = tmp_path / "run"
    options = ("--epochs", 1, "--bins", 32, "--components", 2, "--no-report", "-q", "--out", out)
    assert run("fit", path, *options).exit_code == 0
    assert run("embed", out, path, "--out", tmp_path / "z.csv").exit_code == 0
    with (tmp_path / "z.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = [[int(row["x"]), int(row["y"])] for row in rows]
    assert found == np.asarray(read(path).coordinates).tolist()


def test_cells_of_a_file_are_fitted_embedded_and_reported(tmp_path, blobs):
    import anndata
    import pandas as pd

    X, y = blobs
    places = np.random.default_rng(0).uniform(0, 500, (len(y), 2))
    obs = pd.DataFrame({"type": y.astype(str)}, index=[f"c{i}" for i in range(len(y))])
    cells = anndata.AnnData(np.maximum(X, 0), obs=obs, obsm={"spatial": places})
    cells.write_h5ad(tmp_path / "cells.h5ad")
    out = tmp_path / "run"
    done = run("fit", tmp_path / "cells.h5ad", "--label", "type", "--epochs", 2, "--out", out, "-q")
    assert done.exit_code == 0, done.output
    page = (out / "report.html").read_text()
    assert 'id="tissue"' in page
    done = run("embed", out, tmp_path / "cells.h5ad", "--out", tmp_path / "z.csv")
    assert done.exit_code == 0, done.output
    with (tmp_path / "z.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows[:2]] == ["c0", "c1"]
    np.testing.assert_allclose(float(rows[5]["x"]), places[5, 0])


@pytest.mark.parametrize("package", ["umap", "pacmap"])
def test_methods_of_other_packages_are_compared_when_installed(package, tmp_path, blobs):
    pytest.importorskip(package)
    X, y = blobs
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    page = tmp_path / "page.html"
    options = ("--labels", "y", "--out", tmp_path / "out", "--components", 2, "--report", page)
    done = run("compare", tmp_path / "rows.npz", "--methods", f"pca,{package}", *options)
    assert done.exit_code == 0, done.output
    records = (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    found = {r["method"]: r for r in map(json.loads, records)}
    assert not found[package]["error"]
    assert found[package]["scores"]["linear_accuracy"] > 0.9
    text = page.read_text()
    for title in ("raw features", "PCA", {"umap": "UMAP", "pacmap": "PaCMAP"}[package]):
        assert f'aria-label="Map of the embedding of {title}"' in text
