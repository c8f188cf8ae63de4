import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from selfview import evaluate
from selfview.cli import app
from selfview.cli.evaluate import PRINTED
from selfview.errors import SelfViewError, SelfViewWarning


@pytest.fixture
def files(tmp_path, blobs, monkeypatch):
    Z, y = blobs
    monkeypatch.chdir(tmp_path)
    np.save("z.npy", Z)
    np.savez("z.npz", Z=Z)
    np.savetxt("z.tsv", Z, delimiter="\t")
    names = [f"class {code}" for code in y]
    (tmp_path / "y.txt").write_text("\n".join(names) + "\n")
    lines = [
        ",".join(map(repr, row.tolist())) + f",{name}" for row, name in zip(Z, names, strict=True)
    ]
    (tmp_path / "table.csv").write_text("a,b,c,d,kind\n" + "\n".join(lines) + "\n")
    np.save("y.npy", y)
    (tmp_path / "split.txt").write_text("train\ntest\n" * 90)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["evaluate", *arguments, "--measures", "linear,clustering"])


@pytest.mark.parametrize(
    "call",
    [
        ("z.npy", "y.npy"), ("z.npz", "y.txt"), ("z.tsv", "y.npy"),
        ("table.csv", "--label", "kind"), ("z.npy", "table.csv", "--label", "kind"),
    ],
)  # fmt: skip
def test_every_kind_of_file_gives_the_numbers_of_the_function(files, blobs, call):
    result = run(*call, "--json", "out.json")
    assert result.exit_code == 0, result.output
    expected = evaluate(*blobs, measures=["linear", "clustering"])
    assert json.loads((files / "out.json").read_text()) == pytest.approx(expected)
    assert "k-means, NMI" in result.output


def test_scores_are_printed_by_their_titles(files, blobs):
    known = evaluate(*blobs, groups=np.arange(180) % 3)
    known |= evaluate(blobs[0], blobs[0][:, 0], measures=["regression"])
    counts = {name for name in known if name.startswith("n_") or name.endswith("_rows")}
    assert {*known} - counts == {*PRINTED, "linear_converged"}  # of which a note tells
    (files / "y.txt").write_text("a\nb\n\n" * 60)
    result = run("z.npy", "y.txt")
    assert "120 rows, 2 classes, 60 without a label\n" in result.stdout
    assert re.search(r"^linear probe, accuracy +\d+\.\d % +24$", result.stdout, re.MULTILINE)
    assert "_" not in result.stdout


def test_a_dash_is_standard_output_and_nothing_else_is_written_there(files, blobs):
    before = set(files.iterdir())
    result = run("z.npy", "y.npy", "--json", "-")
    assert result.exit_code == 0, result.output
    expected = evaluate(*blobs, measures=["linear", "clustering"])
    assert json.loads(result.stdout) == pytest.approx(expected)
    assert set(files.iterdir()) == before


def test_parquet_is_read_like_csv(files, blobs):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    Z, y = blobs
    columns = {f"f{i}": Z[:, i] for i in range(4)} | {"kind": [f"k{code}" for code in y]}
    parquet.write_table(pa.table(columns), "t.parquet")
    assert run("t.parquet", "--label", "kind").exit_code == 0


def test_words_in_an_embedding_are_an_error_that_names_options_of_this_command(files):
    Path("words.csv").write_text("a,b,kind\n1,x,k\n2,y,l\n")
    told = str(run("words.csv", "--label", "kind").exception)
    assert "column 'b': 'x' is not a number" in told
    assert "--label and --id name columns that are none" in told
    assert not {"--numeric", "--skip-bad"} & {*told.replace("(", " ").split()}


def test_tables_are_read_as_fit_reads_them(files, blobs):
    pandas = pytest.importorskip("pandas")
    Z, y = blobs
    labels = np.where(np.arange(len(y)) % 10 == 0, "", y.astype(str))
    frame = pandas.DataFrame(Z).assign(kind=labels)
    frame.to_csv("t.csv")  # its first column, without a name, only numbers the rows
    frame.to_csv("t2.csv", sep=";", decimal=",", index=False)
    known = np.where(labels == "", -1, y)
    with pytest.warns(SelfViewWarning, match="18 of 180 rows have no label"):
        expected = evaluate(Z.astype(np.float32), known, measures=["linear", "clustering"])
    for name in ("t.csv", "t2.csv"):
        result = run(name, "--label", "kind", "--json", "out.json")
        assert result.exit_code == 0, result.output
        assert "note: 18 of 180 rows have no label" in result.output
        assert json.loads((files / "out.json").read_text()) == pytest.approx(expected)


def test_labels_may_be_in_a_sheet_of_a_workbook(files, blobs):
    import pandas as pd

    with pd.ExcelWriter("labels.xlsx") as writer:
        pd.DataFrame({"kind": ["same"] * len(blobs[1])}).to_excel(writer, sheet_name="a")
        pd.DataFrame({"kind": blobs[1]}).to_excel(writer, sheet_name="b")
    named = run("z.npy", "labels.xlsx", "--sheet", "b", "--label", "kind", "--json", "-")
    assert json.loads(named.stdout) == json.loads(run("z.npy", "y.npy", "--json", "-").stdout)
    assert "'a', 'b'" in str(run("z.npy", "labels.xlsx", "--sheet", "c").exception)


