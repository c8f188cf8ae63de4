"""Rows on disk: the same numbers as the map, read once an epoch, never more in memory than said."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from selfview.errors import FileFormatError, InputError
from selfview.rows import on_disk
from selfview.rows.conversion import as_rows
from selfview.rows.on_disk import Span, span_of
from selfview.training.loop import batches

N, FEATURES = 1000, 8


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 16 rows of 8 float32, and room for 40 of them."""
    monkeypatch.setattr(on_disk, "BLOCK_BYTES", 16 * FEATURES * 4)
    monkeypatch.setattr(on_disk, "BUFFER_BYTES", 640 * FEATURES * 4)


def mapped(path, X, **how):
    np.save(path, X)
    return np.load(path, mmap_mode="r", **how)


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, FEATURES)).astype(np.float32)


MAPS = {
    "float32": lambda X, path: mapped(path, X),
    "float64": lambda X, path: mapped(path, X.astype(float)),
    "other byte order": lambda X, path: mapped(path, X.astype(">f4")),
    "half": lambda X, path: mapped(path, X.astype(np.float16)),
    "integers": lambda X, path: mapped(path, (X * 10).astype(np.int16)),
    "images": lambda X, path: mapped(path, X.reshape(N, 1, 2, 4)),
    "with a new axis": lambda X, path: mapped(path, X.reshape(N, 2, 4))[:, None],
    "some rows": lambda X, path: mapped(path, X)[37:901],
    "as a plain array": lambda X, path: np.asarray(mapped(path, X)),
    "at an odd place": lambda X, path: offset_map(X, path),
    "writable": lambda X, path: written_map(X, path),
}


def offset_map(X, path):
    path.write_bytes(b"x" * 4099 + X.tobytes())
    return np.memmap(path, np.float32, "r", 4099, X.shape)


def written_map(X, path):
    array = np.lib.format.open_memmap(path, "w+", X.dtype, X.shape)
    array[:] = X
    array[5] = 77  # not flushed: the system's own copy of the file has it all the same
    return array


@pytest.mark.parametrize("kind", MAPS)
def test_rows_come_from_the_file_and_equal_the_map(kind, X, tmp_path, small_blocks, rng):
    array = MAPS[kind](X, tmp_path / "X.npy")
    rows = as_rows(array)
    assert rows.stored is not None
    expected = np.array(array, np.float32)
    for size in (1, 3, 40, 300):  # the last touches more blocks than are kept
        index = rng.integers(0, rows.n, size)
        np.testing.assert_array_equal(rows.take(index).numpy(), expected[index])
    np.testing.assert_array_equal(rows.take(slice(3, 200)).numpy(), expected[3:200])
    np.testing.assert_array_equal(rows.take(slice(900, 5000)).numpy(), expected[900:5000])
    assert rows.summary() == as_rows(np.array(array)).summary()


def test_what_no_file_holds_in_rows_is_taken_from_the_map(X, tmp_path):
    array = mapped(tmp_path / "X.npy", X)
    private = np.load(tmp_path / "X.npy", mmap_mode="c")
    private[3] = 9
    for kind, view in {
        "private copy": private,
        "every second": array[::2],
        "columns": array[:, 1:5],
        "by column": mapped(tmp_path / "F.npy", np.asfortranarray(X)),
    }.items():
        rows = as_rows(view)
        assert rows.stored is None, kind
        np.testing.assert_array_equal(rows.take(np.array([3, 0, 400])), view[[3, 0, 400]])


def test_a_file_that_was_replaced_or_removed_before_is_not_mistaken_for_the_map(X, tmp_path):
    path = tmp_path / "X.npy"
    array = mapped(path, X)
    np.save(tmp_path / "other.npy", X + 1)
    os.replace(tmp_path / "other.npy", path)
    assert span_of(array) is None
    np.testing.assert_array_equal(as_rows(array).take(np.arange(9)), X[:9])
    path.unlink()
    assert span_of(array) is None


def test_a_file_that_changes_meanwhile_is_our_error_not_a_crash(X, tmp_path):
    path = tmp_path / "X.npy"
    rows = as_rows(mapped(path, X))
    os.truncate(path, 4000)  # a map would end the process with a bus error
    with pytest.raises(FileFormatError, match=r"X\.npy was cut short"):
        rows.take(np.array([N - 1]))
    np.save(tmp_path / "other.npy", X)
    os.replace(tmp_path / "other.npy", path)
    with pytest.raises(FileFormatError, match=r"X\.npy was replaced"):
        rows.take(np.array([0]))
    path.unlink()
    with pytest.raises(FileFormatError, match=r"X\.npy can't be read any more"):
        rows.take(slice(0, 4))


