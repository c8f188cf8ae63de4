"""Anybody's files: arrays, texts and images, against the libraries that wrote them."""

import json
from pathlib import Path

import numpy as np
import pytest
import samples
from scipy.sparse import csr_matrix, save_npz

from selfview import InputError
from selfview.data import load_preparation, read
from selfview.errors import FileFormatError


def test_npy_comes_back_as_written(tmp_path: Path) -> None:
    dataset = read(samples.write_npy(tmp_path / "rows.npy"))
    np.testing.assert_array_equal(dataset.X, samples.ROWS)
    assert dataset.name == "rows.npy"
    assert dataset.source.endswith("rows.npy")


def test_a_large_npy_is_mapped_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.npy"
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (20_000, 1000))
    rows[12_345, 678] = 5
    rows.flush()
    X = read(path).X
    assert isinstance(X, np.memmap)
    assert X[12_345, 678] == 5
    with pytest.raises(ValueError, match="read-only"):
        X[0, 0] = 1


def test_large_images_of_bytes_are_scaled_block_by_block(tmp_path: Path) -> None:
    path = tmp_path / "large.npy"
    rows = np.lib.format.open_memmap(path, "w+", np.uint8, (1100, 250, 250))
    rows[7, 8, 9] = 51
    rows.flush()
    X = read(path).X
    assert isinstance(X, np.memmap)
    assert X.shape == (1100, 1, 250, 250)
    assert X[7, 0, 8, 9] == np.float32(51 / 255)


@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<i2", "<f2", "?"])
def test_numbers_of_any_type_become_float32(dtype: str, tmp_path: Path) -> None:
    values = np.arange(6).reshape(3, 2).astype(dtype)
    np.save(tmp_path / "a.npy", values)
    X = read(tmp_path / "a.npy").X
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, values.astype(np.float32))


def test_images_get_a_channel_and_bytes_are_scaled(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.full((3, 5, 4), 255, np.uint8))
    dataset = read(tmp_path / "a.npy")
    assert dataset.X.shape == (3, 1, 5, 4)
    assert dataset.X.max() == 1


def test_images_with_colours_last_are_refused_with_the_remedy(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((5, 32, 32, 3), np.uint8))
    with pytest.raises(InputError, match=r"transpose\(0, 3, 1, 2\)"):
        read(tmp_path / "a.npy")


def test_an_npz_of_several_arrays_needs_a_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", left=samples.ROWS, right=samples.ROWS * 2, kind=list("ababab"))
    with pytest.raises(InputError, match="--array: left, right, kind"):
        read(tmp_path / "a.npz")
    dataset = read(tmp_path / "a.npz", array="right", label="kind")
    np.testing.assert_array_equal(dataset.X, samples.ROWS * 2)
    assert dataset.classes == ("a", "b")
    with pytest.raises(InputError, match="no array 'up'"):
        read(tmp_path / "a.npz", array="up")


def test_csr_in_npz_stays_sparse(tmp_path: Path) -> None:
    matrix = csr_matrix(np.eye(5, 7, dtype=np.float32))
    save_npz(tmp_path / "scipy.npz", matrix)
    parts = {k: getattr(matrix, k) for k in ("data", "indices", "indptr")}
    np.savez(tmp_path / "h5ad.npz", shape=np.array(matrix.shape), **parts)
    save_npz(tmp_path / "csc.npz", matrix.tocsc())
    for name in ("scipy.npz", "h5ad.npz", "csc.npz"):
        X = read(tmp_path / name).X
        assert isinstance(X, csr_matrix), name
        np.testing.assert_array_equal(X.toarray(), matrix.toarray())


def test_csr_with_an_index_outside_is_refused(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "bad.npz",
        data=np.ones(2),
        indices=np.array([0, 99]),
        indptr=np.array([0, 1, 2]),
        shape=np.array([2, 5]),
    )
    with pytest.raises(FileFormatError, match=r"bad\.npz"):
        read(tmp_path / "bad.npz")


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_matrix_market_agrees_with_scipy(symmetry: str, field: str, tmp_path: Path) -> None:
    from scipy.io import mmread, mmwrite
    from scipy.sparse import coo_matrix

    values = np.random.default_rng(0).integers(-9, 9, (6, 6)) * (
        np.arange(36).reshape(6, 6) % 3 > 0
    )
    matrix = {
        "general": values,
        "symmetric": values + values.T,
        "skew-symmetric": values - values.T,
    }[symmetry]
    path = tmp_path / "a.mtx"
    mmwrite(path, coo_matrix(matrix), comment="two\nlines", field=field, symmetry=symmetry)
    np.testing.assert_allclose(read(path).X.toarray(), mmread(path).toarray(), rtol=1e-6)


