"""Texts and vectors in a column of a table, texts in the lines of a .txt file."""

import json

import numpy as np
import pandas as pd
import pytest

from selfview import InputError
from selfview.data import load_preparation, read
from selfview.errors import FileFormatError

WORDS = ("apple pear plum fruit", "wheel car road engine", "river lake sea boat")
TEXTS = [" ".join(np.random.default_rng(i).permutation(WORDS[i % 3].split())) for i in range(30)]
TABLE = pd.DataFrame({"name": [f"t{i}" for i in range(30)], "body": TEXTS, "n": range(30)})
WRITERS = {
    "a.csv": lambda frame, path: frame.to_csv(path, index=False),
    "a.parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "a.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "a.feather": lambda frame, path: frame.to_feather(path),
    "a.json": lambda frame, path: frame.to_json(path, orient="records"),
}


def jsonl(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def there_and_back(dataset, folder):
    dataset.preparation.save(folder)
    how = load_preparation(folder)
    assert how == dataset.preparation
    return how


@pytest.mark.parametrize("name", WRITERS)
def test_texts_in_a_column_are_those_of_a_jsonl_file(name, tmp_path):
    WRITERS[name](TABLE, tmp_path / name)
    dataset = read(tmp_path / name, text="body", id="name", label="n")
    same = read(jsonl(tmp_path / "a.jsonl", [{"text": text} for text in TEXTS]))
    np.testing.assert_array_equal(dataset.X.toarray(), same.X.toarray())
    assert dataset.feature_names == same.feature_names
    assert dataset.ids.tolist() == TABLE["name"].tolist()
    assert dataset.snippets[0] == TEXTS[0]
    how = there_and_back(dataset, tmp_path / "run")
    again = how.read(tmp_path / name)
    np.testing.assert_array_equal(again.X.toarray(), dataset.X.toarray())
    assert again.ids.tolist() == TABLE["name"].tolist()


def test_a_txt_file_holds_a_text_a_line(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join([*TEXTS[:10], "", *TEXTS[10:]]) + "\n")
    dataset = read(tmp_path / "a.txt")
    same = read(jsonl(tmp_path / "a.jsonl", [{"text": text} for text in TEXTS]))
    np.testing.assert_array_equal(dataset.X.toarray(), same.X.toarray())
    assert dataset.ids[[9, 10]].tolist() == ["line 10", "line 12"]
    how = there_and_back(dataset, tmp_path / "run")
    (tmp_path / "new.txt").write_text("apple pear\nriver boat\n")
    assert len(how.read(tmp_path / "new.txt")) == 2


def test_a_file_of_a_fit_on_a_folder_is_one_text(tmp_path):
    (tmp_path / "folder").mkdir()
    for i, text in enumerate(TEXTS):
        (tmp_path / "folder" / f"{i:02d}.txt").write_text(text.replace(" ", "\n"))
    dataset = read(tmp_path / "folder")
    assert len(dataset) == 30
    how = there_and_back(dataset, tmp_path / "run")
    assert len(how.read(tmp_path / "folder" / "03.txt")) == 1


def test_a_txt_file_of_numbers_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("1 2 3\n4 5 6\n7 8 9\n")
    with pytest.raises(InputError, match="holds numbers, not a text"):
        read(tmp_path / "a.txt")


def test_empty_texts_are_named_and_other_columns_refused(tmp_path):
    frame = TABLE.assign(body=[None, *TEXTS[1:]])
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(FileFormatError, match="line 2: 'body' is empty"):
        read(tmp_path / "a.csv", text="body")
    assert len(read(tmp_path / "a.csv", text="body", skip_bad=True)) == 29
    with pytest.raises(InputError, match=r"has no column 'bdy' for text.*did you mean 'body'"):
        read(tmp_path / "a.csv", text="bdy")
    with pytest.raises(InputError, match="with text or vector no other column is used, got 'n'"):
        read(tmp_path / "a.csv", text="body", columns="n")
    with pytest.raises(InputError, match="vocabulary is for texts: name their column with --text"):
        read(tmp_path / "a.csv", vocabulary=5)


VECTORS = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)


