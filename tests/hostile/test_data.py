"""Hostile data files that are larger than memory may hold, and folders with traps."""

import json
import os
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hostile import Evil, objects
from selfview import InputError
from selfview.data import read
from selfview.data.cache import cache_folder
from selfview.data.guard import tar_members
from selfview.data.json_lines import records
from selfview.data.texts import TextPreparation
from selfview.errors import FileFormatError, SelfViewError

sys.path.append(str(Path(__file__).parents[1] / "data"))
import samples


@pytest.fixture
def all_is_large(monkeypatch):
    """Every array is unpacked into the cache and mapped, as one of gigabytes would be."""
    monkeypatch.setattr("selfview.data.guard.IN_MEMORY", 0)


@pytest.mark.parametrize("name", ["model.pkl", "rows.pickle", "rows.joblib", "rows.pt", "rows.h5"])
def test_files_that_only_code_can_read_are_not_data(name, tmp_path, sentinel):
    import pickle

    (tmp_path / name).write_bytes(pickle.dumps(Evil(sentinel)))
    with pytest.raises(SelfViewError, match="can't be read"):
        read(tmp_path / name)


def test_objects_in_a_file_of_torch_save_are_never_unpickled(tmp_path, sentinel):
    torch.save({"X": torch.ones(4, 2), "more": Evil(sentinel)}, tmp_path / "rows.pt")
    with pytest.raises(FileFormatError, match="can't be read"):
        read(tmp_path / "rows.pt")


@pytest.mark.parametrize("part", ["data", "indices", "indptr", "shape", "format"])
def test_objects_in_a_sparse_matrix_are_never_unpickled(part, tmp_path, sentinel, all_is_large):
    sp.save_npz(tmp_path / "a.npz", sp.eye_array(4, format="csr"))
    parts = dict(np.load(tmp_path / "a.npz")) | {part: objects(sentinel)}
    np.savez(tmp_path / "a.npz", **parts)
    with pytest.raises(FileFormatError, match="pickled objects"):
        read(tmp_path / "a.npz")


def test_objects_as_labels_are_never_unpickled(tmp_path, sentinel):
    np.savez(tmp_path / "a.npz", X=np.ones((2, 2)), y=objects(sentinel))
    with pytest.raises(FileFormatError, match="pickled objects"):
        read(tmp_path / "a.npz", label="y")


def npz_with(path, name):
    """An .npz whose array has this name, as a path of the archive."""
    np.save(path.with_suffix(".npy"), samples.ROWS)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.npy", path.with_suffix(".npy").read_bytes())
    return path


@pytest.mark.parametrize("name", ["../../outside/was-here", "/tmp/x", "..\\x", "a/../../x"])
def test_an_array_whose_name_points_outside_is_refused(name, tmp_path, sentinel):
    path = npz_with(tmp_path / "a.npz", name)
    with pytest.raises(FileFormatError, match="points outside"):
        read(path)
    with zipfile.ZipFile(path, "a") as archive:  # also where it isn't the array that is read
        archive.writestr("X.npy", path.with_suffix(".npy").read_bytes())
    with pytest.raises(FileFormatError, match="points outside"):
        read(path)


@pytest.mark.parametrize("name", ["a/b/c", "C:evil"])
def test_an_array_with_an_odd_name_is_unpacked_inside(name, tmp_path, sentinel, all_is_large):
    path = npz_with(tmp_path / "a.npz", name)
    np.testing.assert_array_equal(read(path).X, samples.ROWS)
    kept = [file for file in cache_folder().rglob("*") if file.is_file()]
    assert {file.parents[1].name for file in kept} == {"mapped"}


def test_a_field_of_endless_name_does_not_fill_the_screen(tmp_path):
    how = TextPreparation(("cat", "dog"), np.ones(2), text="x" * 100_000)
    (tmp_path / "a.jsonl").write_text('{"text": "cat"}\n' * 9)
    with pytest.raises(FileFormatError, match=r"none of its 9 rows.* has no field") as told:
        how.read(tmp_path / "a.jsonl")
    assert len(str(told.value)) < 2000


