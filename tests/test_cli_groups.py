"""Groups on the command line: where they are read from, and what is said of their mixing."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from selfview import InputError, SelfView, evaluate
from selfview.data import Dataset, read
from selfview.data.prepared import load_preparation
from selfview.errors import FileFormatError
from selfview.report.scores import mixing_table

N = 60


@pytest.fixture
def rows(rng):
    """Rows of three kinds, measured on two days that differ by an offset."""
    kind, day = np.arange(N) % 3, np.repeat([0, 1], N // 2)
    X = 3 * np.eye(3)[kind] @ rng.normal(size=(3, 6)) + rng.normal(size=(N, 6)) + 8 * day[:, None]
    return X.astype(np.float32), np.array([f"k{k}" for k in kind]), np.array(["mon", "tue"])[day]


@pytest.fixture
def table(tmp_path, rows):
    X, kinds, days = rows
    lines = [
        ",".join([*map(repr, x.tolist()), day, kind])
        for x, kind, day in zip(X, kinds, days, strict=True)
    ]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["a,b,c,d,e,f,day,kind", *lines]) + "\n")
    return path


def test_a_column_of_a_table_is_a_group_and_no_feature(table, rows):
    dataset = read(table, groups="day", label="kind")
    assert dataset.groups.tolist() == rows[2].tolist()
    assert dataset.preparation.columns == tuple("abcdef")
    np.testing.assert_array_equal(dataset.X, rows[0])
    assert dataset.take(np.array([0, 59])).groups.tolist() == ["mon", "tue"]


def test_an_array_of_an_npz_holds_groups_of_the_rows_that_are_kept(tmp_path, rows):
    X, _, days = rows
    X[3] = np.nan
    np.savez(tmp_path / "rows.npz", X=X, day=days)
    dataset = read(tmp_path / "rows.npz", groups="day", skip_bad=True)
    assert dataset.groups.tolist() == np.delete(days, 3).tolist()


def test_a_field_of_json_lines_holds_groups(tmp_path):
    lines = [{"text": f"word{i % 3} other", "author": i % 2} for i in range(6)]
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    assert read(path, groups="author").groups.tolist() == list("010101")
    del lines[4]["author"]
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(FileFormatError, match="line 5: has no field 'author'"):
        read(path, groups="author")


def test_group_1_of_a_files_name_is_its_group(tmp_path):
    for name in ("7_ann_0", "7_theo_0", "8_ann_1"):
        (tmp_path / f"{name}.txt").write_text(f"the words of {name.replace('_', ' ')}")
    options = {"labels_from_name": "^([0-9])_", "groups_from_name": "_([a-z]+)_"}
    dataset = read(tmp_path, **options)
    assert dataset.groups.tolist() == ["ann", "theo", "ann"]
    assert dataset.classes == ("7", "8")
    with pytest.raises(InputError, match="groups_from_name='x' needs a group"):
        read(tmp_path, groups_from_name="x")
    with pytest.raises(InputError, match=r"finds no group in '7_ann_0\.txt'"):
        read(tmp_path, groups_from_name="(zoe)")


def test_labels_are_not_taken_as_groups(table):
    with pytest.raises(InputError, match="groups must differ from label, got 'kind' for both"):
        read(table, groups="kind", label="kind")


def test_groups_that_are_not_there_are_told(table):
    with pytest.raises(InputError, match=r"no column 'Day' for groups.*did you mean 'day'"):
        read(table, groups="Day")
    with pytest.raises(InputError, match="the dataset digits has no groups 'writer'"):
        read("digits", groups="writer")


def test_a_named_dataset_is_grouped_by_its_further_labels(monkeypatch):
    further = {"speaker": np.array([1, 0, 1])}
    monkeypatch.setattr(
        "selfview.data.source.load_dataset", lambda name: Dataset(name, np.eye(3), further=further)
    )
    assert read("fsdd", groups="speaker").groups.tolist() == ["1", "0", "1"]


def test_fit_takes_the_groups_of_a_column_and_tells_how_they_mix(call, table, rows, tmp_path):
    options = ("--label", "kind", "--groups", "day", "--epochs", 2, "-q", "--no-report")
    code, out, err = call("fit", "rows.csv", *options, "--out", "run")
    assert code == 0, err
    assert "How groups mix: 2 groups, on all 60 rows." in out
    for words in ("Graph vote by group %", "iLISI", "PCA (6)", "selfview (10)"):
        assert words in out
    X, _, days = rows
    weights = load_file(tmp_path / "run" / "model.safetensors")
    same = SelfView(epochs=2, random_state=0, verbose=0).fit(X, groups=days).encoder_
    for name, tensor in same.state_dict().items():
        assert torch.equal(tensor, weights[f"encoder.{name}"]), name
    known = json.loads((tmp_path / "run" / "metrics.json").read_text())["mixing"]
    Z = SelfView.load(tmp_path / "run").transform(X)
    expected = evaluate(Z, rows[1], groups=days, measures="mixing")
    found = known["selfview (10)"]
    assert found == pytest.approx({name: expected[name] for name in found})


def test_a_run_with_groups_repeats_from_its_config(call, table, tmp_path):
    options = ("--label", "kind", "--groups", "day", "--epochs", 2, "-q", "--no-report")
    assert call("fit", "rows.csv", *options, "--out", "one")[0] == 0
    assert call("fit", "--config", "one/config.json", "-q", "--no-report", "--out", "two")[0] == 0
    one, two = (load_file(tmp_path / run / "model.safetensors") for run in ("one", "two"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    table.write_text(table.read_text().replace(",tue,", ",mon,", 1))
    _, _, err = call("fit", "--config", "one/config.json", "-q", "--no-report", "--out", "three")
    assert "have changed" in err


def test_embed_takes_new_files_with_and_without_the_column(call, table, rows, tmp_path):
    options = ("--label", "kind", "--groups", "day", "--epochs", 1, "-q", "--no-report")
    assert call("fit", "rows.csv", *options, "--out", "run")[0] == 0
    assert load_preparation(tmp_path / "run").groups == "day"
    bare = [",".join(line.split(",")[:6]) for line in table.read_text().splitlines()]
    (tmp_path / "bare.csv").write_text("\n".join(bare) + "\n")
    for source in ("rows.csv", "bare.csv"):
        assert call("embed", "run", source, "--out", f"{source}.npy")[0] == 0
    one, two = (np.load(tmp_path / f"{source}.csv.npy") for source in ("rows", "bare"))
    np.testing.assert_array_equal(one, two)


def test_a_dry_run_counts_the_groups(call, table):
    code, out, _ = call("fit", "rows.csv", "--label", "kind", "--groups", "day", "--dry-run")
    assert code == 0
    assert "60, 3 classes (for scores only), 2 groups (not to be learned)" in out


@pytest.mark.parametrize("where", ["column", "labels", "file"])
def test_evaluate_measures_the_mixing_of_groups(call, rows, tmp_path, where):
    Z, kinds, days = rows
    head = ",".join(f"selfview{i}" for i in range(6))
    lines = [",".join(map(repr, z.tolist())) for z in Z]
    beside = [f"{day},{kind}" for day, kind in zip(days, kinds, strict=True)]
    if where == "column":
        joined = [f"{line},{more}" for line, more in zip(lines, beside, strict=True)]
        (tmp_path / "z.csv").write_text("\n".join([f"{head},day,kind", *joined]))
        words = ("z.csv", "--label", "kind", "--groups", "day")
    else:
        (tmp_path / "z.csv").write_text("\n".join([head, *lines]))
        (tmp_path / "y.csv").write_text("\n".join(["day,kind", *beside]))
        (tmp_path / "days.txt").write_text("\n".join(days))
        groups = "day" if where == "labels" else "days.txt"
        words = ("z.csv", "y.csv", "--label", "kind", "--groups", groups)
    code, out, err = call("evaluate", *words, "--measures", "mixing,linear", "--json", "-")
    assert code == 0, err
    expected = evaluate(Z, kinds, groups=days, measures=["mixing", "linear"])
    assert json.loads(out) == pytest.approx(expected)


def test_evaluate_needs_no_labels_to_measure_the_mixing(call, rows, tmp_path):
    np.save(tmp_path / "z.npy", rows[0])
    (tmp_path / "days.txt").write_text("\n".join(rows[2]))
    code, out, _ = call("evaluate", "z.npy", "--groups", "days.txt", "--json", "-")
    assert code == 0
    expected = evaluate(rows[0], rows[1], groups=rows[2], measures="mixing")
    found = json.loads(out)
    assert found == pytest.approx({name: expected[name] for name in found})
    assert found["ilisi"] < 1.2  # two days far apart
    code, _, err = call("evaluate", "z.npy", "--groups", "days.txt", "--measures", "linear")
    assert code == 2
    assert "without labels" in err


def test_mixed_groups_are_told_from_groups_apart(rng):
    Z = rng.normal(size=(200, 3))
    mixed = Dataset("mixed", Z, groups=np.arange(200) % 2)
    apart = Dataset("apart", Z, groups=(Z[:, 0] > 0).astype(int))
    found = [mixing_table(dataset, Z).values["selfview (3)"] for dataset in (mixed, apart)]
    assert found[0]["ilisi"] > 1.8 > found[1]["ilisi"]
    assert found[0]["group_graph_accuracy"] < 0.7 < found[1]["group_graph_accuracy"]
    assert mixing_table(Dataset("none", Z), Z) is None
