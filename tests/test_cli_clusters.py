"""Clusters and explanations on the command line: columns of `embed`, tables of `explain`."""

import csv
import json

import numpy as np
import pytest

from selfview import SelfView
from selfview.data import Dataset, read
from selfview.data.audio import AudioPreparation
from selfview.data.spectra import ImzMLPreparation, PeakPreparation


@pytest.fixture
def table(tmp_path, rng):
    """Two kinds of rows, which differ in the columns 'height' and 'weight' only."""
    X = rng.normal(size=(90, 5))
    X[:, 1] += 6 * (np.arange(90) % 2)
    X[:, 3] -= 6 * (np.arange(90) % 2)
    lines = ["age,height,noise,weight,other"]
    lines += [",".join(f"{value:.5f}" for value in row) for row in X]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    return X


@pytest.fixture
def run(call, table):
    options = ("--clusters", 2, "--epochs", 20, "--components", 3, "-q", "--no-report")
    code, _, err = call("fit", "rows.csv", *options, "--out", "run")
    assert code == 0, err
    return table


def columns_of(path):
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_embed_writes_the_cluster_of_every_row_and_its_probability(call, run, tmp_path):
    code, out, _ = call("embed", "run", "rows.csv", "--out", "z.csv")
    assert code == 0
    assert "given to a cluster" in out
    found = columns_of(tmp_path / "z.csv")
    assert list(found) == [*(f"selfview{i}" for i in range(3)), "cluster", "cluster_probability"]
    model = SelfView.load(tmp_path / "run")
    X = read(tmp_path / "rows.csv").X
    assert list(map(int, found["cluster"])) == model.predict(X).tolist()
    likeliest = model.cluster_proba(X).max(axis=1)
    np.testing.assert_allclose(list(map(float, found["cluster_probability"])), likeliest, rtol=1e-6)


def test_embed_writes_clusters_into_parquet_too(call, run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert call("embed", "run", "rows.csv", "--out", "z.parquet")[0] == 0
    found = parquet.read_table(tmp_path / "z.parquet")
    assert found.column_names[-2:] == ["cluster", "cluster_probability"]
    assert set(found["cluster"].to_pylist()) == {0, 1}


def test_an_array_has_no_column_for_clusters_and_embed_says_so(call, run, tmp_path):
    _, _, err = call("embed", "run", "rows.csv", "--out", "z.npy")
    assert ".csv and .parquet files only" in err
    assert np.load(tmp_path / "z.npy").shape == (90, 3)


def test_evaluate_takes_no_cluster_for_a_feature(call, run, tmp_path):
    call("embed", "run", "rows.csv", "--out", "z.csv")
    call("embed", "run", "rows.csv", "--out", "z.npy")
    np.save(tmp_path / "y.npy", np.arange(90) % 2)
    words = ("y.npy", "--measures", "linear", "--json", "-")
    assert call("evaluate", "z.csv", *words)[1] == call("evaluate", "z.npy", *words)[1]


def test_explain_names_the_columns_that_make_the_clusters(call, run):
    code, out, err = call("explain", "run", "--by", "cluster", "--top", 2, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["by"] == "cluster"
    assert [target["name"] for target in told["targets"]] == ["cluster 0", "cluster 1"]
    for target in told["targets"]:
        assert {entry["feature"] for entry in target["features"]} == {"height", "weight"}
        away = {entry["feature"]: entry["difference"] for entry in target["features"]}
        assert away["height"] * away["weight"] < 0  # the kinds differ in opposite ways


def test_explain_prints_a_table_with_signs(call, run):
    code, out, _ = call("explain", "run", "rows.csv", "--top", 3)
    assert code == 0
    for words in ("component", "feature", "contribution", "selfview0", "selfview2", "height"):
        assert words in out
    assert "+" in out
    assert out.count("weight") + out.count("height") >= 5  # of two in each of three components


def test_what_cannot_be_explained_is_told(call, table):
    options = ("--epochs", 1, "-q", "--no-report", "--out", "bare")
    assert call("fit", "rows.csv", *options)[0] == 0
    code, _, err = call("explain", "bare", "--by", "cluster")
    assert code == 1
    assert "bare has no clusters: fit it with --clusters, a number or auto" in err
    assert call("explain", "bare", "--by", "colour")[0] == 2


def test_a_model_saved_from_python_is_explained_for_the_rows_given(call, table, tmp_path):
    SelfView(2, epochs=1, random_state=0, verbose=0).fit(table).save(tmp_path / "model")
    code, _, err = call("explain", "model")
    assert code == 1
    assert "`selfview explain model DATA`" in err
    np.save(tmp_path / "rows.npy", table)
    code, out, _ = call("explain", "model", "rows.npy", "--top", 1)
    assert code == 0
    assert "feature" in out


def test_features_have_the_names_of_their_kind_of_data():
    maxima = np.ones(2, np.float32)
    binned = ImzMLPreparation((100.0, 200.0), 2, maxima)
    peaks = PeakPreparation(np.array([104.1, 303.25]), maxima)
    audio = AudioPreparation()
    image = Dataset("image", np.zeros((1, 1, 2, 3)))
    colour = Dataset("colour", np.zeros((1, 3, 1, 2)))
    assert binned.feature_names == ("m/z 125.00", "m/z 175.00")
    assert peaks.feature_names == ("m/z 104.10", "m/z 303.25")
    assert len(audio.feature_names) == audio.shape[0]
    assert audio.feature_names[49] == "frame 2, 85 Hz"
    assert image.feature_names[4] == "line 2, column 2"
    assert colour.feature_names[2] == "green line 1, column 1"
    assert Dataset("two", np.zeros((1, 2, 1, 1))).feature_names[1] == "channel 2, line 1, column 1"
    assert Dataset("plain", np.zeros((1, 2))).feature_names == ("feature 1", "feature 2")
