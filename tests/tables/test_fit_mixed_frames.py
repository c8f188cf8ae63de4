"""`SelfView` on data frames of mixed columns: the same rows as `TablePreparation` makes."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from mixed_tables import people
from sklearn.metrics import adjusted_rand_score

from selfview import InputError, SelfView, SelfViewWarning, TablePreparation
from selfview.baselines import NMF, PCA, AutoEncoder, Isomap
from selfview.cli.comparison import Settings, compare
from selfview.errors import FileFormatError
from selfview.saving.tensor_file import read_state, write_state

pytestmark = pytest.mark.filterwarnings("ignore::selfview.CollapseWarning")


def small(**given):
    return SelfView(3, epochs=2, random_state=0, verbose=0, **given)


@pytest.fixture(scope="module")
def fitted():
    return small(n_clusters=2).fit(people())


@pytest.mark.parametrize(
    "of", [lambda f: f, pl.from_pandas, lambda f: pl.from_pandas(f).to_arrow()],
    ids=["pandas", "polars", "Arrow"],
)  # fmt: skip
def test_a_mixed_frame_is_fitted_as_its_prepared_rows(of, frame):
    X = TablePreparation().fit_transform(frame)
    expected = small().fit_transform(X)
    model = small()
    np.testing.assert_array_equal(model.fit_transform(of(frame)), expected)
    np.testing.assert_array_equal(model.transform(of(frame)), expected)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.n_features_in_ == frame.shape[1]


def test_labels_clusters_and_explanations_take_the_frame(fitted, frame):
    assert fitted.predict(frame).shape == (len(frame),)
    told = fitted.explain(frame)
    assert told.features == tuple(TablePreparation().fit(frame).get_feature_names_out())
    assert {"age missing", "city=Ulm", "joined year sin"} <= {*told.features}


def test_differences_are_in_the_unit_of_the_column(fitted, frame):
    labels = (frame["income"] > frame["income"].median()).to_numpy().astype(int)
    told = fitted.explain(frame, by="cluster", labels=labels)
    column = told.features.index("income")
    X = fitted.preparation_.transform(frame)[:, column]
    scale = next(c.scale for c in fitted.preparation_.table_.columns if c.name == "income")
    low, high = (X[labels == i].mean() * scale for i in (0, 1))
    np.testing.assert_allclose(np.ptp(told.differences[:, column]), high - low, rtol=1e-4)
    assert np.ptp(told.differences[:, column]) > 10_000
    plan = told.features.index("plan=pro")
    assert np.abs(told.differences[:, plan]).max() <= 1


def test_numbers_alone_are_fitted_without_a_preparation_bit_for_bit():
    X = np.random.default_rng(0).normal(size=(60, 5)) * [1, 10, 1e4, 1e-3, 0]
    model = small()
    frame = pd.DataFrame(X, columns=list("abcde"))
    np.testing.assert_array_equal(model.fit_transform(frame), small().fit_transform(X))
    assert model.preparation_ is None


def test_a_saved_model_takes_the_frame_again(fitted, frame, tmp_path):
    fitted.save(tmp_path / "model")
    again = SelfView.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(frame), fitted.transform(frame))
    assert str(again.preparation_.decisions_) == str(fitted.preparation_.decisions_)
    assert list(again.feature_names_in_) == list(frame.columns)
    other = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(other.transform(frame), fitted.transform(frame))


def test_new_rows_may_lack_columns_and_have_others(fitted, frame):
    new = frame.drop(columns=["age"]).assign(weather="rain").iloc[:, ::-1]
    with pytest.warns(SelfViewWarning) as caught:
        Z = fitted.transform(new)
    told = [str(w.message) for w in caught]
    assert told == [
        "column 'age' is missing: filled as gaps are",
        "column 'weather' is new: left out",
    ]
    assert Z.shape == (len(frame), 3)


def test_a_later_fit_of_an_array_forgets_the_table(frame):
    model = small().fit(frame)
    X = np.random.default_rng(0).normal(size=(40, 4))
    model.fit(X)
    assert model.preparation_ is None
    assert model.transform(X).shape == (40, 3)
    assert not hasattr(model, "feature_names_in_")


def test_a_stream_of_frames_keeps_the_preparation_of_the_first(frame):
    model = SelfView(3, batch_size=32, random_state=0, verbose=0).partial_fit(frame)
    table = model.preparation_.table_
    model.partial_fit(frame)
    assert model.preparation_.table_ == table
    assert model.transform(frame).shape == (len(frame), 3)


def test_an_epochs_end_and_a_forecast_take_the_frame(frame):
    shapes = []
    small(on_epoch=lambda end: shapes.append(end.transform(frame).shape)).fit(frame)
    assert shapes == [(len(frame), 3)] * 2
    found = small().forecast(frame)
    assert found.shape == TablePreparation().fit_transform(frame).shape[1:]


@pytest.mark.parametrize(
    "lie",
    [
        lambda table: table["columns"].pop(2),
        lambda table: table["columns"][2].update(scale=-1.0),
        lambda table: table.update(columns=[]),
        lambda table: table.update(columns=3),
        lambda table: table.pop("as_is"),
    ],
)
def test_a_table_that_lies_is_refused(lie, fitted, tmp_path):
    fitted.save(tmp_path)
    tensors, meta = read_state(tmp_path / "model.safetensors")
    meta = json.loads(json.dumps(meta))
    lie(meta["table"])
    write_state(tmp_path / "model.safetensors", tensors, meta)
    with pytest.raises(FileFormatError, match="is damaged"):
        SelfView.load(tmp_path)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_an_array_of_another_width_is_refused(fitted):
    with pytest.raises(InputError, match="X has 5 features, but TablePreparation is expecting 12"):
        fitted.transform(np.ones((3, 5)))


def test_baselines_take_the_frame(frame, tmp_path):
    X = TablePreparation().fit_transform(frame)
    for model in (PCA(3), Isomap(3)):
        expected = model.fit_transform(X)
        found = model.fit(frame).transform(frame)
        np.testing.assert_allclose(found, model.fit(X).transform(X), atol=1e-6)
        assert found.shape == expected.shape
        model.fit(frame).save(tmp_path / "model")
        again = type(model).load(tmp_path / "model")
        np.testing.assert_array_equal(again.transform(frame), found)
        assert again.n_features_in_ == frame.shape[1]
    with pytest.raises(InputError, match="NMF"):
        NMF(3).fit(frame)  # scaled numbers are negative too
    model = PCA(3).fit(frame).fit(X)
    assert model.preparation_ is None
    assert model.n_features_in_ == X.shape[1]


def test_an_autoencoder_reconstructs_the_rows_of_the_frame(frame):
    model = AutoEncoder(3, epochs=1, random_state=0, verbose=0).fit(frame)
    assert model.reconstruct(frame).shape == TablePreparation().fit_transform(frame).shape


def test_methods_are_compared_on_the_frame(frame):
    y = (frame["plan"] == "pro").to_numpy().astype(int)
    settings = Settings(n_components=3, epochs=1, measures=("clustering",))
    records = compare(frame.drop(columns="plan"), y, ["pca", "selfview"], settings=settings)
    assert [record.method for record in records] == ["raw", "pca", "selfview"]
    assert not any(record.error for record in records)


def test_kinds_of_rows_are_found_among_columns_that_say_nothing():
    rng = np.random.default_rng(0)
    n = 600
    kind = rng.integers(3, size=n)
    said = np.where(rng.random(n) < 0.8, kind, rng.integers(3, size=n))
    frame = pd.DataFrame({
        "joined": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(700, size=n), unit="D"),
        "visits": rng.poisson(np.array([2, 9, 20])[kind]),
        "spend": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(5, np.array([3, 9, 4])[kind])),
        "channel": np.array(["shop", "web", "phone"])[said],
        "city": rng.choice(["Ulm", "Bonn", "Kiel"], n, p=[0.5, 0.3, 0.2]),
        "newsletter": rng.random(n) < np.array([0.1, 0.8, 0.5])[kind],
    })  # fmt: skip
    found = SelfView(n_clusters=3, random_state=0, verbose=0).fit_predict(frame)
    # A date's cycles and the jumps of one-hot columns once hid all but `channel`: 0.66.
    assert adjusted_rand_score(kind, found) > 0.75
