"""A floor under the method's quality, on real data that everybody has."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from selfview import SelfView, evaluate, load_dataset

EPOCHS = 20  # 160 steps: seconds on two cores


def test_digits_are_told_apart_better_than_by_pca():
    X, y = load_digits(return_X_y=True)
    model = SelfView(n_components=10, epochs=EPOCHS, random_state=0, verbose=0).fit(X)
    ours, pca = (
        evaluate(Z, y, measures=["linear"], random_state=0)["linear_accuracy"]
        for Z in (model.transform(X), PCA(10, random_state=0).fit_transform(X))
    )
    assert ours >= 0.955
    assert ours > pca
    assert model.health_["healthy"]


@pytest.mark.slow
def test_spoken_digits_reach_the_papers_row_in_150_epochs(real_data):
    # The paper: 86.9 after 5,000 epochs.
    data = load_dataset("fsdd")
    scores = []
    for seed in range(3):
        model = SelfView(n_components=10, epochs=150, random_state=seed, verbose=0)
        scores.append(evaluate(model.fit_transform(data.X), data.y, measures=["linear"]))
    assert np.mean([score["linear_accuracy"] for score in scores]) >= 0.869


def test_digits_in_another_unit_are_told_apart_as_well():
    X, y = load_digits(return_X_y=True)
    scores = [
        evaluate(
            SelfView(epochs=6, random_state=0, verbose=0).fit_transform(unit * X),
            y,
            measures=["linear"],
        )["linear_accuracy"]
        for unit in (1.0, 1000.0, 0.001)
    ]
    assert min(scores) > 0.9
    assert max(scores) - min(scores) < 0.02
