"""New files are prepared exactly as at fit time, also by a preparation that was on disk."""

import json
from pathlib import Path

import numpy as np
import pytest
import samples

from selfview import InputError, load_dataset
from selfview.data import Dataset, Preparation, load_preparation, read
from selfview.errors import FileFormatError, SelfViewError


def there_and_back(dataset: Dataset, folder: Path) -> Preparation:
    assert dataset.preparation is not None
    dataset.preparation.save(folder)
    loaded = load_preparation(folder)
    assert loaded == dataset.preparation
    return loaded


def dense(dataset: Dataset) -> np.ndarray:
    return dataset.X if isinstance(dataset.X, np.ndarray) else dataset.X.toarray()


FILES = {
    "rows.npy": samples.write_npy,
    "rows.npz": samples.write_npz,
    "sparse.npz": samples.write_csr,
    "rows.mtx": samples.write_mtx,
    "rows.parquet": samples.write_parquet,
    "texts.jsonl": samples.write_jsonl,
    "sound.wav": samples.write_wav,
    "picture.png": samples.write_image,
    "images-idx3-ubyte.gz": samples.write_idx,
    "image.imzML": samples.write_imzml,
}


@pytest.mark.parametrize("name", FILES)
def test_the_same_file_gives_the_same_rows(name: str, tmp_path: Path) -> None:
    path = FILES[name](tmp_path / name)
    dataset = read(path)
    again = there_and_back(dataset, tmp_path / "run").read(path)
    np.testing.assert_array_equal(dense(again), dense(dataset))
    assert again.shape == dataset.shape
    assert again.preparation == dataset.preparation


def test_one_new_text_uses_the_vocabulary_and_idf_of_the_fit(tmp_path: Path) -> None:
    fitted = read(samples.write_jsonl(tmp_path / "a.jsonl"))
    how = there_and_back(fitted, tmp_path / "run")
    (tmp_path / "new.txt").write_text("cats cats dogs zebra")
    row = how.read(tmp_path / "new.txt").X.toarray()[0]
    words = dict(zip(how.vocabulary, range(99), strict=False))  # type: ignore[attr-defined]
    expected = np.zeros(len(words))
    expected[words["cats"]] = (1 + np.log(2)) * how.idf[words["cats"]]  # type: ignore[attr-defined]
    expected[words["dogs"]] = how.idf[words["dogs"]]  # type: ignore[attr-defined]
    expected *= np.sqrt(len(words)) / np.linalg.norm(expected)
    np.testing.assert_allclose(row, expected, rtol=1e-6)


def test_a_text_of_unknown_words_is_a_zero_row_and_said_so(tmp_path: Path) -> None:
    how = read(samples.write_jsonl(tmp_path / "a.jsonl")).preparation
    assert how is not None
    (tmp_path / "new.txt").write_text("zebra")
    dataset = how.read(tmp_path / "new.txt")
    assert dataset.X.shape[0] == 1
    assert dataset.X.nnz == 0
    assert "hold no known word" in dataset.messages[0]


def test_new_images_take_the_size_and_channels_of_the_fit(tmp_path: Path) -> None:
    (tmp_path / "fit").mkdir()
    samples.write_image(tmp_path / "fit" / "a.png", size=(9, 7), colour=False)
    how = there_and_back(read(tmp_path / "fit"), tmp_path / "run")
    new = how.read(samples.write_image(tmp_path / "b.jpg", size=(20, 30), colour=True))
    assert new.X.shape == (1, 1, 7, 9)
    assert "resized 1 of 1" in new.messages[0]


def test_columns_are_matched_by_name(tmp_path: Path) -> None:
    how = read(samples.write_csv(tmp_path / "a.csv"), id="name", label="kind").preparation
    assert how is not None
    (tmp_path / "b.csv").write_text("b,a\n10,20\n")
    assert how.read(tmp_path / "b.csv").X.tolist() == [[20, 10]]
    (tmp_path / "c.csv").write_text("name,b,a,kind\nz,10,20,y\n")
    full = how.read(tmp_path / "c.csv")
    assert full.X.tolist() == [[20, 10]]
    assert full.ids is not None
    assert full.ids.tolist() == ["z"]
    (tmp_path / "d.csv").write_text("a,extra\n1,2\n")
    filled = how.read(tmp_path / "d.csv")
    np.testing.assert_allclose(filled.X, [[1, 2.5 / 3]], rtol=1e-6)  # the median of b
    assert [message.partition(": ")[2] for message in filled.messages] == [
        "column 'b' is missing: filled as gaps are",
        "column 'extra' is new: left out",
    ]


def test_a_table_of_numbers_alone_is_read_with_the_header_of_the_fit(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    how = read(tmp_path / "a.csv").preparation
    assert how is not None
    (tmp_path / "b.csv").write_text("3,4\n5,6\n")
    with pytest.raises(InputError, match="lacks columns 'x', 'y'"):
        how.read(tmp_path / "b.csv")


def test_files_of_another_kind_or_shape_are_refused(tmp_path: Path) -> None:
    audio = read(samples.write_wav(tmp_path / "a.wav")).preparation
    table = read(samples.write_csv(tmp_path / "a.csv"), id="name", label="kind").preparation
    array = read(samples.write_npy(tmp_path / "a.npy")).preparation
    assert audio is not None
    assert table is not None
    assert array is not None
    with pytest.raises(SelfViewError):
        audio.read(tmp_path / "a.csv")
    with pytest.raises(InputError, match="fitted on a table"):
        table.read(tmp_path / "a.wav")
    with pytest.raises(InputError, match="fitted on an array"):
        array.read(tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"rows of shape \(4,\), this model needs \(2304,\)"):
        audio.read(tmp_path / "a.npy")


def test_prepared_rows_are_taken_by_any_preparation(tmp_path: Path) -> None:
    fitted = read(samples.write_wav(tmp_path / "a.wav"))
    np.save(tmp_path / "rows.npy", fitted.X)
    assert fitted.preparation is not None
    np.testing.assert_array_equal(fitted.preparation.read(tmp_path / "rows.npy").X, fitted.X)


def test_how_rows_are_made_cannot_be_changed_after_the_fit(tmp_path: Path) -> None:
    how = read(samples.write_imzml(tmp_path / "a.imzML")).preparation
    assert how is not None
    with pytest.raises(InputError, match="bins can't be given here"):
        how.read(tmp_path / "a.imzML", bins=12)


def test_the_named_dataset_of_the_fit_can_be_named_again(tmp_path: Path) -> None:
    digits = load_dataset("digits")
    how = there_and_back(digits, tmp_path)
    np.testing.assert_array_equal(read("digits", preparation=how).X, digits.X)
    with pytest.raises(InputError, match="prepared otherwise"):
        read("synthetic-msi", preparation=how)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(format=99),
        lambda c: c.update(kind="pickle"),
        lambda c: c.update(fields={"rate": 8000, "evil": 1}),
        lambda c: c.update(arrays=["idf"]),
        lambda c: c.pop("kind"),
    ],
)
def test_a_damaged_preparation_is_an_error_that_names_it(change: object, tmp_path: Path) -> None:
    how = read(samples.write_wav(tmp_path / "a.wav")).preparation
    assert how is not None
    how.save(tmp_path)
    file = tmp_path / "preparation.json"
    content = json.loads(file.read_text())
    change(content)  # type: ignore[operator]
    file.write_text(json.dumps(content))
    with pytest.raises((InputError, FileFormatError), match="preparation"):
        load_preparation(tmp_path)


def test_a_folder_without_preparation_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no preparation\.json"):
        load_preparation(tmp_path)
