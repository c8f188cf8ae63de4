"""`plot` and `report`: what a fitted model shows in a notebook."""

import builtins
import sys

import numpy as np
import pytest

from selfview import InputError, SelfView
from selfview.errors import MissingDependencyError
from selfview.estimator.transform import UnfittedError
from selfview.report.payload import unpack

pyplot = pytest.importorskip("matplotlib.pyplot")
pyplot.switch_backend("Agg")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 30)
    X = (5 * rng.normal(size=(3, 8))[y] + rng.normal(size=(90, 8))).astype(np.float32)
    return SelfView(4, epochs=5, n_clusters=3, random_state=0, verbose=0).fit(X), X, y


@pytest.fixture(autouse=True)
def no_figures_are_left():
    yield
    pyplot.close("all")


def points_of(ax):
    return np.concatenate([part.get_offsets() for part in ax.collections])


def test_plot_draws_every_row_and_gives_the_axes(fitted):
    model, _, y = fitted
    ax = model.plot([f"kind {code}" for code in y])
    assert ax.get_title() == "t-SNE"
    assert points_of(ax).shape == (90, 2)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        f"kind {i}" for i in range(3)
    ]


def test_an_embedding_of_two_columns_is_drawn_itself(fitted):
    _, X, _ = fitted
    model = SelfView(2, epochs=2, random_state=0, verbose=0).fit(X)
    np.testing.assert_array_equal(points_of(model.plot()), model.embedding_)
    np.testing.assert_array_equal(points_of(model.plot(X=X[:7])), model.transform(X[:7]))


def test_measurements_get_a_colour_bar_and_the_axes_given_are_used(fitted):
    model, X, _ = fitted
    figure, ax = pyplot.subplots()
    assert model.plot(X[:, 0], ax=ax) is ax
    assert len(figure.axes) == 2  # the second is the colour bar
    np.testing.assert_allclose(ax.collections[0].get_array(), X[:, 0])


def test_without_a_colour_clusters_are_shown(fitted):
    model, _, _ = fitted
    names = [text.get_text() for text in model.plot().get_legend().get_texts()]
    assert names == ["cluster 0", "cluster 1", "cluster 2"]


def test_without_open_tsne_scikit_learns_is_taken(fitted, monkeypatch):
    monkeypatch.setattr("selfview.report.drawing.find_spec", lambda _: None)
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    assert points_of(fitted[0].plot()).shape == (90, 2)


def test_what_cannot_be_plotted_is_told(fitted, monkeypatch):
    model, X, _ = fitted
    with pytest.raises(InputError, match="color must have a value for each of the 90 rows, got"):
        model.plot([1, 2])
    with pytest.raises(UnfittedError):
        SelfView().plot()
    loaded = SelfView(2, epochs=1, random_state=0, verbose=0).fit(X)
    del loaded.embedding_
    with pytest.raises(InputError, match="X must be given"):
        loaded.plot()
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"pip install 'selfview\[plots\]'"):
        model.plot()


def page_of(path):
    text = path.read_text(encoding="utf-8")
    return text, *unpack(text.split('id="payload">')[1].split("<")[0])


def test_report_writes_the_page_of_the_command_line(fitted, tmp_path):
    model, X, y = fitted
    path = model.report(
        tmp_path / "page.html", X, np.array(["a", "b", "c"])[y], ids=np.arange(90), layout="pca"
    )
    text, known, arrays = page_of(path)
    assert path == tmp_path / "page.html"
    assert known["columns"][0]["name"] == "label"
    assert known["columns"][0]["names"] == ["a", "b", "c"]
    assert known["ids"][:2] == ["0", "1"]
    np.testing.assert_array_equal(arrays["column0"], y)
    np.testing.assert_allclose(arrays["embedding"], model.transform(X), rtol=1e-5)
    assert "SelfView(" in text


def test_report_takes_frames_and_sparse_rows(tmp_path, rng):
    pandas = pytest.importorskip("pandas")
    from scipy.sparse import csr_array

    frame = pandas.DataFrame(rng.normal(size=(40, 3)), columns=["age", "height", "weight"])
    model = SelfView(2, epochs=1, random_state=0, verbose=0).fit(frame)
    _, known, _ = page_of(model.report(tmp_path / "frame.html", frame, layout="pca"))
    assert known["features"] == ["age", "height", "weight"]
    sparse = csr_array(np.maximum(frame.to_numpy(), 0))
    model = SelfView(2, epochs=1, random_state=0, verbose=0).fit(sparse)
    _, known, _ = page_of(model.report(tmp_path / "sparse.html", sparse, layout="pca"))
    assert known["n"] == 40


def test_a_mixed_frame_is_coloured_by_its_own_columns(tmp_path, rng):
    pandas = pytest.importorskip("pandas")

    city = np.array(["Ulm", "Bonn"])[np.arange(60) % 2]
    spend = np.where(np.arange(60) % 9, rng.normal(100, 30, 60).round(1), np.nan)
    days = pandas.Timestamp("2024-02-28") + pandas.to_timedelta(np.arange(60), "D")
    frame = pandas.DataFrame({"city": city, "spend": spend, "joined": days})
    model = SelfView(2, n_clusters=2, epochs=1, random_state=0, verbose=0).fit(frame)
    _, known, arrays = page_of(model.report(tmp_path / "frame.html", frame, layout="pca"))
    columns = {c["name"]: (c, arrays[f"column{i}"]) for i, c in enumerate(known["columns"])}
    about, codes = columns["city"]
    assert about["group"] == "Data"
    assert np.array(about["names"])[codes].tolist() == city.tolist()
    np.testing.assert_allclose(columns["spend"][1], spend, rtol=1e-5)
    assert columns["joined"][0]["date"]
    assert columns["joined"][1][0] == (np.datetime64("2024-02-28") - np.datetime64("1970")).astype(
        int
    )
    assert "features" not in known
    named = {name for card in known["clusters"]["cards"] for name, *_ in card["leading"]}
    assert "city=Ulm" in named


def test_labels_must_be_one_for_each_row(fitted, tmp_path):
    model, X, y = fitted
    with pytest.raises(InputError, match="labels must have a value for each of the 90 rows"):
        model.report(tmp_path / "page.html", X, y[:5])
    assert not (tmp_path / "page.html").exists()
