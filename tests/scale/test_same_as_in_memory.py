"""The same data on disk, beyond the buffer, and in memory: the same method, as good a result."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import cross_val_score

from selfview import SelfView, load_dataset
from selfview.rows import on_disk, projection

POINT = 0.01
EPOCHS = 60


def scores(Z, y):
    """Linear probe by cross validation, and NMI of k-means with the classes."""
    Z = (Z - Z.mean(0)) / Z.std(0)
    probe = cross_val_score(LogisticRegression(max_iter=500), Z, y, cv=5).mean()
    found = KMeans(len(np.unique(y)), n_init=10, random_state=0).fit_predict(Z)
    return np.array([probe, normalized_mutual_info_score(y, found)])


def fitted(X, **given):
    return SelfView(random_state=0, verbose=0, **given).fit(X)


def stay_on_disk(monkeypatch, block_rows, kept_rows, row_bytes):
    """Buffers so small that neither rows nor their components are in memory whole."""
    monkeypatch.setattr(on_disk, "BLOCK_BYTES", block_rows * row_bytes)
    monkeypatch.setattr(on_disk, "BUFFER_BYTES", kept_rows * row_bytes)
    monkeypatch.setattr(projection, "CACHED_ENTRIES", 0)


@pytest.fixture
def digits():
    X, y = load_digits(return_X_y=True)
    return (X / 16).astype(np.float32), y


def test_rows_beyond_the_buffer_are_fitted_by_the_same_method(digits, tmp_path, monkeypatch):
    X, _ = digits
    np.save(tmp_path / "X.npy", X)
    in_memory = fitted(X, epochs=1).decided_
    stay_on_disk(monkeypatch, 10, 600, 256)
    on_disk_ = fitted(np.load(tmp_path / "X.npy", mmap_mode="r"), epochs=1).decided_
    assert on_disk_["neighbours"] > 0
    assert on_disk_["contrast"] > 0
    assert on_disk_ == pytest.approx(in_memory)


def test_rows_beyond_the_buffer_are_embedded_as_well_as_in_memory(digits, tmp_path, monkeypatch):
    X, y = digits
    np.save(tmp_path / "X.npy", X)
    in_memory = scores(fitted(X, epochs=EPOCHS).transform(X), y)
    stay_on_disk(monkeypatch, 10, 600, 256)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = scores(fitted(mapped, epochs=EPOCHS).transform(X), y)
    assert (found > in_memory - POINT).all(), (found, in_memory)


@pytest.mark.slow
def test_mnist_on_disk_is_embedded_as_well_as_in_memory(tmp_path, monkeypatch):
    dataset = load_dataset("mnist")
    X = np.asarray(dataset.X, np.float32).reshape(len(dataset), -1)
    np.save(tmp_path / "X.npy", X)
    in_memory = scores(fitted(X).transform(X), dataset.labels)
    stay_on_disk(monkeypatch, 334, (64 << 20) // 3136, 3136)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = scores(fitted(mapped).transform(X), dataset.labels)
    assert (found > in_memory - POINT).all(), (found, in_memory)
