"""Mixed tables in files: learned as their frames are, new files of other columns and values."""

import json

import numpy as np
import pandas as pd
import polars
import pytest
from mixed_tables import people

from selfview import InputError, SelfView, TablePreparation
from selfview.data import guard, load_preparation, mixed, read
from selfview.errors import FileFormatError

WRITERS = {
    "a.csv": lambda frame, path: frame.to_csv(path, index=False),
    "a.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "a.parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "a.xlsx": lambda frame, path: frame.to_excel(path, index=False),
    "a.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "a.tsv.gz": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "a.feather": lambda frame, path: frame.to_feather(path),
    "a.json": lambda frame, path: frame.to_json(path, orient="records", date_format="iso"),
    "lines.json": lambda frame, path: frame.to_json(
        path, orient="records", lines=True, date_format="iso"
    ),
    "polars.feather": lambda frame, path: polars.from_pandas(frame).write_ipc(path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_gives_the_rows_of_its_frame(name, frame, tmp_path):
    WRITERS[name](frame, tmp_path / name)
    dataset = read(tmp_path / name)
    expected = TablePreparation().fit(frame)
    assert dataset.feature_names == tuple(expected.get_feature_names_out())
    np.testing.assert_allclose(dataset.X, expected.transform(frame), atol=1e-5)
    assert dataset.ids.tolist() == frame["customer"].tolist()
    assert str(dataset.preparation.decisions) == str(expected.decisions_)


@pytest.mark.parametrize("name", WRITERS)
def test_a_saved_preparation_reads_new_files_of_any_kind(name, frame, tmp_path):
    frame.to_csv(tmp_path / "fit.csv", index=False)
    fitted = read(tmp_path / "fit.csv", label="plan")
    fitted.preparation.save(tmp_path / "run")
    how = load_preparation(tmp_path / "run")
    assert how == fitted.preparation
    new = frame.head(20)
    WRITERS[name](new, tmp_path / name)
    again = how.read(tmp_path / name)
    np.testing.assert_allclose(again.X, fitted.X[:20], atol=1e-5)
    assert again.messages == ()


def test_new_values_missing_and_further_columns_are_told(frame, tmp_path):
    frame.to_csv(tmp_path / "fit.csv", index=False)
    fitted = read(tmp_path / "fit.csv")
    new = frame.drop(columns=["age", "customer"]).assign(weather="rain").iloc[:, ::-1]
    new.loc[3, "plan"] = "gold"
    new.to_csv(tmp_path / "new.csv", index=False)
    dataset = fitted.preparation.read(tmp_path / "new.csv")
    assert [message.partition(": ")[2] for message in dataset.messages] == [
        "column 'age' is missing: filled as gaps are",
        "column 'weather' is new: left out",
        "column 'plan' has new values in 1 row",
    ]
    age = [fitted.feature_names.index(name) for name in ("age", "age missing")]
    assert ((dataset.X[:, age] > 0) == [0, 1]).all()


def test_columns_are_chosen_and_taken_for_something_else(frame, tmp_path):
    frame["floor"] = np.arange(len(frame)) % 4
    frame.to_csv(tmp_path / "a.csv", index=False)
    dataset = read(tmp_path / "a.csv", columns="age, floor", categorical="floor")
    assert dataset.feature_names == ("age", "age missing", *(f"floor={i}" for i in range(4)))
    assert "age" not in " ".join(read(tmp_path / "a.csv", drop=["age"]).feature_names)
    with pytest.raises(InputError, match=r"a\.csv: numeric must name columns.*got 'flor'"):
        read(tmp_path / "a.csv", numeric=["flor"])


def test_words_among_numbers_are_named_or_taken_for_gaps(tmp_path):
    lines = [f"{i / 7},{'ab'[i % 2]}" for i in range(50)]
    lines[20] = "n.d.,a"
    (tmp_path / "a.csv").write_text("\n".join(["x,k", *lines]) + "\n")
    with pytest.raises(FileFormatError, match=r"line 22: column 'x': 'n\.d\.' is not a number"):
        read(tmp_path / "a.csv")
    dataset = read(tmp_path / "a.csv", numeric="x")
    assert np.flatnonzero(dataset.X[:, 1]).tolist() == [20]
    # So many words are no mistakes.
    lines[::5] = ["ground,a"] * 10
    floors = [line.replace(line.split(",")[0], str(i % 4)) for i, line in enumerate(lines)]
    floors[::5] = ["ground,a"] * 10
    (tmp_path / "b.csv").write_text("\n".join(["x,k", *floors]) + "\n")
    assert "x=ground" in read(tmp_path / "b.csv").feature_names


def test_numbers_with_an_id_are_taken_as_they_are(tmp_path):
    frame = pd.DataFrame({"customer_id": [11, 7, 5, 8], "a": [1.0, 2, 3, 4], "b": [0.5, 0, 1, 7]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    dataset = read(tmp_path / "a.csv")
    np.testing.assert_array_equal(dataset.X, frame[["a", "b"]])
    assert dataset.ids.tolist() == ["11", "7", "5", "8"]
    assert "customer_id  left out" in str(dataset.preparation.decisions)


def test_a_gap_after_thousands_of_plain_rows_makes_a_mixed_table(tmp_path):
    X = np.random.default_rng(0).normal(size=(6000, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame.loc[5500, "b"] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    dataset = read(tmp_path / "a.csv")
    assert dataset.feature_names == ("a", "b", "b missing")
    assert np.flatnonzero(dataset.X[:, 2]).tolist() == [5500]


def test_a_large_table_is_learned_from_a_sample_and_mapped(tmp_path, monkeypatch):
    monkeypatch.setenv("SELFVIEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(mixed, "SAMPLE_ROWS", 1500)
    monkeypatch.setattr(guard, "IN_MEMORY", 2**16)
    frame = people(9000)
    frame.to_csv(tmp_path / "a.csv", index=False)
    dataset = read(tmp_path / "a.csv")
    whole = TablePreparation().fit(frame)
    kinds = {d.column: d.kind for d in dataset.preparation.decisions}
    assert kinds == {d.column: d.kind for d in whole.decisions_}
    assert isinstance(dataset.X, np.memmap)
    age = dataset.feature_names.index("age")
    expected = whole.transform(frame)[:, list(whole.get_feature_names_out()).index("age")]
    np.testing.assert_allclose(dataset.X[:, age], expected, atol=0.1)
    new = frame.assign(plan="gold")
    new.to_csv(tmp_path / "b.csv", index=False)
    for _ in range(2):  # made, then read from the cache: told both times
        (message,) = dataset.preparation.read(tmp_path / "b.csv").messages
        assert message.endswith("column 'plan' has new values in 9,000 rows")


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields.update(table=7),
        lambda fields: fields.update(table={"as_is": True, "columns": []}),
        lambda fields: fields.update(columns=["a"]),
        lambda fields: fields["table"]["columns"][2].update(kind="os.system"),
        lambda fields: fields["table"]["columns"][2].update(scale=0),
        lambda fields: fields["table"].update(as_is=True),
    ],
)
def test_a_preparation_that_lies_is_refused(change, frame, tmp_path):
    frame.to_csv(tmp_path / "a.csv", index=False)
    read(tmp_path / "a.csv").preparation.save(tmp_path)
    path = tmp_path / "preparation.json"
    content = json.loads(path.read_text())
    change(content["fields"])
    path.write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match=r"preparation\.json"):
        load_preparation(tmp_path)


@pytest.mark.filterwarnings("ignore::selfview.CollapseWarning")
def test_a_model_saved_from_python_reads_files_by_its_table(frame, tmp_path):
    from selfview.cli.run_folder import load_run

    model = SelfView(3, epochs=1, random_state=0, verbose=0).fit(frame)
    model.save(tmp_path / "model")
    frame.to_csv(tmp_path / "new.csv", index=False)
    loaded, how = load_run(tmp_path / "model")
    dataset = read(tmp_path / "new.csv", preparation=how)
    from selfview.rows.conversion import as_rows

    Z = loaded.transform(as_rows(dataset.X))
    np.testing.assert_allclose(Z, model.transform(frame), atol=1e-4)


@pytest.mark.filterwarnings("ignore::selfview.CollapseWarning")
def test_the_command_line_takes_choices_and_repeats_them(frame, tmp_path, monkeypatch, capsys):
    import sys

    from selfview.cli import main

    monkeypatch.chdir(tmp_path)
    frame.to_csv("people.csv", index=False)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["selfview", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        return capsys.readouterr().out

    chosen = ("--drop", "joined,street", "--categorical", "member", "--numeric", "row")
    told = call("fit", "people.csv", *chosen, "--epochs", "1", "-q", "--no-report", "--out", "run")
    lines = {line.split()[0]: line for line in told.splitlines() if line}
    assert lines["joined"].endswith("dropped")
    assert "category" in lines["member"]
    assert "number" in lines["row"]
    again = call("fit", "--config", "run/config.json", "-q", "--no-report", "--out", "again")
    assert again.splitlines()[:13] == told.splitlines()[:13]
    made, repeated = (tmp_path / run / "preparation.json" for run in ("run", "again"))
    assert made.read_bytes() == repeated.read_bytes()
    one, two = (SelfView.load(run).encoder_.state_dict() for run in ("run", "again"))
    assert all((one[name] == two[name]).all() for name in one)


def test_names_of_rows_take_no_more_than_their_array(frame, tmp_path, monkeypatch):
    frame.to_csv(tmp_path / "a.csv", index=False)
    few = read(tmp_path / "a.csv", label="plan", groups="city")
    monkeypatch.setattr(guard, "IN_MEMORY", 0)
    monkeypatch.setenv("SELFVIEW_CACHE", str(tmp_path / "cache"))
    for _ in range(2):  # written to the cache, then found there
        many = read(tmp_path / "a.csv", label="plan", groups="city")
        assert isinstance(many.X, np.memmap)
        for one, other in ((few.ids, many.ids), (few.groups, many.groups), (few.y, many.y)):
            assert other.dtype == one.dtype
            assert other.tolist() == one.tolist()
    (facts,) = (tmp_path / "cache").rglob("facts.json")
    assert few.ids[0] not in facts.read_text()  # as JSON they took three times as much
