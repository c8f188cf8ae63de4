"""Models that did not come from `selfview fit`: those of `selfview demo` and of `SelfView.save`."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from selfview import SelfView
from selfview.cli.compare import show
from selfview.report.scores import tabulate_scores

pytestmark = pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")


def saved(X, folder="m"):
    """A model that a program fitted to `X` and saved."""
    model = SelfView(2, epochs=2, random_state=0, verbose=0).fit(X)
    model.save(folder)
    return model


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 3)).astype(np.float32)


def test_a_saved_model_embeds_arrays_and_tables_as_they_are(call, X):
    expected = saved(X).transform(X)
    np.save("x.npy", X)
    np.savetxt("x.csv", X, delimiter=",", fmt="%.9g")
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(name="n").to_csv("named.csv", index=False)
    for more in (["x.npy"], ["x.csv"], ["named.csv", "--id", "name"]):
        code, _, err = call("embed", "m", *more, "--out", "z.npy")
        assert code == 0, err
        np.testing.assert_allclose(np.load("z.npy"), expected, rtol=1e-5, atol=1e-6)


def test_a_model_of_a_data_frame_finds_its_columns_by_name(call, X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = saved(frame).transform(frame)
    frame[["c", "a", "b"]].assign(kind="k").to_csv("x.csv", index=False)
    code, _, err = call("embed", "m", "x.csv", "--label", "kind", "--out", "z.npy")
    assert code == 0, err
    np.testing.assert_allclose(np.load("z.npy"), expected, rtol=1e-5, atol=1e-6)
    code, _, err = call("embed", "m", "x.csv", "--out", "z.npy")
    assert code == 0, err
    np.testing.assert_allclose(np.load("z.npy"), expected, rtol=1e-5, atol=1e-6)


def test_bytes_are_not_scaled_for_a_model_that_saw_them_as_they_are(call, rng):
    pictures = rng.integers(0, 256, size=(20, 8, 8), dtype=np.uint8)
    expected = saved(pictures).transform(pictures)
    np.save("pictures.npy", pictures)
    assert call("embed", "m", "pictures.npy", "--out", "z.npy")[0] == 0
    np.testing.assert_allclose(np.load("z.npy"), expected, rtol=1e-5, atol=1e-6)


def test_rows_of_another_shape_or_kind_are_refused_in_one_line(call, X):
    saved(X)
    np.save("wide.npy", np.ones((5, 4)))
    Path("words.csv").write_text("a,b,c\n1,2,x\n3,4,y\n")
    Path("texts.txt").write_text("one fish\n")
    for name, words in (
        ("wide.npy", "rows of shape (4,), this model needs (3,)"),
        ("words.csv", "column 'c': 'x' is not a number"),
        ("texts.txt", "give the rows themselves, as .npy"),
        ("digits", "rows of shape (64,), this model needs (3,)"),
    ):
        code, _, err = call("embed", "m", name, "--out", "z.npy")
        assert code == 1
        assert words in err
        assert len(err.strip().splitlines()) == 1
        assert not Path("z.npy").exists()


def test_a_saved_model_is_reported_on_rows_that_are_given(call, X):
    saved(X)
    code, _, err = call("report", "m")
    assert code == 1
    assert "selfview report m DATA" in err
    np.save("x.npy", X)
    code, out, err = call("report", "m", "x.npy", "--layout", "pca")
    assert code == 0, err
    assert "report of 40 rows" in out
    page = Path("m/report.html").read_text()
    assert "SelfView(epochs=2, n_components=2, random_state=0" in page
    assert "2 epochs in" in page


@pytest.mark.slow
def test_the_demo_is_a_run_like_others(call):
    assert call("demo", "--epochs", 1, "--out", "demo")[0] == 0
    code, out, err = call("report", "demo", "--layout", "pca")
    assert code == 0, err
    assert "report of 1,797 rows" in out
    assert call("embed", "demo", "digits", "--out", "z.npy")[0] == 0
    assert np.load("z.npy").shape == (1797, 10)


def test_a_demo_replaces_nothing_but_a_demo(call, X):
    saved(X, "mine")
    before = Path("mine/model.safetensors").read_bytes()
    code, _, err = call("demo", "--epochs", 1, "--out", "mine")
    assert code == 1
    assert "mine holds a finished run of other rows" in err
    assert Path("mine/model.safetensors").read_bytes() == before


def test_the_demo_without_matplotlib_ends_with_its_table_and_a_note(call, X, monkeypatch):
    saved(X, "demo")
    Path("demo/metrics.json").write_text(json.dumps({"data": "scikit-learn's digits, some"}))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = call("demo", "--epochs", 1, "--seed", 1, "--out", "demo")
    assert code == 0, err
    assert "k-means ACC" in out
    assert "pip install 'selfview[plots]'" in out
    assert not Path("demo/embedding.png").exists()
    assert SelfView.load("demo").random_state == 1  # it took the place of the earlier one


def test_an_embedding_replaces_neither_its_rows_nor_one_that_was_made_before(call, X):
    saved(X)
    np.save("x.npy", X)
    assert call("embed", "m", "x.npy", "--out", "x.npy")[0] == 1
    np.testing.assert_array_equal(np.load("x.npy"), X)
    assert call("embed", "m", "x.npy")[0] == 0
    code, _, err = call("embed", "m", "x.npy")
    assert code == 1
    assert "embedding.npy is there already" in err
    assert call("embed", "m", "x.npy", "--out", "embedding.npy")[0] == 0


def test_no_output_takes_the_place_of_a_file_of_a_run(call, X):
    saved(X)
    saved(X, "other")
    before = Path("m/model.safetensors").read_bytes()
    for out in ("m/model.safetensors", "other/encoder.safetensors"):
        code, _, err = call("export", "m", "--format", "safetensors", "--out", out)
        assert code == 1
        assert "name" in err
    assert Path("m/model.safetensors").read_bytes() == before


def test_embed_writes_the_ids_of_jsonl_rows(call):
    lines = [f'{{"id": {i}, "text": "fish {w}"}}' for i, w in enumerate(("a1", "b2", "c3") * 7)]
    Path("posts.jsonl").write_text("\n".join(lines))
    assert call("fit", "posts.jsonl", "--epochs", 1, "-q", "--no-report")[0] == 0
    assert call("embed", "run", "posts.jsonl", "--out", "z.csv")[0] == 0
    found = [line.partition(",")[0] for line in Path("z.csv").read_text().splitlines()]
    assert found == ["id", *map(str, range(21))]


def test_scores_that_print_alike_are_bold_alike_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    names = ("linear_accuracy", "kmeans_acc", "kmeans_nmi", "kmeans_ari")
    scores = {"raw": 0.9251, "PCA": 0.9249, "selfview": 0.9244}
    show(tabulate_scores({name: dict.fromkeys(names, value) for name, value in scores.items()}))
    out = capsys.readouterr().out
    assert len(re.findall(r"\x1b\[1m *92\.5", out)) == 8
    assert not re.search(r"\x1b\[1m *92\.4", out)


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "https://example.org/rows.csv"),
        ("fit", "--config", "https://example.org/rows.csv"),
        ("embed", "https://example.org/rows.csv", "digits"),
        ("evaluate", "https://example.org/rows.csv", "--label", "kind"),
        ("compare", "s3://example.org/rows.csv"),
    ],
)
def test_an_address_is_named_whole_with_what_to_do(call, words):
    code, out, err = call(*words)
    assert (code, out) == (1, "")
    assert "://example.org/rows.csv is an address" in err
    assert "download it first" in err
    assert not list(Path().iterdir())


def test_labels_may_be_those_of_a_dataset_by_name(call):
    pixels, labels = load_digits(return_X_y=True)
    np.save("z.npy", pixels[:, 18:22])
    np.save("y.npy", labels)
    words = ("--measures", "linear", "--json", "-")
    code, scores, _ = call("evaluate", "z.npy", "digits", *words)
    assert code == 0
    assert scores == call("evaluate", "z.npy", "y.npy", *words)[1]
    code, _, err = call("evaluate", "z.npy", "digits", "--groups", "writer")
    assert code == 1
    assert "no groups called 'writer'" in err


def test_a_dash_makes_no_file(call, X):
    saved(X)
    np.save("x.npy", X)
    for words in (("report", "m", "x.npy"), ("export", "m"), ("embed", "m", "x.npy")):
        code, _, err = call(*words, "--out", "-")
        assert code == 1
        assert "standard output" in err or ".npy, .csv, .parquet" in err
    assert not Path("-").exists()