CSR_LIES = {
    "a column beyond": lambda p: p["indices"].__setitem__(3, 7),
    "a column far beyond": lambda p: p["indices"].__setitem__(3, 2**31 - 1),
    "a negative column": lambda p: p["indices"].__setitem__(3, -1),
    "rows that go back": lambda p: p["indptr"].__setitem__(4, 1),
    "rows beyond the entries": lambda p: p["indptr"].__setitem__(-1, 10**6),
    "a first row that is not the first": lambda p: p["indptr"].__setitem__(0, 2),
    "negative rows": lambda p: p["indptr"].__setitem__(4, -5),
    "too few rows": lambda p: p.update(indptr=p["indptr"][:-2]),
    "too few columns given": lambda p: p.update(indices=p["indices"][:-1]),
    "more rows than told": lambda p: p.update(shape=np.array([10**12, 7])),
    "fewer columns than told": lambda p: p.update(shape=np.array([9, 2])),
    "a negative shape": lambda p: p.update(shape=np.array([-9, -7])),
    "a shape of one": lambda p: p.update(shape=np.array([9])),
    "columns in fractions": lambda p: p.update(indices=p["indices"] + 0.5),
    "two axes": lambda p: p.update(data=p["data"].reshape(1, -1)),
}


@pytest.mark.parametrize("lie", CSR_LIES)
def test_a_sparse_matrix_that_lies_is_refused_before_scipy_trusts_it(lie, tmp_path, all_is_large):
    path = samples.write_csr(tmp_path / "a.npz")
    parts = dict(np.load(path))
    CSR_LIES[lie](parts)
    np.savez(path, **parts)
    with pytest.raises(SelfViewError, match=r"a\.npz"):
        read(path)


def test_a_large_sparse_matrix_is_the_same_from_the_cache(tmp_path, monkeypatch):
    path = samples.write_csr(tmp_path / "a.npz")
    small = read(path).X.toarray()
    monkeypatch.setattr("selfview.data.guard.IN_MEMORY", 0)
    for kind in ("<f4", ">f4", "<f8", "<f2", "<i4"):
        parts = dict(np.load(path))
        np.savez(tmp_path / "b.npz", **parts | {"data": (parts["data"] * 9).astype(kind)})
        expected = (parts["data"] * 9).astype(kind).astype(np.float32)
        for _ in range(2):  # written, then found
            found = read(tmp_path / "b.npz").X
            assert isinstance(found.data, np.memmap)
            np.testing.assert_allclose(
                found.toarray()[small != 0], expected[small[small != 0] != 0]
            )
        (tmp_path / "b.npz").unlink()


def test_rows_that_are_not_finite_can_be_left_out_of_a_mapped_file(tmp_path, all_is_large):
    rows = samples.ROWS.copy()
    rows[2, 1], rows[4, 0] = np.nan, np.inf
    np.save(tmp_path / "a.npy", rows)
    found = read(tmp_path / "a.npy", skip_bad=True)
    assert isinstance(found.X, np.memmap)
    np.testing.assert_array_equal(found.X, rows[[0, 1, 3, 5]])
    assert [text[:5] for text in found.skipped] == ["row 2", "row 4"]


def test_a_mapped_file_stored_by_column_is_brought_to_rows(tmp_path, all_is_large):
    np.save(tmp_path / "a.npy", np.asfortranarray(samples.ROWS))
    found = read(tmp_path / "a.npy").X
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, samples.ROWS)


def test_what_the_disk_can_not_hold_is_said_before_it_is_written(
    tmp_path, all_is_large, monkeypatch
):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(InputError, match=r"which has room for 0\.0 GiB; set SELFVIEW_CACHE"):
        read(samples.write_npz(tmp_path / "a.npz"))