def csr_on_disk(matrix, folder):
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(matrix, name))
    parts = [np.load(folder / f"{n}.npy", mmap_mode="r") for n in ("data", "indices", "indptr")]
    found = sp.csr_matrix(matrix.shape, dtype=matrix.dtype)
    found.data, found.indices, found.indptr = parts
    return found


@pytest.fixture
def matrix():
    dense = sp.random(N, 50, 0.1, "csr", dtype=np.float32, random_state=0).toarray()
    dense[17] = 0  # an empty row
    return sp.csr_matrix(dense)


def test_a_mapped_csr_matrix_gives_the_same_rows(matrix, tmp_path, small_blocks, rng):
    rows, dense = as_rows(csr_on_disk(matrix, tmp_path)), matrix.toarray()
    assert rows.stored is not None
    for index in (np.array([17]), rng.integers(0, N, 20), rng.integers(0, N, 600)):
        np.testing.assert_array_equal(rows.take(index).numpy(), dense[index])
    np.testing.assert_array_equal(rows.take(slice(10, 30)).numpy(), dense[10:30])
    found, expected = rows.summary(), as_rows(matrix).summary()
    assert found.mean_norm == pytest.approx(expected.mean_norm)
    assert found.density == expected.density


def test_the_first_bad_number_of_a_mapped_csr_is_named(matrix, tmp_path, small_blocks):
    matrix = matrix.copy()
    matrix.data[matrix.indptr[612] + 1] = np.nan
    column = matrix.indices[matrix.indptr[612] + 1]
    rows = as_rows(csr_on_disk(matrix, tmp_path))
    for look in (rows.check, rows.summary):
        with pytest.raises(InputError, match=f"row 612, column {column}"):
            look()


def test_entries_given_twice_are_added(tmp_path, small_blocks):
    twice = sp.csr_matrix((np.ones(4, np.float32), np.array([2, 2, 0, 1]), [0, 2, 4]), (2, 3))
    rows = as_rows(csr_on_disk(twice, tmp_path))
    assert rows.take(np.array([0, 1])).tolist() == [[0, 0, 2], [1, 1, 0]]
    assert rows.summary().mean_norm == pytest.approx((2 + 2**0.5) / 2)


def test_an_epoch_reads_every_block_once_and_keeps_no_more_than_the_buffer(
    X, tmp_path, small_blocks, monkeypatch
):
    rows = as_rows(mapped(tmp_path / "X.npy", X))
    reads, read = [], Span.read

    def counted(self, ranges):
        ranges = list(ranges)
        reads.extend(ranges)
        return read(self, ranges)

    monkeypatch.setattr(Span, "read", counted)
    assert rows.blocks == (16, 640)
    seen = []
    for index in batches(N, 32, 0, 0, rows.blocks):
        seen.append(rows.take(index).numpy())
        assert rows.stored._kept.cache_info().currsize <= 640 // 16
    assert sorted(reads) == [(start, min(start + 16, N)) for start in range(0, N, 16)]
    np.testing.assert_array_equal(np.sort(np.concatenate(seen), 0), np.sort(X, 0))


@settings(deadline=None)
@given(
    n=st.integers(2, 900),
    size=st.integers(2, 100),
    block=st.integers(1, 60),
    kept=st.integers(1, 300),
)
def test_an_epoch_in_blocks_takes_every_row_once(n, size, block, kept):
    parts = batches(n, size, 1, 2, (block, kept))
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    again = batches(n, size, 1, 2, (block, kept))
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    plain = batches(n, size, 1, 2)
    assert [len(part) for part in parts] == [len(part) for part in plain]
    if kept >= n:  # all rows fit in the buffer: the order is that of rows in memory
        assert all(np.array_equal(a, b) for a, b in zip(parts, plain, strict=True))


def test_batches_mix_blocks_from_all_over_the_file():
    n, block, kept = 100_000, 100, 10_000
    parts = batches(n, 250, 0, 0, (block, kept))
    for part in parts:
        assert len(np.unique(part // block)) > 70  # of the 100 that are kept
        # Evenly spread rows have a mean of n / 2 with this deviation; six of them is no chance.
        assert abs(part.mean() - n / 2) < 6 * n / 12**0.5 / (kept / block) ** 0.5
    other = batches(n, 250, 0, 1, (block, kept))
    assert not np.array_equal(np.sort(parts[0]), np.sort(other[0]))


def test_no_window_is_left_with_few_blocks():
    n, block, kept = 1_010, 10, 100  # 101 blocks, 10 to a window: one would be left over
    last = batches(n, 10, 0, 0, (block, kept))[-3:]
    assert len(np.unique(np.concatenate(last) // block)) > 5
