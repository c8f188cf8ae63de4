"""Rows: every kind of input gives the same batch, and bad input a clear error."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch

from selfview.errors import InputError
from selfview.rows.conversion import as_rows


class Items(torch.utils.data.Dataset):
    def __init__(self, X):
        self.X = X

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i], "a label that nobody may see"


@pytest.fixture
def X(rng):
    X = rng.integers(-3, 4, size=(50, 6))
    X[X < 0] = 0
    return X


def memmap(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


KINDS = {
    "float64": lambda X, _: X.astype(float),
    "integers": lambda X, _: X,
    "booleans": lambda X, _: X > 0,
    "fortran order": lambda X, _: np.asfortranarray(X.astype(float)),
    "every second row": lambda X, _: np.repeat(X, 2, axis=0)[::2],
    "memmap": memmap,
    "csr": lambda X, _: sp.csr_matrix(X),
    "csc": lambda X, _: sp.csc_array(X),
    "coo": lambda X, _: sp.coo_array(X),
    "tensor": lambda X, _: torch.tensor(X),
    "half tensor": lambda X, _: torch.tensor(X, dtype=torch.bfloat16),
    "sparse tensor": lambda X, _: torch.tensor(X).to_sparse(),
    "data frame": lambda X, _: pd.DataFrame(X),
    "polars frame": lambda X, _: pl.DataFrame(X),
    "Arrow table": lambda X, _: pl.DataFrame(X).to_arrow(),
    "nested list": lambda X, _: X.tolist(),
    "Dataset": lambda X, _: Items(X),
    "TensorDataset": lambda X, _: torch.utils.data.TensorDataset(torch.tensor(X)),
    "Subset": lambda X, _: torch.utils.data.Subset(Items(X), range(len(X))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_input_gives_the_same_batch(kind, X, tmp_path):
    rows = as_rows(KINDS[kind](X, tmp_path))
    index = np.array([3, 49, 0, 3])
    X = X > 0 if kind == "booleans" else X
    batch = rows.take(index)
    assert batch.dtype == torch.float32
    np.testing.assert_array_equal(batch.numpy(), X[index])
    np.testing.assert_array_equal(rows.take(slice(5, 9)).numpy(), X[5:9])
    assert rows.n == 50
    assert rows.shape == (6,)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_input_has_the_same_summary(kind, X, tmp_path):
    values = (X > 0 if kind == "booleans" else X).astype(float)
    summary = as_rows(KINDS[kind](X, tmp_path)).summary()
    assert summary.mean_norm == pytest.approx(np.linalg.norm(values, axis=1).mean())
    assert summary.density == pytest.approx((values != 0).mean())
    assert not summary.negative
    assert not summary.constant


def test_batches_are_copies_of_the_callers_memory(rng):
    X = rng.normal(size=(4, 3)).astype(np.float32)
    for source in (X, torch.tensor(X)):
        as_rows(source).take(slice(0, 2)).zero_()
    assert (X != 0).all()


def test_a_memory_map_is_never_read_whole(tmp_path):
    shape = (1 << 20, 1 << 16)  # 256 GiB of holes
    with open(tmp_path / "huge.npy", "wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 4 * shape[0] * shape[1])
    rows = as_rows(np.load(tmp_path / "huge.npy", mmap_mode="r"))
    assert rows.take(np.array([0, shape[0] - 1])).shape == (2, shape[1])


def test_only_the_asked_rows_of_a_sparse_matrix_are_made_dense():
    X = sp.eye_array(10**6)  # 4 TB if dense
    rows = as_rows(X)
    assert rows.take(np.array([0, 10**6 - 1])).shape == (2, 10**6)
    assert rows.summary().density == pytest.approx(1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize(
    "kind",
    ["float64", "memmap", "csr", "csc", "tensor", "data frame", "polars frame", "Dataset"],
)
def test_the_first_bad_number_is_named_with_row_and_column(kind, bad, X, tmp_path):
    X = X.astype(float)
    X[31, 4] = bad
    X[44, 0] = np.nan
    rows = as_rows(KINDS[kind](X, tmp_path))
    for look in (rows.check, rows.summary):
        with pytest.raises(InputError, match="row 31, column 4"):
            look()


def test_large_but_finite_numbers_pass_the_check():
    rows = as_rows(np.full((4, 4), 3e38))
    rows.check()
    assert rows.summary().mean_norm == pytest.approx(6e38)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((0, 4)), "empty"),
        (np.zeros((4, 0)), r"0 feature\(s\)"),
        (np.zeros(4), "two dimensions"),
        (np.array(["a", "b"]), "numbers"),
        (np.array([["a", "b"]]), "numbers"),
        (np.array([[1, {}]], dtype=object), "dtype object"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "numbers"),
        (np.zeros((2, 2), complex), "Complex"),
        (torch.zeros(2, 2, dtype=torch.complex64), "Complex"),
        ([[1, 2], [3]], "differ in length"),
        ("text", "numbers"),
        (None, "numbers"),
        (pd.DataFrame({"a": [1.0], "city": ["Ulm"]}), "column city of the data frame is not"),
        (pl.DataFrame({"a": [1.0], "city": ["Ulm"]}), "column city of the data frame is not"),
        (pl.DataFrame({"a": ["b"], "c": [None]}), "columns a, c of the data frame are not"),
        (pl.DataFrame({"a": ["b"]}).to_arrow(), "column a of the data frame is not"),
        (pl.DataFrame({"a": [1.0]}).lazy(), r"pass X\.collect\(\)"),
        (sp.csr_array(np.zeros((3, 3), complex)), "Complex"),
        (np.ma.masked_greater(np.eye(3), 0), "masked entries: fill them first"),
        (Items(["words", "words"]), "item 0 of the Dataset is a str"),
        (Items([]), "empty"),
    ],
)
def test_what_is_not_a_table_of_numbers_is_refused(X, message):
    with pytest.raises(InputError, match=message):
        as_rows(X)


@pytest.mark.parametrize("of", [lambda frame: frame, lambda frame: frame.to_arrow()])
def test_what_is_missing_in_a_frame_of_other_types_is_named(of):
    frame = pl.DataFrame({"yes": [True, False], "few": pl.Series([7, 8], dtype=pl.UInt8)})
    assert as_rows(of(frame)).take(slice(None)).tolist() == [[1.0, 7.0], [0.0, 8.0]]
    gap = of(frame.with_columns(few=pl.Series([7, None], dtype=pl.UInt8)))
    with pytest.raises(InputError, match="NaN at row 1, column 1"):
        as_rows(gap).check()


def test_items_of_different_shapes_are_named():
    rows = as_rows(Items([torch.zeros(3), torch.zeros(4)]))
    with pytest.raises(InputError, match=r"item 1 of the Dataset has shape \(4,\)"):
        rows.take(np.array([0, 1]))


def test_a_loader_is_asked_for_its_dataset():
    loader = torch.utils.data.DataLoader(torch.zeros(8, 3))
    with pytest.raises(InputError, match=r"pass its dataset, loader\.dataset"):
        as_rows(loader)


def test_an_iterable_dataset_is_refused():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter([])

    with pytest.raises(InputError, match="iterable"):
        as_rows(Stream())


def test_equal_rows_are_noticed_in_every_container():
    X = np.tile([0.0, 2.0, 0.0], (10, 1))
    for source in (X, sp.csr_array(X), torch.tensor(X)):
        assert as_rows(source).summary().constant


def test_text_like_is_sparse_and_not_negative(rng):
    sparse = np.where(rng.random((100, 50)) < 0.03, 1.0, 0.0)
    assert as_rows(sparse).summary().text_like
    assert as_rows(sp.csr_array(sparse)).summary().text_like
    assert not as_rows(-sparse).summary().text_like
    assert not as_rows(rng.random((100, 50))).summary().text_like