@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "a.csv"])
def test_a_full_disk_is_our_error_and_leaves_nothing(name, tmp_path, all_is_large, monkeypatch):
    write = {".npz": samples.write_npz, ".parquet": samples.write_parquet}
    if name == "a.csv":
        (tmp_path / name).write_text("1,2\n3,4\n")
    else:
        write[Path(name).suffix](tmp_path / name)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("selfview.data.npy.write_header", full)
    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(InputError, match="No space left on device; set SELFVIEW_CACHE"):
        read(tmp_path / name)
    assert not [file for file in cache_folder().rglob("*") if file.is_file()]


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE])
def test_devices_in_an_archive_are_refused(kind, tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("a.wav")
        info.type = kind
        archive.addfile(info)
    with pytest.raises(FileFormatError, match="link or device"):
        list(tar_members(tmp_path / "a.tar", lambda _: True))


def test_links_in_a_folder_neither_hang_nor_lead_out(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    samples.write_image(folder / "a.png")
    (folder / "loop").symlink_to(folder)
    (tmp_path / "outside").mkdir()
    samples.write_image(tmp_path / "outside" / "b.png")
    (folder / "elsewhere").symlink_to(tmp_path / "outside")
    assert len(read(folder)) == 1  # links to folders aren't followed
    (folder / "z.png").symlink_to("/dev/zero")
    with pytest.raises(SelfViewError, match="not an ordinary file"):
        read(folder)
    (folder / "z.png").unlink()
    os.mkfifo(folder / "z.png")
    with pytest.raises(SelfViewError, match="not an ordinary file"):
        read(folder)


@pytest.mark.parametrize("piece", [b"0,0\n", b"0\n", b"0"])  # rows, bad rows, one line
def test_packed_text_that_unpacks_without_end_is_stopped(piece, tmp_path, all_is_large):
    import gzip

    with gzip.open(tmp_path / "a.csv.gz", "wb") as stream:
        stream.write(b"a,b\n1,2\n" + piece * (2**22 // len(piece)))
    with pytest.raises(FileFormatError, match=r"unpacks to more than 200|line of more than"):
        read(tmp_path / "a.csv.gz", skip_bad=True)
    assert not [file for file in cache_folder().rglob("*") if file.is_file()]


def test_bad_rows_without_end_are_not_all_remembered(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n" + "1\n" * 20_000)
    assert len(read(tmp_path / "a.csv", skip_bad=True)) == 2
    monkeypatch.setattr("selfview.data.table_rows._MANY_BAD", 5000)
    with pytest.raises(FileFormatError, match="of its first 8,192 rows can't be read: line"):
        read(tmp_path / "a.csv", skip_bad=True)


@pytest.mark.parametrize("packing", ["zstd", "lz4"])
def test_a_feather_file_that_unpacks_without_end_is_refused(packing, tmp_path, monkeypatch):
    import pyarrow as pa
    from pyarrow import feather

    monkeypatch.setattr("selfview.data.feather.MEMBER_LIMIT", 2**20)
    monkeypatch.setattr("selfview.data.feather.MAX_DEFLATE", 100)
    table = pa.table({"a": np.zeros(2**21), "b": np.zeros(2**21)})
    feather.write_feather(table, tmp_path / "a.feather", packing, chunksize=2**21)
    with pytest.raises(FileFormatError, match="declares more than it can hold"):
        read(tmp_path / "a.feather")


def test_a_feather_file_that_lies_about_its_size_is_refused(tmp_path):
    path = samples.write_feather(tmp_path / "a.feather")
    content = path.read_bytes()
    lengths = [
        i for i in range(0, len(content) - 12, 8) if content[i + 8 : i + 12] == b"(\xb5/\xfd"
    ]
    assert lengths  # in front of every buffer that zstd packed
    for at in lengths:
        path.write_bytes(content[:at] + b"\xff" * 7 + b"\x0f" + content[at + 8 :])
        with pytest.raises(FileFormatError, match="declares"):
            read(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[{"a": 1}, {"a": 2}', "record 2 can't be read: it is cut off"),
        ('[{"a": 1}, {"a": 2', "record 2 can't be read: Expecting"),
        ('[{"a": 1}]\n[{"a": 2}]', "holds more after its list"),
        ('{"a": {"0": 1, "1": 2}}', "no list of records"),
        ("[" * 100_000, "recursion"),
        ('[{"a": 1}, 3]', "record 2: is not an object"),
        ("[]", "holds no records"),
        (" ", "no list of records"),
    ],
)
def test_json_that_is_no_list_of_records_is_told(text, told, tmp_path):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(FileFormatError, match=told):
        read(tmp_path / "a.json")


def test_a_long_list_of_records_is_read_a_piece_at_a_time(tmp_path, monkeypatch):
    rows = [{"text" if i % 7 else "a": "x" * (i % 50), "b": i} for i in range(500)]
    (tmp_path / "a.json").write_text(json.dumps(rows, indent=1))
    for piece in (1, 7, 2**20):
        monkeypatch.setattr("selfview.data.json_lines._PIECE", piece)
        assert [record for _, record in records(tmp_path / "a.json")] == rows
    monkeypatch.setattr("selfview.data.json_lines.LONGEST", 100)
    (tmp_path / "a.json").write_text('[{"a": "' + "x" * 10**6)
    with pytest.raises(FileFormatError, match="record 1"):
        list(records(tmp_path / "a.json"))
