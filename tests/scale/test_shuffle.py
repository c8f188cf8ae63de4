"""Block order does not leak: rows sorted by class on disk teach as much as shuffled ones."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from torch import nn

from selfview import SelfView
from selfview.rows import on_disk

ROW = 64 * 4  # bytes of a row of digits


def accuracy(X, y):
    """How well a linear probe tells the digits from the embedding, by cross validation."""
    torch.manual_seed(0)  # of the encoder: its weights are ours, not the model's
    encoder = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
    # Without neighbours: order alone counts.
    given = dict(n_prototypes=30, neighbours=0, epochs=12, random_state=0, verbose=0)
    model = SelfView(encoder=encoder, **given)
    Z = model.fit_transform(X)
    probe = LogisticRegression(max_iter=500)
    return cross_val_score(probe, (Z - Z.mean(0)) / Z.std(0), y, cv=3).mean()


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    rng = np.random.default_rng(0)
    mixed = rng.permutation(len(y))
    return X[mixed], y[mixed]


@pytest.fixture(scope="module")
def in_memory(digits):
    return accuracy(*digits)


# A class has about 180 rows. Blocks much smaller than that, with a buffer of several classes; and
# a buffer smaller than one class, in which twelve blocks must stand for all ten.
@pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")
@pytest.mark.parametrize(("block", "kept"), [(10, 600), (10, 120)])
def test_sorted_rows_on_disk_teach_as_much_as_shuffled_ones(
    block, kept, digits, in_memory, tmp_path, monkeypatch
):
    X, y = digits
    by_class = np.argsort(y, kind="stable")
    np.save(tmp_path / "sorted.npy", X[by_class])
    monkeypatch.setattr(on_disk, "BLOCK_BYTES", block * ROW)
    monkeypatch.setattr(on_disk, "BUFFER_BYTES", kept * ROW)
    found = accuracy(np.load(tmp_path / "sorted.npy", mmap_mode="r"), y[by_class])
    assert in_memory > 0.85
    assert found > in_memory - 0.05
