"""Tables of mixed columns: what each is taken for, and the features that it becomes."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from mixed_tables import people
from scipy.spatial.distance import pdist
from sklearn.preprocessing import RobustScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from selfview import InputError, SelfViewWarning, TablePreparation
from selfview.data import read
from selfview.tables.columns import APART, Table
from selfview.tables.decoding import decoded
from selfview.tables.encoding import smooth_clip


@parametrize_with_checks([TablePreparation()])
def test_scikit_learns_estimator_check(estimator, check):
    check(estimator)


def kinds(preparation):
    return {decision.column: decision.kind for decision in preparation.decisions_}


def test_every_column_is_taken_for_what_it_is(frame):
    assert kinds(TablePreparation().fit(frame)) == {
        "customer": "left out",
        "row": "left out",
        "age": "number",
        "income": "number",
        "city": "category",
        "plan": "category",
        "member": "boolean",
        "street": "frequency",
        "joined": "date",
        "country": "left out",
        "empty": "left out",
        "remark": "left out",
    }


def test_the_decisions_are_printed_as_one_table(frame):
    lines = str(TablePreparation().fit(frame).decisions_).splitlines()
    assert lines[0].split() == ["column", "kind", "features", "what", "is", "done"]
    assert len(lines) == 1 + frame.shape[1]
    told = {line.split()[0]: line for line in lines}
    assert told["customer"].endswith("an id: every row has another value")
    assert told["country"].endswith("constant: DE")
    assert told["city"].endswith("one-hot: 3 values; gaps marked")
    assert "60 values, too many for one-hot" in told["street"]
    assert told["joined"].endswith("days, cycle of a year, cycle of a week")
    assert told["remark"].endswith("texts: learned from with --text")


def test_neighbours_that_are_alike_share_a_line():
    frame = pd.DataFrame(np.ones((5, 30)), columns=[f"p{i}" for i in range(30)])
    frame["kind"] = list("aabba")
    lines = str(TablePreparation().fit(frame).decisions_).splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("p0 ... p29 (30 columns)  left out")


def test_numbers_are_scaled_as_scikit_learns_robust_scaler_does_and_clipped(frame):
    X = TablePreparation(columns=["income", "plan"]).fit_transform(frame)
    expected = RobustScaler().fit_transform(frame[["income"]])[:, 0]
    np.testing.assert_allclose(X[:, 0], expected / np.sqrt(1 + (expected / 3) ** 2), rtol=1e-5)


def test_the_smooth_clip_is_odd_increasing_and_bounded():
    x = np.linspace(-1e3, 1e3, 10_001)
    y = smooth_clip(x)
    assert (np.diff(y) > 0).all()
    np.testing.assert_array_equal(smooth_clip(-x), -y)
    assert np.abs(smooth_clip(np.array([np.finfo(float).max, -1e300]))).tolist() == [3, 3]
    np.testing.assert_allclose(smooth_clip(np.array([1e-3])), 1e-3, rtol=1e-6)


def test_numbers_that_are_mostly_equal_are_scaled_by_half_their_range():
    frame = pd.DataFrame({"x": [5.0] * 20 + [1.0, 9.0], "k": list("ab") * 11})
    x = TablePreparation().fit_transform(frame)[:, 0]
    np.testing.assert_allclose(x[:20], 0)
    np.testing.assert_allclose(x[20:], smooth_clip(np.array([-1.0, 1.0])), rtol=1e-6)


def test_gaps_are_filled_with_the_median_and_marked(frame):
    preparation = TablePreparation().fit(frame)
    X = pd.DataFrame(preparation.transform(frame), columns=preparation.get_feature_names_out())
    gaps = frame["age"].isna().to_numpy()
    assert gaps.any()
    np.testing.assert_array_equal(X["age missing"] > 0, gaps)
    assert (X["age"][gaps] == 0).all()
    cities = X[["city=Ulm", "city=Bonn", "city=Kiel", "city missing"]] > 0
    np.testing.assert_array_equal(cities["city missing"], frame["city"].isna())
    np.testing.assert_array_equal(cities.sum(axis=1), 1)
    np.testing.assert_array_equal(cities["city=Ulm"], frame["city"] == "Ulm")
    assert np.isfinite(X.to_numpy()).all()


def test_names_and_features_belong_together(frame):
    preparation = TablePreparation().fit(frame)
    names = list(preparation.get_feature_names_out())
    assert names == [f for decision in preparation.decisions_ for f in decision.features]
    assert preparation.transform(frame).shape == (len(frame), len(names))
    out = preparation.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == names
    np.testing.assert_array_equal(out["member"] > 0, frame["member"])
    np.testing.assert_array_equal(out["plan=pro"] > 0, frame["plan"] == "pro")


def test_dates_are_days_and_cycles(frame):
    preparation = TablePreparation(columns=["joined"]).fit(frame)
    X = pd.DataFrame(preparation.transform(frame), columns=preparation.get_feature_names_out())
    assert list(X) == [
        *("joined", "joined year sin", "joined year cos", "joined week sin", "joined week cos"),
    ]
    order = np.argsort(frame["joined"].to_numpy(), kind="stable")
    assert (np.diff(X["joined"].to_numpy()[order]) >= 0).all()
    weekday = frame["joined"].dt.day_of_week.to_numpy()
    for day in range(7):
        assert np.ptp(X["joined week sin"][weekday == day]) < 1e-5
    week = X[["joined week sin", "joined week cos"]].to_numpy()
    np.testing.assert_allclose(np.linalg.norm(week, axis=1), APART / 2 / np.sqrt(2), rtol=1e-6)


def test_no_column_outweighs_another_by_the_number_of_its_features():
    days = np.arange(0, 730.485, 0.25)  # two years, by quarters of a day
    frame = pd.DataFrame({
        "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D"),
        "plan": [*"abcdefgh"] * (len(days) // 8) + ["a"] * (len(days) % 8),
        "member": [i % 3 == 0 for i in range(len(days))],
    })  # fmt: skip
    preparation = TablePreparation().fit(frame)
    X = pd.DataFrame(preparation.transform(frame), columns=preparation.get_feature_names_out())
    waves = [name for name in X if name.endswith((" sin", " cos"))]
    assert len(waves) == 6
    for names in (waves, [name for name in X if name.startswith("plan=")], ["member"]):
        assert pdist(X[names][::7]).max() == pytest.approx(APART, rel=0.01)


@pytest.mark.parametrize(
    ("written", "day"),
    [
        (["2024-01-02", "2024-03-31"], 90 - 1),
        (["2024-01-02T10:00:00Z", "2024-03-31 10:00+00:00"], 90 - 1),
        (["02.01.2024", "31.03.2024"], 90 - 1),
        (["02/01/2024", "31/03/2024"], 90 - 1),
        (["01/02/2024", "03/31/2024"], 90 - 1),
        (["2024/01/02 12:30", "2024/03/31 12:30"], 90 - 1),
        (["02.01.24", "31.03.24"], 90 - 1),
        (["1/2/24 1:30 PM", "3/31/24 1:30 PM"], 90 - 1),
        (["2 Jan 2024", "31 Mar 2024"], 90 - 1),
        (["02-JAN-24", "31-MAR-24"], 90 - 1),
        (["January 2, 2024", "March 31, 2024"], 90 - 1),
        (["2024-01", "2024-03"], 60),
    ],
)
def test_dates_are_read_in_the_forms_that_people_write(written, day):
    frame = pd.DataFrame({"when": written * 3})
    (column,) = TablePreparation().fit(frame).table_.columns
    assert column.kind == "date"
    assert column.scale == pytest.approx(day)


@pytest.mark.parametrize("of", [int, str, lambda day: f"{day}.0"], ids=["int", "text", "float"])
def test_dates_of_eight_digits_are_no_numbers(of):
    days = [20231231, 20240101, 20240229, 20240301]
    frame = pd.DataFrame({"when": [of(day) for day in days] * 2, "kind": [*"abcabcab"]})
    preparation = TablePreparation().fit(frame)
    assert kinds(preparation) == {"when": "date", "kind": "category"}
    found = decoded(preparation.table_, preparation.transform(frame))["when"]
    assert np.diff(found[:4]).astype(int).tolist() == [1, 59, 1]
    numbers = frame.assign(when=[20231231, 20240101, 20240230, 20240301] * 2)
    assert kinds(TablePreparation().fit(numbers))["when"] == "number"


def test_times_of_day_go_round():
    hours = pd.date_range("2024-01-01", periods=96, freq="15min")
    for written in (hours.strftime("%H:%M"), hours.strftime("%H:%M:%S"), hours.time):
        preparation = TablePreparation().fit(pd.DataFrame({"at": written}))
        assert list(preparation.get_feature_names_out()) == ["at", "at day sin", "at day cos"]
        waves = preparation.transform(pd.DataFrame({"at": written}))[:, 1:]
        steps = np.linalg.norm(waves - np.roll(waves, 1, axis=0), axis=1)
        np.testing.assert_allclose(steps, steps[0], rtol=1e-4)
    scores = TablePreparation().fit(pd.DataFrame({"result": ["3:2", "0:1", "1:1"] * 5}))
    assert kinds(scores) == {"result": "category"}


def test_numbers_declared_as_categories_are_categories(tmp_path):
    codes = np.array([10, 20, 30] * 8)
    plain = pd.DataFrame({"code": codes, "x": np.linspace(0, 1, 24)})
    declared = plain.astype({"code": "category"})
    shown = plain.assign(code=codes.astype(str))
    frames = (
        declared,
        pl.from_pandas(shown).with_columns(pl.col("code").cast(pl.Categorical)),
        pl.from_pandas(shown).with_columns(pl.col("code").cast(pl.Categorical)).to_arrow(),
    )
    for frame in frames:
        preparation = TablePreparation().fit(frame)
        assert kinds(preparation) == {"code": "category", "x": "number"}
        np.testing.assert_array_equal(preparation.transform(plain), preparation.transform(frame))
    declared.to_parquet(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").feature_names[:3] == ("code=10", "code=20", "code=30")


def test_integers_of_128_bits_are_numbers():
    frame = pl.DataFrame({"x": pl.Series([1, 2, 4], dtype=pl.Int128), "k": ["a", "b", "a"]})
    assert kinds(TablePreparation().fit(frame))["x"] == "number"


def test_rare_values_share_a_feature_and_new_ones_join_them(frame):
    values = ["a"] * 200 + ["b"] * 100 + ["c", "d", "e"]
    preparation = TablePreparation().fit(pd.DataFrame({"k": values}))
    assert list(preparation.get_feature_names_out()) == ["k=a", "k=b", "k=(rare)"]
    with pytest.warns(SelfViewWarning, match="column 'k' has new values in 1 row"):
        X = preparation.transform(pd.DataFrame({"k": ["c", "a", "zzz"]}))
    assert (X > 0).tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]


def test_units_bring_features_back_to_those_of_the_columns(frame):
    preparation = TablePreparation().fit(frame)
    names, units = list(preparation.get_feature_names_out()), np.array(preparation.table_.units)
    X = preparation.transform(frame) * units
    np.testing.assert_allclose(X[:, names.index("plan=pro")], frame["plan"] == "pro", rtol=1e-6)
    np.testing.assert_allclose(X[:, names.index("member")], frame["member"], rtol=1e-6)
    np.testing.assert_allclose(X[:, names.index("age missing")], frame["age"].isna(), rtol=1e-6)
    week = X[:, [names.index("joined week sin"), names.index("joined week cos")]]
    np.testing.assert_allclose(np.linalg.norm(week, axis=1), 1, rtol=1e-6)


def test_many_values_become_how_frequent_they_are():
    values = [f"v{i}" for i in range(80) for _ in range(i % 5 + 1)]
    preparation = TablePreparation().fit(pd.DataFrame({"k": values}))
    assert list(preparation.get_feature_names_out()) == ["k frequency"]
    X = preparation.transform(pd.DataFrame({"k": ["v4", "v3", "v0", "v5"]}))[:, 0]
    assert X[0] > X[1] > X[2] == X[3]
    assert X[0] - X[2] < np.log10(5)  # ten times as frequent would be 1 apart


FRAMES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "Arrow": lambda frame: pl.from_pandas(frame).to_arrow(),
    "nullable pandas": lambda frame: frame.convert_dtypes(),
    "texts of pandas 3": lambda frame: frame.astype(
        {name: pd.StringDtype(na_value=np.nan) for name in ("customer", "city", "plan", "street")}
    ),
    "categories": lambda frame: frame.astype({"city": "category", "plan": "category"}),
    "other columns first": lambda frame: frame[sorted(frame.columns)],
}


@pytest.mark.parametrize("of", FRAMES.values(), ids=FRAMES)
def test_frames_of_all_libraries_give_the_same_rows(of, frame):
    preparation = TablePreparation().fit(frame)
    np.testing.assert_array_equal(preparation.transform(of(frame)), preparation.transform(frame))
    own = TablePreparation().fit(of(frame))
    assert sorted(own.get_feature_names_out()) == sorted(preparation.get_feature_names_out())
    if list(own.feature_names_in_) == list(frame.columns):
        np.testing.assert_array_equal(own.transform(of(frame)), preparation.transform(frame))


def test_text_that_holds_numbers_and_dates_is_read_as_such(frame, tmp_path):
    frame.to_csv(tmp_path / "people.csv", index=False)
    texts = pd.read_csv(tmp_path / "people.csv", dtype=str, keep_default_na=False)
    expected, found = TablePreparation().fit(frame), TablePreparation().fit(texts)
    assert kinds(found) == kinds(expected)
    np.testing.assert_allclose(found.transform(texts), expected.transform(frame), atol=1e-6)


def test_numbers_alone_are_taken_as_they_are_constant_columns_too():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 4)) * [1, 1e3, 1e-3, 0], columns=list("abcd"))
    frame["yes"] = rng.random(30) < 0.5
    preparation = TablePreparation().fit(frame)
    expected = frame.astype(np.float32).to_numpy()
    np.testing.assert_array_equal(preparation.transform(frame), expected)
    assert {decision.what for decision in preparation.decisions_} == {"as it is"}


def test_an_id_is_left_out_of_numbers_alone():
    frame = pd.DataFrame({"customer_id": [7, 3, 9], "a": [1.0, 2.0, 4.0], "b": [0.0, 1.0, 1.0]})
    X = TablePreparation().fit_transform(frame)
    np.testing.assert_array_equal(X, frame[["a", "b"]].to_numpy())


def test_new_values_gaps_missing_and_further_columns_are_told(frame):
    preparation = TablePreparation().fit(frame)
    new = frame.head(3).drop(columns=["age"]).assign(extra=1)
    new["plan"] = ["basic", "gold", "gold"]
    new["income"] = [1e4, None, 2e4]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        X = preparation.transform(new)
    assert {w.category for w in caught} == {SelfViewWarning}
    assert [str(w.message) for w in caught] == [
        "column 'age' is missing: filled as gaps are",
        "column 'extra' is new: left out",
        "column 'plan' has new values in 2 rows",
        "column 'income' has gaps, unlike at the fit, in 1 row",
    ]
    names = list(preparation.get_feature_names_out())
    assert (X[:, names.index("age missing")] > 0).all()
    plans = [names.index("plan=basic"), names.index("plan=pro")]
    assert (X[:, plans] > 0).sum(axis=1).tolist() == [1, 0, 0]


def test_a_column_of_the_fit_must_be_there(frame):
    preparation = TablePreparation().fit(frame)
    with pytest.raises(InputError, match="X must have columns of the fit, got none of 'customer'"):
        preparation.transform(pd.DataFrame({"other": [1.0, 2.0]}))


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"columns": ["age", "city"]}, {"age": "number", "city": "category"}),
        ({"drop": ["age"]}, {"age": "left out"}),
        ({"categorical": ["row"]}, {"row": "frequency"}),
        ({"categorical": ["member"]}, {"member": "category"}),
        ({"numeric": ["row"]}, {"row": "number"}),
    ],
)
def test_the_user_decides_otherwise(choice, expected, frame):
    found = kinds(TablePreparation(**choice).fit(frame))
    assert {name: found[name] for name in expected} == expected
    if "columns" in choice:
        assert {kind for name, kind in found.items() if name not in expected} == {"left out"}


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"drop": ["height"]}, "drop must name columns of the table, got 'height'; it has 'cust"),
        ({"numeric": "age"}, "numeric must be a list of column names, got 'age'"),
        ({"numeric": ["age"], "categorical": ["age"]}, "'age' can't be in both categorical and"),
        ({"columns": ["country"]}, r"no column is left to learn from \('country': constant: DE\)"),
    ],
)
def test_a_choice_that_can_not_be_is_an_error(choice, words, frame):
    with pytest.raises(InputError, match=words):
        TablePreparation(**choice).fit(frame)


def test_a_word_among_numbers_is_an_error_with_the_remedy_and_a_gap_if_wished():
    frame = pd.DataFrame({"x": ["1", "2", "oops", "4"], "k": list("abab")})
    with pytest.raises(InputError, match=r"column 'x' .* got 'oops' in row 2; numeric=\["):
        TablePreparation().fit(frame)
    preparation = TablePreparation(numeric=["x"]).fit(frame)
    assert (preparation.transform(frame)[:, 1] > 0).tolist() == [0, 0, 1, 0]


def test_an_infinite_number_is_an_error():
    frame = pd.DataFrame({"x": [1.0, 2.0, np.inf, 4.0], "k": list("abab")})
    with pytest.raises(InputError, match=r"column 'x' .* got 'inf' in row 2"):
        TablePreparation().fit(frame)


def test_columns_called_the_same_are_refused():
    frame = pd.DataFrame([[1.0, "a"], [2.0, "b"]], columns=["x", "x"])
    with pytest.raises(InputError, match="more than one column called 'x'"):
        TablePreparation().fit(frame)


def test_what_was_learned_goes_through_json(frame):
    preparation = TablePreparation().fit(frame)
    text = json.dumps(preparation.table_.to_json(), allow_nan=False)
    table = Table.from_json(json.loads(text))
    assert table == preparation.table_
    again = TablePreparation.from_table(table)
    np.testing.assert_array_equal(again.transform(frame), preparation.transform(frame))


@pytest.mark.parametrize(
    ("column", "field", "value"),
    [
        (2, "kind", "pickle"),
        (2, "scale", 0.0),
        (2, "scale", float("nan")),
        (2, "centre", "1"),
        (4, "values", [1, 2]),
        (4, "values", ["Ulm", "Ulm", "Bonn"]),
        (7, "log_shares", [0.0]),
        (8, "form", "%c"),
        (8, "cycles", ["moon"]),
        (2, "name", "income"),
        (2, "gaps", 1),
        (2, "further", 1),
    ],
)
def test_a_damaged_description_is_refused(column, field, value, frame):
    saved = json.loads(json.dumps(TablePreparation().fit(frame).table_.to_json()))
    saved["columns"][column][field] = value
    with pytest.raises((ValueError, KeyError, TypeError)):
        Table.from_json(saved)


def test_rows_do_not_depend_on_the_rows_beside_them():
    frame, new = people(seed=0), people(seed=1)
    preparation = TablePreparation().fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelfViewWarning)
        whole = preparation.transform(new)
        parts = [preparation.transform(new.iloc[i : i + 17]) for i in range(0, len(new), 17)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_features_are_decoded_to_the_values_that_they_were_made_of(frame):
    frame["paid"] = [None if i % 11 == 0 else i % 2 == 0 for i in range(len(frame))]
    frame.loc[5, "joined"] = None
    preparation = TablePreparation().fit(frame)
    found = decoded(preparation.table_, preparation.transform(frame))
    assert [*found] == [column.name for column in preparation.table_.used]
    np.testing.assert_allclose(found["age"], frame["age"], rtol=1e-6)
    np.testing.assert_allclose(found["income"], frame["income"], rtol=1e-3)
    assert found["city"].tolist() == frame["city"].fillna("(missing)").tolist()
    assert found["member"].tolist() == ["true" if v else "false" for v in frame["member"]]
    paid = ["(missing)" if v is None else str(v).lower() for v in frame["paid"]]
    assert found["paid"].tolist() == paid
    np.testing.assert_array_equal(found["joined"], frame["joined"].to_numpy())
    np.testing.assert_allclose(found["street"], 1 / 60, rtol=1e-4)


def test_rare_and_new_values_are_decoded_as_such():
    cities = pd.DataFrame({"city": ["Ulm"] * 150 + ["Bonn"] * 148 + ["Hof", "Jena"]})
    some = pd.DataFrame({"city": ["Hof", "Ulm"]})
    preparation = TablePreparation().fit(cities)
    found = decoded(preparation.table_, preparation.transform(some))
    assert found["city"].tolist() == ["(rare)", "Ulm"]
    without = TablePreparation().fit(cities[:298])
    with pytest.warns(match="new values in 1 row"):
        rows = without.transform(some)
    assert decoded(without.table_, rows)["city"].tolist() == ["(new)", "Ulm"]


def test_amounts_as_spreadsheets_show_them_are_numbers():
    shown = {
        "price": [f"€{1000 * i + 0.5:,.2f}" for i in range(60)],
        "share": [f"{i % 50} %" for i in range(60)],
        "debt": [f"-${i}" for i in range(60)],
        "part": [f"P{i:03}" for i in range(60)],
    }
    preparation = TablePreparation().fit(pd.DataFrame(shown))
    assert kinds(preparation) == dict(
        price="number", share="number", debt="number", part="left out"
    )
    found = decoded(preparation.table_, preparation.transform(pd.DataFrame(shown)))
    np.testing.assert_allclose(found["price"], 1000 * np.arange(60) + 0.5, rtol=1e-5)
    np.testing.assert_allclose(found["share"], np.arange(60) % 50, atol=1e-4)
    np.testing.assert_allclose(found["debt"], -np.arange(60), atol=1e-4)
