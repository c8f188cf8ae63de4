"""Prepared rows on disk: quick the second time, whole or not at all, rebuilt when damaged."""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from selfview.data import Dataset
from selfview.data.cache import cache_folder
from selfview.data.preparation import ArrayPreparation
from selfview.data.prepared import cached_dataset


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SELFVIEW_CACHE", str(tmp_path / "cache"))


def full(value: float = 1.0, *, sparse: bool = False) -> Dataset:
    rows = np.full((50, 4), value, np.float32)
    return Dataset(
        "name",
        csr_matrix(rows) if sparse else rows,
        np.arange(50) % 3,
        ("a", "b", "c"),
        further={"who": np.array(["ann", "bob"] * 25)},
        train=np.arange(40),
        test=np.arange(40, 50),
        shape=(2, 2),
        coordinates=np.ones((50, 2), int),
        ids=np.array([f"row {i}" for i in range(50)]),
        preparation=ArrayPreparation((4,)),
        source="here",
        epsilon=3.5,
        messages=("a message",),
    )


def never() -> Dataset:
    raise AssertionError("the cache was not used")


@pytest.mark.parametrize("sparse", [False, True])
def test_everything_comes_back(sparse: bool) -> None:
    cached_dataset("name", 1, (), lambda: full(sparse=sparse))
    again, first = cached_dataset("name", 1, (), never), full(sparse=sparse)
    for key in ("y", "train", "test", "coordinates", "ids"):
        np.testing.assert_array_equal(getattr(again, key), getattr(first, key))
    for key in ("classes", "shape", "source", "epsilon", "messages", "preparation"):
        assert getattr(again, key) == getattr(first, key)
    np.testing.assert_array_equal(again.further["who"], first.further["who"])
    assert isinstance(again.X, csr_matrix) is sparse
    dense = again.X.toarray() if sparse else again.X
    np.testing.assert_array_equal(dense, np.ones((50, 4)))


def test_a_new_version_or_another_file_makes_anew(tmp_path: Path) -> None:
    file = tmp_path / "source"
    file.write_bytes(b"1")
    assert cached_dataset("name", 1, [file], full).X[0, 0] == 1
    assert cached_dataset("name", 2, [file], lambda: full(2)).X[0, 0] == 2
    file.write_bytes(b"12")
    assert cached_dataset("name", 1, [file], lambda: full(3)).X[0, 0] == 3


@pytest.mark.parametrize("name", ["X.npy", "ids.npy", "facts.json", "preparation.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "remove", "empty"])
def test_a_damaged_cache_is_rebuilt(name: str, damage: str) -> None:
    cached_dataset("name", 1, (), full)
    (folder,) = (cache_folder() / "prepared").iterdir()
    content = bytearray((folder / name).read_bytes())
    if damage == "remove":
        (folder / name).unlink()
    else:
        content[len(content) // 2] ^= 0x15
        wrong = {"cut": bytes(content[:-7]), "flip": bytes(content), "empty": b""}[damage]
        (folder / name).write_bytes(wrong)
    again = cached_dataset("name", 1, (), full)
    assert again.ids is not None
    assert again.ids[7] == "row 7"
    np.testing.assert_array_equal(again.X, np.ones((50, 4)))


def test_a_cache_that_cannot_be_written_is_not_fatal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SELFVIEW_CACHE", str(tmp_path / "file"))
    assert cached_dataset("name", 1, (), full).X.shape == (50, 4)


def _load_many(start: object, results: object) -> None:
    start.wait()  # type: ignore[attr-defined]
    for version in range(1, 21):
        rows = cached_dataset("name", version, (), lambda v=version: full(v)).X  # type: ignore[misc]
        results.put(bool((np.asarray(rows) == version).all()))  # type: ignore[attr-defined]


def test_processes_that_load_at_once_get_whole_rows() -> None:
    context = multiprocessing.get_context("spawn")
    start, results = context.Event(), context.Queue()
    workers = [context.Process(target=_load_many, args=(start, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    start.set()
    found = [results.get(timeout=60) for _ in range(60)]
    for worker in workers:
        worker.join()
    assert all(found)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    left = [f.name for f in (cache_folder() / "prepared").iterdir() if f.name.startswith(".")]
    assert left == []
