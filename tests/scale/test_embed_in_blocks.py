"""A large embedding in blocks: the bits of one in a piece, also where it was stopped in between."""

import warnings

import numpy as np
import pytest
from filelock import FileLock

from selfview import CollapseWarning, SelfView
from selfview.cli import embedding_file
from selfview.errors import InputError
from selfview.rows.conversion import as_rows

BLOCK = 4096  # of which `transform` takes one at a time


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        return SelfView(3, epochs=1, random_state=0, verbose=0).fit(X)


@pytest.fixture
def X(monkeypatch):
    monkeypatch.setattr(embedding_file, "BLOCK", BLOCK)
    return np.random.default_rng(1).normal(size=(3 * BLOCK + 100, 6)).astype(np.float32)


def stop_after(monkeypatch, blocks):
    """`transform` fails after so many calls."""
    plain, calls = SelfView.transform, []

    def transform(self, rows):
        calls.append(rows.first)
        if len(calls) > blocks:
            raise KeyboardInterrupt
        return plain(self, rows)

    monkeypatch.setattr(SelfView, "transform", transform)
    return calls


def test_blocks_give_the_bits_of_one_piece(model, X, tmp_path):
    assert embedding_file.write_in_blocks(tmp_path / "z.npy", model, as_rows(X)) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), model.transform(X))
    assert [file.name for file in tmp_path.iterdir()] == ["z.npy"]


def test_a_call_that_was_stopped_goes_on_behind_its_last_whole_block(
    model, X, tmp_path, monkeypatch
):
    out, rows = tmp_path / "z.npy", as_rows(X)
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            embedding_file.write_in_blocks(out, model, rows)
    assert not out.exists()
    with (tmp_path / "z.npy.part").open("ab") as file:
        file.write(b"half a block")
    with monkeypatch.context() as patch:
        calls = stop_after(patch, 9)
        assert embedding_file.write_in_blocks(out, model, rows) == 2 * BLOCK
        assert calls == [2 * BLOCK, 3 * BLOCK]
    np.testing.assert_array_equal(np.load(out), model.transform(X))


def test_parts_of_other_rows_or_weights_are_not_used(model, X, tmp_path, monkeypatch):
    out = tmp_path / "z.npy"
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(KeyboardInterrupt):
            embedding_file.write_in_blocks(out, model, as_rows(X))
    assert embedding_file.write_in_blocks(out, model, as_rows(X + 1)) == 0
    np.testing.assert_array_equal(np.load(out), model.transform(X + 1))


def test_two_calls_do_not_write_to_one_file_at_once(model, X, tmp_path):
    out = tmp_path / "z.npy"
    with FileLock(tmp_path / "z.npy.part.lock"), pytest.raises(InputError, match="another process"):
        embedding_file.write_in_blocks(out, model, as_rows(X))


def test_a_place_that_cannot_be_written_is_named(model, X, tmp_path):
    (tmp_path / "z.npy.part").mkdir()
    with pytest.raises(InputError, match=r"z\.npy can't be written"):
        embedding_file.write_in_blocks(tmp_path / "z.npy", model, as_rows(X))


def test_the_command_writes_so_above_a_number_of_rows(call, model, X, tmp_path, monkeypatch):
    monkeypatch.setattr(embedding_file, "MANY", BLOCK)
    model.save(tmp_path / "run")
    np.save(tmp_path / "X.npy", X)
    used = []
    plain = embedding_file.write_in_blocks
    monkeypatch.setattr(embedding_file, "write_in_blocks", lambda *a: used.append(a) or plain(*a))
    code, _, err = call("embed", "run", "X.npy", "--out", "z.npy")
    assert code == 0, err
    assert used
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), model.transform(X))
