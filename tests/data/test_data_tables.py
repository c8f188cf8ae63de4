"""Tables: .csv, .tsv and .parquet, against pandas, with their bad rows named."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import samples

from selfview import InputError
from selfview.data import read
from selfview.data.tables import open_table
from selfview.errors import FileFormatError


def test_csv_with_header_id_and_label(tmp_path: Path) -> None:
    dataset = read(samples.write_csv(tmp_path / "a.csv"), id="name", label="kind")
    np.testing.assert_allclose(dataset.X, [[i, i / 3] for i in range(6)], rtol=1e-6)
    assert dataset.classes == ("x", "y")
    assert dataset.y is not None
    assert dataset.y.tolist() == [0, 1, 0, 1, 0, 1]
    assert dataset.ids is not None
    assert dataset.ids.tolist() == [f"r{i}" for i in range(6)]


def test_csv_agrees_with_pandas(tmp_path: Path) -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(5000, 7)) * 1e3, columns=[f"c,{i}" for i in range(7)])
    frame.to_csv(tmp_path / "a.csv", index=False, quoting=csv.QUOTE_MINIMAL)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "semi.csv", index=False, sep=";")
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.tsv", "semi.csv", "a.parquet"):
        X = read(tmp_path / name).X
        np.testing.assert_array_equal(X, frame.to_numpy(np.float32), err_msg=name)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("1,2\n3,4\n", False),
        ("a,b\n3,4\n", True),
        ("1.5,2,dog\n3,4,cat\n", False),
        ("x,y,kind\n3,4,cat\n", True),
        (",x\n0,4\n", True),
        ("1,2\n", False),
        ("1,,3\n1,2,3\n", False),
        ("\ufeffa,b\n3,4\n", True),
        ("nan,2\n3,4\n", False),
        ("0,1,2,3\n5,4,6,1\n", True),
        ("1,2,3,4\n5,4,6,1\n", True),
        ("1,2,3,4\n5,6,7,8\n", False),
        ("400,410,420,430,440,450,460,470\n1,2,3,2,1,2,3,2\n", True),
        ("400,410,420,430,440,450,460\n1,2,3,2,1,2,3\n", False),
    ],
)
def test_a_header_is_recognised_by_the_first_lines(text: str, header: bool, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    assert open_table(tmp_path / "a.csv", None, ()).header is header


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_the_index_of_a_frame_names_the_rows_and_is_no_feature(name: str, tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": [1.0, 5.0, 2.0, 4.0], "b": [3.0, 0.0, 1.0, 7.0]})
    frame = frame[frame["b"] > 0]
    path = tmp_path / name
    frame.to_csv(path) if name == "a.csv" else frame.to_parquet(path)
    dataset = read(path)
    np.testing.assert_array_equal(dataset.X, frame.to_numpy())
    assert dataset.ids is not None
    assert dataset.ids.tolist() == ["0", "2", "3"]
    assert dataset.preparation is not None
    without = tmp_path / f"without-{name}"
    frame = frame.reset_index(drop=True)
    frame.to_csv(without, index=False) if name == "a.csv" else frame.to_parquet(without)
    np.testing.assert_array_equal(dataset.preparation.read(without).X, frame.to_numpy())


def test_a_named_index_is_taken_for_names_too(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": [1.0, 5.0], "b": [3.0, 0.0]}, index=pd.Index(["x", "y"], name="n"))
    frame.to_parquet(tmp_path / "a.parquet")
    dataset = read(tmp_path / "a.parquet")
    assert dataset.ids is not None
    assert dataset.ids.tolist() == ["x", "y"]
    assert dataset.X.shape == (2, 2)


def test_the_nearest_name_is_offered(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'kind'"):
        read(samples.write_csv(tmp_path / "a.csv"), label="Kind")


def test_columns_without_header_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("5.1,3.5,setosa\n4.9,3.0,virginica\n")
    dataset = read(tmp_path / "a.csv", label=3)
    assert dataset.X.shape == (2, 2)
    assert dataset.classes == ("setosa", "virginica")


def test_a_header_of_numbers_can_be_declared(tmp_path: Path) -> None:
    (tmp_path / "mz.csv").write_text("100.5,200.5\n1,2\n")
    assert read(tmp_path / "mz.csv").X.shape == (2, 2)
    dataset = read(tmp_path / "mz.csv", header=True)
    assert dataset.X.tolist() == [[1, 2]]


def test_a_title_above_the_table_of_a_sheet_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Report 2024"], [], ["by us"], ["a", "b"], [1.0, 2.0], [3.0, 5.0], [4.0]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    found = read(tmp_path / "a.xlsx", numeric="b")
    assert found.feature_names == ("a", "b", "b missing")
    assert len(found) == 3
    assert "left out above the table: 'Report 2024'" in caplog.text


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_tables_are_read_in_the_encodings_of_excel(
    encoding: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.csv").write_bytes("name;größe\nMüller €;1,5\nWeiß;2,25\n".encode(encoding))
    found = read(tmp_path / "a.csv", id="name")
    assert list(found.ids) == ["Müller €", "Weiß"]
    assert found.feature_names == ("größe",)
    assert found.X.tolist() == [[1.5], [2.25]]
    assert ("read as Windows-1252" in caplog.text) == (encoding == "cp1252")


@pytest.mark.parametrize(
    "start", [b"", (b"1," + b"x" * 100_000 + b"\n") * 11], ids=["binary", "late"]
)
def test_a_table_that_is_not_utf8_is_an_error_with_the_remedy(start: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(start + b"a,b\n1,\xfc\0\n")
    with pytest.raises(FileFormatError, match="save it as UTF-8"):
        read(tmp_path / "a.csv")


def test_what_is_wrong_with_all_rows_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"body": "a text"}\n' * 9)
    with pytest.raises(FileFormatError, match="none of its 9 rows") as caught:
        read(tmp_path / "a.jsonl", text="words")
    assert str(caught.value).count("name one with --text") == 1
    assert str(caught.value).endswith("and 8 more")


BAD_TABLE = "a,b\n1,2\n3,oops\n4\n5,\n6,nan\n7,1e400\n8,9\n2,3\n6,5\n9,4\n"


def test_rows_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(BAD_TABLE)
    with pytest.raises(FileFormatError) as caught:
        read(tmp_path / "a.csv")
    message = str(caught.value)
    assert "3 of 10 rows" in message
    assert "line 3: column 'b': 'oops' is not a number" in message
    assert "line 4: 1 fields instead of 2" in message
    assert "line 7: column 'b': '1e400' is not finite" in message
    assert "--skip-bad" in message
    assert "--numeric COLUMN takes such words for gaps" in message


def test_skip_bad_leaves_them_out_and_says_how_many(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.csv").write_text(BAD_TABLE)
    dataset = read(tmp_path / "a.csv", skip_bad=True)
    assert dataset.feature_names == ("a", "b", "b missing")
    assert (dataset.X[:, 2] > 0).tolist() == [False, True, True, *[False] * 4]
    assert len(dataset.skipped) == 3
    assert "left out 3 of 10 rows" in dataset.messages[0]
    assert caplog.messages == list(dataset.messages)


def test_nulls_of_a_parquet_file_are_gaps(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"a": [1.0, None, 3.0], "n": [1, 2, 3], "kind": ["u", "v", "u"]})
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = read(tmp_path / "a.parquet", label="kind")
    assert dataset.feature_names == ("a", "a missing", "n")
    assert (dataset.X[:, 1] > 0).tolist() == [False, True, False]
    assert read(tmp_path / "a.parquet").feature_names[3:] == ("kind=u", "kind=v")


def test_columns_called_the_same_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(FileFormatError, match="more than one column called a"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (["1.200e+01", "2.000e+00", "-0.0"], ["12", "2", "0"]),  # integers by numpy.savetxt
        (["0.5", "1.0", "1.5"], ["0.5", "1.0", "1.5"]),
        (["007", "7.0", "08"], ["007", "7.0", "08"]),
        (["1e5", "2e5"], ["1e5", "2e5"]),
    ],
)
def test_labels_keep_their_names_unless_all_are_whole_and_written_as_fractions(
    written: list[str], named: list[str], tmp_path: Path
) -> None:
    rows = [f"{number},{label}" for number, label in enumerate(written * 5)]
    (tmp_path / "a.csv").write_text("\n".join(["a,kind", *rows]) + "\n")
    dataset = read(tmp_path / "a.csv", label="kind")
    assert dataset.y is not None
    assert [dataset.classes[i] for i in dataset.y] == named * 5


@pytest.mark.parametrize(
    ("written", "codes", "names"),
    [
        (["cat", "", "dog", " cat "], [0, -1, 1, 0], ("cat", "dog")),
        (["2", "", "-1", "10"], [0, -1, -1, 1], ("2", "10")),
        (["1.0", "nan", "0.0", "1.0"], [1, -1, 0, 1], ("0", "1")),
        (["0", "NA", "5", "null"], [0, -1, 1, -1], ("0", "5")),
        (["-1", "1", "1", "-1"], [0, 1, 1, 0], ("-1", "1")),
        (["-2", "-1", "0", "2"], [0, 1, 2, 3], ("-2", "-1", "0", "2")),
        (["up", "NA", "down", "nan"], [2, 0, 1, -1], ("NA", "down", "up")),
        (["", "", "", ""], None, ()),
        (["-1", "up", "down", "-1"], [0, 2, 1, 0], ("-1", "down", "up")),
    ],
)
def test_a_row_without_a_label_is_of_no_class(
    written: list[str], codes: list[int] | None, names: tuple[str, ...], tmp_path: Path
) -> None:
    rows = [f"{number},{label}" for number, label in enumerate(written)]
    (tmp_path / "a.csv").write_text("\n".join(["a,kind", *rows]) + "\n")
    dataset = read(tmp_path / "a.csv", label="kind")
    assert (None if dataset.y is None else dataset.y.tolist()) == codes
    assert dataset.classes == names
    lines = [json.dumps({"text": f"word{i}", "kind": v or None}) for i, v in enumerate(written)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    if names:
        texts = read(tmp_path / "a.jsonl", label="kind")
        assert texts.y is not None
        assert (texts.y.tolist(), texts.classes) == (codes, names)
    else:
        with pytest.raises(InputError, match="no line has a label in the field 'kind'"):
            read(tmp_path / "a.jsonl", label="kind")


def test_null_labels_of_a_parquet_file_are_none(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"a": [1.0, 2.0, 3.0], "kind": ["x", None, "y"], "number": [1.0, None, 2.0]}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    table = pa.table({name: columns[name] for name in ("a", "number")})
    parquet.write_table(table, tmp_path / "b.parquet")
    one = read(tmp_path / "b.parquet", label="number")
    assert one.y is not None
    assert (one.y.tolist(), one.classes) == ([0, -1, 1], ("1", "2"))
    table = pa.table({name: columns[name] for name in ("a", "kind")})
    parquet.write_table(table, tmp_path / "b.parquet")
    other = read(tmp_path / "b.parquet", label="kind")
    assert other.y is not None
    assert (other.y.tolist(), other.classes) == ([0, -1, 1], ("x", "y"))


@pytest.mark.parametrize("gap", ["", "NA", "nan"])
@pytest.mark.parametrize("comma", [False, True])
def test_measurements_stay_numbers(gap: str, comma: bool, tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=60)
    rows = [f"{i};{v!r}" for i, v in enumerate(values.tolist())]
    text = "\n".join(["a;height", *rows, f"60;{gap}"]) + "\n"
    (tmp_path / "a.csv").write_text(text.replace(".", ",") if comma else text)
    dataset = read(tmp_path / "a.csv", label="height")
    np.testing.assert_array_equal(dataset.y, [*values, np.nan])
    assert dataset.classes == ()
    assert dataset.n_classes == 0
    assert "classes" not in repr(dataset)


@pytest.mark.parametrize(
    "text",
    [
        "a|b\n1.5|-2\n0.25|3e1\n",
        "a;b\n1,5;-2\n0,25;3e1\n",
        "1,5;-2\n0,25;3e1\n",
        "a\tb\n1,5\t-2\n2,5e-1\t30\n",
    ],
)
def test_other_delimiters_and_decimal_commas(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    np.testing.assert_array_equal(read(tmp_path / "a.csv").X, [[1.5, -2], [0.25, 30]])


def test_a_comma_for_thousands_is_seen_by_the_decimal_point(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a;b\n1,234.5;2\n7,123.5;5\n")
    np.testing.assert_array_equal(read(tmp_path / "a.csv").X, [[1234.5, 2], [7123.5, 5]])


@pytest.mark.parametrize("text", ["a;b\n1,250;3.5\n12,400;4.5\n", "a;b\n1,250;3\n12,400;4\n"])
def test_a_comma_that_may_be_either_makes_no_number(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert read(tmp_path / "a.csv").feature_names == ("b",)
    with pytest.raises(InputError, match="no column is left"):
        read(tmp_path / "a.csv", columns="a")


def test_semicolons_and_bars_inside_of_fields(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('1,2,"x;y"\n3,4,"z;w"\n5,6,"q;r"\n7,8,"a"\n')
    dataset = read(tmp_path / "a.csv", label="3")
    assert dataset.X.shape == (4, 2)
    assert dataset.classes == ("a", "q;r", "x;y", "z;w")
    (tmp_path / "a.csv").write_text("id,a|b\n1,2|3\n2,3|4\n")
    with pytest.raises(InputError, match=r"no column is left .*'a\|b': an id"):
        read(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("a;b;c\n1;2;3\n1;2\n")
    with pytest.raises(FileFormatError, match="line 3: 2 fields instead of 3"):
        read(tmp_path / "a.csv")


def test_truth_values_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\nTrue,1\nfalse,2\n")
    np.testing.assert_array_equal(read(tmp_path / "a.csv").X, [[1, 1], [0, 2]])


def test_a_number_that_float32_can_not_hold_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1e300,1\n2,inf\n3,4\n5,6\n")
    with pytest.raises(FileFormatError, match=r"'1e300' is too large for float32.*'inf' is not"):
        read(tmp_path / "a.csv")


def test_bytes_are_labels_in_utf8(tmp_path: Path) -> None:
    labels = np.array([b"caf\xc3\xa9", b"b", b"b"])
    np.savez(tmp_path / "a.npz", X=np.eye(3), y=labels)
    assert read(tmp_path / "a.npz", label="y").classes == ("b", "café")