def test_matrix_market_arrays_agree_with_scipy(tmp_path: Path) -> None:
    from scipy.io import mmread, mmwrite

    mmwrite(tmp_path / "a.mtx", samples.ROWS)
    np.testing.assert_allclose(read(tmp_path / "a.mtx").X.toarray(), mmread(tmp_path / "a.mtx"))


def test_bad_rows_of_arrays_are_named_or_left_out(tmp_path: Path) -> None:
    rows = samples.ROWS.copy()
    rows[4, 1] = np.nan
    np.savez(tmp_path / "a.npz", X=rows, who=np.arange(6))
    with pytest.raises(FileFormatError, match="row 4 holds NaN"):
        read(tmp_path / "a.npz")
    dataset = read(tmp_path / "a.npz", skip_bad=True, id="who")
    assert dataset.ids is not None
    assert dataset.ids.tolist() == [0, 1, 2, 3, 5]


def test_jsonl_is_the_tfidf_of_scikit_learn(tmp_path: Path) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    path = samples.write_jsonl(tmp_path / "a.jsonl")
    texts = [json.loads(line)["text"] for line in path.read_text().splitlines()]
    dataset = read(path, vocabulary=5, label="kind")
    oracle = TfidfVectorizer(max_features=5, stop_words="english", sublinear_tf=True)
    expected = oracle.fit_transform(texts).toarray() * np.sqrt(5)
    keep = expected.any(axis=1)
    np.testing.assert_allclose(dataset.X.toarray(), expected[keep], rtol=1e-6)
    assert dataset.classes == ("0", "1")


def test_jsonl_lines_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"text": "cats dogs"}\n{"text": 5}\nnot json\n\n{"other": "x"}\n{"text": "cats"}\n'
    )
    with pytest.raises(
        FileFormatError, match=r"3 of 5 rows.*line 2: .*line 3: .*line 5: has no field"
    ):
        read(path)
    assert read(path, skip_bad=True).X.shape[0] == 2


def test_a_folder_of_texts_takes_subfolders_as_labels(tmp_path: Path) -> None:
    for name, text in (("cats/1", "purr meow"), ("cats/2", "meow milk"), ("dogs/1", "bark bone")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.txt").write_text(text)
    dataset = read(tmp_path)
    assert dataset.classes == ("cats", "dogs")
    assert dataset.ids is not None
    assert dataset.ids.tolist() == ["cats/1.txt", "cats/2.txt", "dogs/1.txt"]


def test_texts_without_words_are_left_out_at_fit_and_said_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("cats and dogs")
    (tmp_path / "b.txt").write_text("!!! ???")
    dataset = read(tmp_path)
    assert dataset.X.shape[0] == 1
    assert "left out 1 of 2 texts" in dataset.messages[0]


@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_images_agree_with_pillow(suffix: str, tmp_path: Path) -> None:
    from PIL import Image

    for i in range(3):
        samples.write_image(tmp_path / f"{i}_{'ab'[i % 2]}.{suffix}")
    dataset = read(tmp_path, labels_from_name=r"_(\w)\.")
    assert dataset.X.shape == (3, 3, 7, 9)
    assert dataset.classes == ("a", "b")
    with Image.open(tmp_path / f"1_b.{suffix}") as image:
        expected = np.asarray(image.convert("RGB"), np.float32).transpose(2, 0, 1) / 255
    np.testing.assert_allclose(dataset.X[1], expected, rtol=1e-6)
    assert dataset.messages == ()


def test_images_of_several_sizes_are_resized_with_a_message(tmp_path: Path) -> None:
    for i, size in enumerate([(9, 7), (9, 7), (12, 5)]):
        samples.write_image(tmp_path / f"{i}.png", size=size, colour=False)
    dataset = read(tmp_path)
    assert dataset.X.shape == (3, 1, 7, 9)
    assert "resized 1 of 3 images to 9 x 7 (2.png" in dataset.messages[0]
    assert read(tmp_path, image_size=(4, 3)).X.shape == (3, 1, 3, 4)
    assert read(tmp_path, image_size=6).X.shape == (3, 1, 6, 6)


def test_images_of_all_modes_are_read(tmp_path: Path) -> None:
    from PIL import Image

    grey = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    Image.fromarray(grey).convert("1").save(tmp_path / "1.png")
    Image.fromarray(grey).convert("P").save(tmp_path / "p.png")
    Image.fromarray(grey).convert("RGBA").save(tmp_path / "rgba.png")
    Image.fromarray(grey).convert("LA").save(tmp_path / "la.png")
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "sixteen.png")
    Image.fromarray(np.stack([grey] * 3 + [grey], -1), "CMYK").save(tmp_path / "cmyk.jpg")
    dataset = read(tmp_path)
    assert dataset.X.shape == (6, 3, 3, 4)
    assert dataset.ids is not None
    sixteen = dataset.X[dataset.ids.tolist().index("sixteen.png")]
    np.testing.assert_allclose(sixteen, np.stack([grey] * 3) / 255, atol=1e-6)


