"""Parts of one set of rows: what one file would give, in the order of the names, never whole."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import samples
import scipy.sparse as sp

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


def test_sparse_parts_are_one_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sp.random(sum(SIZES), 30, 0.2, "csr", dtype=np.float32, random_state=0)
    starts = np.cumsum((0, *SIZES))
    for i, (start, stop) in enumerate(pairwise(starts)):
        sp.save_npz(tmp_path / f"part-{i}.npz", whole[start:stop])
    for bound in (guard.IN_MEMORY, 16):  # in memory, then mapped
        monkeypatch.setattr(guard, "IN_MEMORY", bound)
        monkeypatch.setattr(guard, "BLOCK", bound)
        found: Any = read(tmp_path).X
        assert isinstance(found.data, np.memmap) == (bound == 16)
        np.testing.assert_array_equal(found.toarray(), whole.toarray())
    np.savez(tmp_path / "part-3.npz", X=whole[:3].toarray())
    with pytest.raises(InputError, match=r"part-3\.npz holds dense rows"):
        read(tmp_path)


def test_cells_of_sparse_files_keep_their_names(tmp_path: Path) -> None:
    cells: Any = samples.cells(sparse=True)
    cells[:4].copy().write_h5ad(tmp_path / "a.h5ad")
    cells[4:, ::-1].copy().write_h5ad(tmp_path / "b.h5ad")  # variables are found by name
    found: Any = read(tmp_path)
    np.testing.assert_array_equal(found.X.toarray(), cells.X.toarray())
    assert found.ids.tolist() == cells.obs_names.tolist()


def test_categories_and_gaps_of_all_parts_are_known(X: np.ndarray, tmp_path: Path) -> None:
    kinds = np.array(["b", "a"] * 3 + ["b"] + ["a"] * 5 + ["late"] * 9)  # of the last part alone
    X[-1, 0] = np.nan
    write_parquet(tmp_path, X, kinds)
    found = read(tmp_path)
    names = list(found.feature_names)
    rows = np.asarray(found.X)
    late = [i for i, name in enumerate(names) if "late" in name]
    assert len(late) == 1, names
    assert (rows[-9:, late] > rows[:-9, late].max()).all()
    assert np.isfinite(rows).all()
    assert len(rows) == len(X)
    again = read(str(tmp_path / "*.parquet"), preparation=found.preparation)
    np.testing.assert_array_equal(again.X, rows)


def test_texts_of_parts_are_told_that_words_are_the_first_parts(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for i, words in enumerate(("apple pear", "apple cherry")):
        pq.write_table(pa.table({"note": [words] * 4}), tmp_path / f"part-{i}.parquet")
    found: Any = read(tmp_path, text="note")
    assert found.X.shape == (8, 2)
    assert any("words are those of part-0.parquet" in line for line in found.messages)


def test_a_table_part_that_lacks_a_column_is_named(X: np.ndarray, tmp_path: Path) -> None:
    write_parquet(tmp_path, X, np.array(["a", "b", "c"] * 7))
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"x0": [1.0]}), tmp_path / "part-9.parquet")
    with pytest.raises(InputError, match=r"part-9\.parquet lacks the column 'x1'"):
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
