"""Parts of one set of rows: what one file would give, in the order of the names, never whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import samples

from selfview.data import guard, read
from selfview.errors import InputError

SIZES = (7, 5, 9)


@pytest.fixture
def X() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(sum(SIZES), 4)).astype(np.float32)


def split(values):
    return np.split(values, np.cumsum(SIZES)[:-1])


def write_npy(folder: Path, X: np.ndarray) -> None:
    for i, part in enumerate(split(X)):
        np.save(folder / f"part-{i}.npy", part)


def write_parquet(folder: Path, X: np.ndarray, kinds: np.ndarray) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for i, (part, kind) in enumerate(zip(split(X), split(kinds), strict=True)):
        columns = {f"x{j}": part[:, j] for j in range(X.shape[1])}
        pq.write_table(pa.table(columns | {"kind": kind}), folder / f"part-{i}.parquet")


def test_a_glob_and_a_folder_of_arrays_are_one_set_of_rows(X: np.ndarray, tmp_path: Path) -> None:
    write_npy(tmp_path, X)
    np.testing.assert_array_equal(read(str(tmp_path / "part-*.npy")).X, X)
    np.testing.assert_array_equal(read(tmp_path).X, X)


def test_parts_beyond_the_bound_are_mapped(
    X: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_npy(tmp_path, X)
    monkeypatch.setattr(guard, "IN_MEMORY", 64)
    monkeypatch.setattr(guard, "BLOCK", 32)
    found = read(tmp_path).X
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, X)


def test_labels_of_parquet_parts_have_one_code_each(X: np.ndarray, tmp_path: Path) -> None:
    kinds = np.array(["b"] * 7 + ["a"] * 5 + ["c"] * 9)  # no part has them all
    write_parquet(tmp_path, X, kinds)
    found = read(str(tmp_path / "part-?.parquet"), label="kind")
    assert [found.classes[code] for code in found.y] == kinds.tolist()
    one = read(tmp_path / "part-0.parquet", label="kind")
    np.testing.assert_array_equal(np.asarray(found.X)[:7], one.X)
    again = read(tmp_path, label="kind", preparation=found.preparation)
    np.testing.assert_array_equal(again.X, found.X)


def test_cells_of_several_files_keep_their_names_and_labels(tmp_path: Path) -> None:
    cells: Any = samples.cells(sparse=False)
    cells[:4].copy().write_h5ad(tmp_path / "a.h5ad")
    cells[4:].copy().write_h5ad(tmp_path / "b.h5ad")
    found = read(tmp_path, label="type")
    np.testing.assert_array_equal(found.X, cells.X)
    assert found.ids.tolist() == cells.obs_names.tolist()
    assert [[*found.classes, ""][code] for code in found.y] == [*"TBTNBTNT", ""]


def test_sparse_parts_are_told_not_to_be_joined(tmp_path: Path) -> None:
    samples.write_h5ad(tmp_path / "a.h5ad")
    with pytest.raises(InputError, match="can't be joined"):
        read(tmp_path)


def test_a_part_that_changes_is_read_again(X: np.ndarray, tmp_path: Path) -> None:
    write_npy(tmp_path, X)
    read(tmp_path)
    np.save(tmp_path / "part-2.npy", X[:3])
    np.testing.assert_array_equal(np.asarray(read(tmp_path).X)[12:], X[:3])


def test_parts_that_do_not_fit_together_are_named(X: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file has a name of this form"):
        read(str(tmp_path / "part-*.npy"))
    write_npy(tmp_path, X)
    np.save(tmp_path / "part-3.npy", X[:, :2])
    with pytest.raises(InputError, match=r"part-3\.npy"):
        read(tmp_path)
    (tmp_path / "part-4.csv").write_text("1,2\n")
    with pytest.raises(InputError, match="parts must be all"):
        read(str(tmp_path / "part-*"))


def test_the_command_line_takes_a_glob(X: np.ndarray, tmp_path: Path, call: Any) -> None:
    write_npy(tmp_path, X)
    pattern, run, out = tmp_path / "part-*.npy", tmp_path / "run", tmp_path / "z.npy"
    code, _, err = call("fit", pattern, "--out", run, "--epochs", 1, "--no-report")
    assert code == 0, err
    code, _, err = call("embed", run, pattern, "--out", out)
    assert code == 0, err
    assert len(np.load(out)) == len(X)