def test_a_damaged_image_is_named(tmp_path: Path) -> None:
    samples.write_image(tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes((tmp_path / "good.png").read_bytes()[:60])
    with pytest.raises(FileFormatError, match=r"bad\.png"):
        read(tmp_path)
    assert read(tmp_path, skip_bad=True).X.shape[0] == 1


def test_idx_is_read_packed_or_not(tmp_path: Path) -> None:
    import gzip

    path = samples.write_idx(tmp_path / "train-images-idx3-ubyte.gz")
    plain = tmp_path / "train-images-idx3-ubyte"
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    np.testing.assert_array_equal(read(path).X, read(plain).X)
    assert read(path).X.shape == (5, 1, 7, 6)


def test_other_files_in_a_folder_are_named_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for i in range(3):
        samples.write_image(tmp_path / f"{i}.png")
    before = read(tmp_path)
    assert before.messages == ()
    (tmp_path / "notes.txt").write_text("taken in spring")
    (tmp_path / ".hidden").write_text("")
    found = read(tmp_path)
    np.testing.assert_array_equal(found.X, before.X)
    said = f"{tmp_path}: left out 1 file of other kinds: notes.txt"
    assert found.messages == (said,)
    assert [record.getMessage() for record in caplog.records] == [said]
    assert before.preparation is not None
    assert before.preparation.read(tmp_path).messages == (said,)
    for name in ("0.txt", "a.pdf", "b.csv", "c.tif"):
        (tmp_path / name).write_text("one fish")
    assert read(tmp_path).messages == (
        f"{tmp_path}: left out 5 files of other kinds: 0.txt, a.pdf, b.csv and 2 more",
    )


def test_the_kind_of_most_files_is_read_and_pictures_come_before_captions(tmp_path: Path) -> None:
    for i in range(2):
        samples.write_image(tmp_path / f"{i}.png")
        (tmp_path / f"{i}.txt").write_text(f"fish number {i}")
    assert read(tmp_path).X.shape == (2, 3, 7, 9)
    (tmp_path / "more.txt").write_text("red fish")
    found = read(tmp_path)
    assert list(found.ids) == ["0.txt", "1.txt", "more.txt"]
    assert found.messages[0].endswith("left out 2 files of other kinds: 0.png, 1.png")


def test_as_many_recordings_as_pictures_are_refused(tmp_path: Path) -> None:
    samples.write_image(tmp_path / "a.png")
    samples.write_wav(tmp_path / "a.wav")
    with pytest.raises(InputError, match=r"as many recordings as pictures \(1 each\)"):
        read(tmp_path)


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    samples.write_npy(tmp_path / "a.npy")
    with pytest.raises(InputError, match=r"label means nothing for \.npy files"):
        read(tmp_path / "a.npy", label="y")
    with pytest.raises(
        InputError, match=r"bins means nothing for \.csv.*possible are categorical, col"
    ):
        read(samples.write_csv(tmp_path / "a.csv"), bins=9)
    with pytest.raises(InputError, match="bins can't be given with the dataset digits"):
        read("digits", bins=5)
    samples.write_wav(tmp_path / "w.wav")
    with pytest.raises(InputError, match="no regular expression"):
        read(tmp_path / "w.wav", labels_from_name="(")
    with pytest.raises(InputError, match="needs a group"):
        read(tmp_path / "w.wav", labels_from_name="x")
    with pytest.raises(InputError, match="finds no label"):
        read(tmp_path / "w.wav", labels_from_name="(x)")


def test_files_that_are_not_what_their_names_say(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "rows.npy.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(InputError, match="unpack it first"):
        read(tmp_path / "rows.npy.gz")
    (tmp_path / "rows.csv.gz").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(FileFormatError, match="Not a gzipped file"):
        read(tmp_path / "rows.csv.gz")
    np.savetxt(tmp_path / "rows.txt", np.eye(5))
    with pytest.raises(InputError, match="holds numbers, not a text"):
        read(tmp_path / "rows.txt")
    for text in ("one text of words in 2026", "1984 Orwell", "nan bread, inf, nan, inf"):
        (tmp_path / "rows.txt").write_text(text)
        assert read(tmp_path / "rows.txt").X.shape[0] == 1
    how = read(tmp_path / "rows.txt").preparation
    assert how is not None
    np.savetxt(tmp_path / "rows.txt", np.eye(5))  # to a fitted vocabulary it is a text like others
    assert how.read(tmp_path / "rows.txt").X.shape[0] == 5


@pytest.mark.parametrize("field", ["id", "key"])
def test_the_ids_of_jsonl_rows_are_theirs_also_at_embed(tmp_path: Path, field: str) -> None:
    ids = [0, "b", 2.5, 7]
    texts = ["one fish", "two fish", "red fish", "blue fish"]
    lines = [json.dumps({field: i, "text": t}) for i, t in zip(ids, texts, strict=True)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    dataset = read(tmp_path / "a.jsonl", id=None if field == "id" else field)
    assert dataset.preparation is not None
    dataset.preparation.save(tmp_path / "run")
    again = load_preparation(tmp_path / "run").read(tmp_path / "a.jsonl")
    for found in (dataset, again):
        assert found.ids is not None
        assert found.ids.tolist() == ["0", "b", "2.5", "7"]


def test_lines_of_a_jsonl_without_an_id_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one fish"}\n\n{"text": "two fish"}\n')
    found = read(path).ids
    assert found is not None
    assert found.tolist() == ["1", "3"]
    path.write_text('{"text": "one fish", "id": 2}\n{"text": "two fish", "id": null}\n')
    found = read(path).ids
    assert found is not None
    assert found.tolist() == ["2", "line 2"]


def test_a_jsonl_without_the_field_says_which_it_has(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"body": "some words", "n": 1}\n')
    with pytest.raises(FileFormatError, match=r"no field 'txt', but 'body', 'n'; name .* --text"):
        read(tmp_path / "a.jsonl", text="txt")
    (tmp_path / "a.jsonl").write_text('["some words"]\n')
    with pytest.raises(FileFormatError, match="not an object with named fields"):
        read(tmp_path / "a.jsonl")


def test_new_texts_are_named_by_the_field_of_the_fit(tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"word{i} common", "key": f"k{i}"}) for i in range(4)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    how = read(tmp_path / "a.jsonl", id="key").preparation
    assert how is not None
    again = how.read(tmp_path / "a.jsonl").ids
    assert again is not None
    assert again.tolist() == ["k0", "k1", "k2", "k3"]
    (tmp_path / "b.jsonl").write_text('{"text": "common"}\n{"text": "common", "key": null}\n')
    new = how.read(tmp_path / "b.jsonl").ids
    assert new is not None
    assert new.tolist() == ["1", "2"]
    with pytest.raises(InputError, match="no line has a label in the field 'k'; fields are 'text'"):
        read(tmp_path / "a.jsonl", label="k")