def write_vectors(path, vectors=None):
    vectors = VECTORS.tolist() if vectors is None else vectors
    frame = pd.DataFrame(
        {"id": [f"v{i}" for i in range(40)], "embedding": vectors, "kind": ["a", "b"] * 20}
    )
    if path.suffix == ".jsonl":
        return jsonl(path, frame.to_dict("records"))
    if path.suffix == ".json":
        frame.to_json(path, orient="records")
    elif path.suffix == ".feather":
        frame.to_feather(path)
    else:
        frame.to_parquet(path, index=False)
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.jsonl", "a.json"])
def test_vectors_in_a_column_are_rows(name, tmp_path):
    path = write_vectors(tmp_path / name)
    dataset = read(path, vector="embedding", id="id", label="kind")
    np.testing.assert_array_equal(dataset.X, VECTORS)
    assert dataset.ids[3] == "v3"
    assert dataset.classes == ("a", "b")
    how = there_and_back(dataset, tmp_path / "run")
    other = "a.jsonl" if name == "a.parquet" else "a.parquet"
    again = how.read(write_vectors(tmp_path / other))
    np.testing.assert_array_equal(again.X, VECTORS)
    assert again.ids.tolist() == dataset.ids.tolist()


def test_lists_of_fixed_size_and_half_precision_are_vectors(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = pa.array(VECTORS.astype(np.float16).ravel())
    pq.write_table(
        pa.table({"v": pa.FixedSizeListArray.from_arrays(flat, 6)}), tmp_path / "a.parquet"
    )
    np.testing.assert_array_equal(read(tmp_path / "a.parquet", vector="v").X, VECTORS.astype("f2"))


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.jsonl", "a.json"])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([1.0, 2.0], "has 2 numbers instead of 6"),
        (None, "is missing"),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 1e300], "not finite"),
    ],
)
def test_a_vector_that_can_not_be_a_row_is_named(name, wrong, words, tmp_path):
    vectors = VECTORS.tolist()
    vectors[7] = wrong
    path = write_vectors(tmp_path / name, vectors)
    place = {"a.jsonl": "line 8", "a.json": "record 8"}.get(name, "row 7")
    with pytest.raises(FileFormatError, match=f"{place}: 'embedding' .*{words}"):
        read(path, vector="embedding")
    assert len(read(path, vector="embedding", skip_bad=True)) == 39


def test_what_is_no_vector_is_refused_in_words(tmp_path):
    path = write_vectors(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="'kind' must hold lists of numbers, got "):
        read(path, vector="kind")
    with pytest.raises(InputError, match="did you mean 'embedding'"):
        read(path, vector="embeding")
    with pytest.raises(FileFormatError, match="no line has a list of numbers in the field 'kind'"):
        read(write_vectors(tmp_path / "a.jsonl"), vector="kind")
    TABLE.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(
        InputError, match=r"vectors are read from \.parquet, \.feather, \.jsonl, \.json"
    ):
        read(tmp_path / "a.csv", vector="body")
    assert "vectors are read with --vector" in str(
        read(path.parent / "a.parquet").preparation.decisions
    )


def test_a_file_of_vectors_without_the_option_is_told_how_it_is_read(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", [{"id": 1, "embedding": [0.5, 1.0]}] * 3)
    with pytest.raises(InputError, match="vectors are read with --vector"):
        read(path)
    with pytest.raises(InputError, match=r"columns 'id', 'embedding'; did you mean 'emb"):
        read(path, vector="embeding")


def test_json_lines_without_texts_are_a_table(tmp_path, rng):
    numbers, kinds = rng.normal(size=(60, 2)), rng.choice(["a", "b"], 60)
    lines = [
        {"id": f"r{i}", "x": x, "late": y, "kind": kind, "tags": ["t"], "what": "w"}
        for i, ((x, y), kind) in enumerate(zip(numbers, kinds, strict=True))
    ]
    del lines[0]["late"]
    pd.DataFrame(lines).drop(columns="tags").to_csv(tmp_path / "a.csv", index=False)
    dataset, same = read(jsonl(tmp_path / "a.jsonl", lines)), read(tmp_path / "a.csv")
    np.testing.assert_allclose(dataset.X, same.X, rtol=1e-5)
    assert dataset.ids.tolist() == same.ids.tolist()
    # A new file may lack fields, and have them in another order; text beside --numeric is a column.
    new = jsonl(tmp_path / "new.jsonl", [{"kind": "b", "x": 1.5}])
    assert dataset.preparation.read(new).X.shape == (1, dataset.X.shape[1])
    texts = jsonl(
        tmp_path / "b.jsonl", [{"text": kind, "x": i % 7} for i, kind in enumerate(kinds)]
    )
    assert read(texts, categorical="text").X.shape == (60, 3)


def test_whole_numbers_of_json_may_be_longer_than_64_bits(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", [{"n": i * 10**20, "m": i} for i in (1, 2, 4, 4)])
    assert np.isfinite(read(path, numeric="n,m").X).all()