def test_a_split_file_is_used(files):
    assert run("z.npy", "y.npy", "--split", "split.txt", "--json", "o.json").exit_code == 0
    assert json.loads((files / "o.json").read_text())["n_test"] == 90


def test_truth_values_and_blanks_in_a_split_file(files):
    (files / "blanks.txt").write_text("train \n test\n" * 90)
    (files / "truth.csv").write_text("held\n" + "False\nTrue\n" * 90)
    for name in ("blanks.txt", "truth.csv"):
        assert run("z.npy", "y.npy", "--split", name, "--json", "o.json").exit_code == 0
        assert json.loads((files / "o.json").read_text())["n_test"] == 90


def test_row_names_and_the_label_beside_the_features(files):
    lines = (files / "table.csv").read_text().splitlines()
    named = [f"{'name' if i == 0 else f'r{i}'},{line}" for i, line in enumerate(lines)]
    (files / "named.csv").write_text("\n".join(named) + "\n")
    assert run("named.csv", "--label", "kind", "--id", "name", "--json", "a.json").exit_code == 0
    assert run("table.csv", "table.csv", "--label", "kind", "--json", "b.json").exit_code == 0
    assert (files / "a.json").read_text() == (files / "b.json").read_text()


def test_whole_numbers_are_measurements_if_one_says_so(files, blobs):
    Z, _ = blobs
    years = np.rint(1950 + 10 * Z[:, 0]).astype(int)
    lines = [str(year) for year in years]
    lines[7] = ""
    (files / "years.csv").write_text("year\n" + "\n".join(lines) + "\n")
    call = ["evaluate", "z.npy", "years.csv", "--measures", "regression", "--json", "o.json"]
    done = CliRunner().invoke(app, [*call, "--target", "continuous"])
    assert done.exit_code == 0, done.output
    found = json.loads((files / "o.json").read_text())
    measured = years.astype(float)
    measured[7] = np.nan
    with pytest.warns(SelfViewWarning, match="1 of 180 rows have no label"):
        expected = evaluate(Z, measured, measures="regression", target="continuous")
    assert found == pytest.approx(expected)
    assert CliRunner().invoke(app, [*call, "--target", "both"]).exit_code == 2
    words = CliRunner().invoke(app, ["evaluate", "z.npy", "y.txt", "--target", "continuous"])
    assert "are no measurements" in str(words.exception)


def test_gaps_in_several_measurements(files, blobs):
    Z, _ = blobs
    rows = [f"{a},{b}" for a, b in Z[:, :2].tolist()]
    rows[3] = f",{Z[3, 1]}"
    (files / "two.csv").write_text("u,v\n" + "\n".join(rows) + "\n")
    call = ["evaluate", "z.npy", "two.csv", "--measures", "regression", "--json", "o.json"]
    assert CliRunner().invoke(app, call).exit_code == 0
    assert json.loads((files / "o.json").read_text())["n_left_out"] == 1


def test_a_wrong_call_exits_with_2(files):
    assert run("z.npy").exit_code == 2
    assert run("z.npy", "y.npy", "--seed", "-1").exit_code == 2


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (("z.npy", "y.npy", "--label", "a"), "y.npy has no named columns"),
        (("z.npy", "--label", "a"), "--label needs a table with named columns, and z.npy has none"),
        (("z.npy", "table.csv", "--label", "sort"), "no column 'sort' for label, but columns 'a'"),
        (("table.csv", "--label", "a"), "column 'kind': 'class 0' is not a number"),
        (("z.npy", "table.csv"), "column 'kind' holds no numbers; if it holds the labels, name it"),
    ],
)
def test_a_label_that_is_not_there_is_told(files, call, reason):
    result = run(*call)
    assert isinstance(result.exception, SelfViewError)
    assert reason in str(result.exception)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bad.npy", b"\x93NUMPY junk"), ("bad.npz", b"PK\x03\x04junk"), ("empty.npy", b""),
        ("bad.parquet", b"x"), ("empty.csv", b""), ("ragged.csv", b"1,2\n3\n"),
        ("zip.npy", b"PK\x05\x06" + bytes(18)), ("rows.csv.gz", b"\x1f\x8b"),
        ("binary.txt", b"\x00\x01\xff"), ("binary.csv", b"\xff\xfe\x00"),
    ],
)  # fmt: skip
def test_damaged_files_are_named_in_one_line(files, name, content):
    (files / name).write_bytes(content)
    error = run(name, "y.npy").exception
    assert isinstance(error, SelfViewError)
    assert name in str(error)
    assert "\n" not in str(error)


def test_a_pickle_is_never_loaded(files):
    np.save("evil.npy", np.array([print], dtype=object), allow_pickle=True)
    assert isinstance(run("evil.npy", "y.npy").exception, SelfViewError)
    (files / "y.npy").unlink()
    assert "no such file" in str(run("z.npy", "y.npy").exception)
