"""Verdicts are true: fits whose outcome is known beforehand are called what they are."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_blobs
from torch import nn

from selfview import SelfView
from selfview.estimator import verdict

DIGITS = load_digits().data.astype(np.float32)
NOTHING, SHORT, FEW = verdict.NOTHING, verdict.TOO_SHORT, verdict.TOO_FEW


def random():
    return np.random.default_rng(0)


def correlated():
    return random().multivariate_normal(DIGITS.mean(0), np.cov(DIGITS.T), 600)


def permuted():
    return random().permuted(DIGITS[:800], axis=0)


def texts(topics=4, n=600, words=400):
    """Rows as of tf-idf: few of many words, most of them from one topic."""
    rng = random()
    common = rng.dirichlet(np.full(words, 0.1))
    own = rng.dirichlet(np.full(words, 0.05), topics)
    share = (common + 2 * own) / 3
    counts = np.stack([rng.multinomial(30, share[i % topics]) for i in range(n)])
    return np.log1p(counts) * np.log(n / (1 + (counts > 0).sum(0)))


class Point(nn.Module):
    """Gives every row the same embedding."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return (0 * x[:, :1] + self.weight).expand(-1, 3) * torch.ones(3)


SHORTLY = {"epochs": 3}  # what tells noise is in the rows
FITS = {
    "gaussian noise": (lambda: random().normal(size=(600, 30)), SHORTLY, NOTHING),
    "gaussian noise of few columns": (lambda: random().normal(size=(600, 3)), SHORTLY, NOTHING),
    "gaussian noise of many columns": (lambda: random().normal(size=(300, 200)), SHORTLY, NOTHING),
    "uniform noise": (lambda: random().uniform(size=(600, 20)), SHORTLY, NOTHING),
    "heavy tails": (lambda: random().standard_t(3, size=(600, 20)), SHORTLY, NOTHING),
    "lognormal noise": (lambda: random().lognormal(size=(600, 15)), SHORTLY, NOTHING),
    "correlated noise": (correlated, SHORTLY, NOTHING),
    "noise of unlike columns": (
        lambda: random().normal(size=(600, 15)) * np.geomspace(1, 1e4, 15),
        SHORTLY,
        NOTHING,
    ),
    "sparse noise": (lambda: random().random((800, 200)) < 0.05, SHORTLY, NOTHING),
    "columns permuted": (permuted, SHORTLY, NOTHING),
    "pictures of noise": (lambda: random().normal(size=(300, 12, 12)), {"epochs": 3}, NOTHING),
    "one blob far away": (lambda: 50 + random().normal(size=(600, 20)), SHORTLY, NOTHING),
    "noise learned by heart": (lambda: random().normal(size=(300, 20)), {"epochs": 40}, NOTHING),
    "rows all equal": (lambda: np.ones((100, 5)), {}, NOTHING),
    "five rows, often": (lambda: np.repeat(random().normal(size=(5, 20)), 60, 0), {}, FEW),
    "forty rows": (lambda: DIGITS[:40], {}, FEW),
    "a rate of 100": (lambda: DIGITS, {"epochs": 6, "learning_rate": 100.0}, verdict.DIVERGED),
    "a rate of 1e-8": (lambda: DIGITS[:600], {"learning_rate": 1e-8}, SHORT),
    "an epsilon of 1,000": (lambda: DIGITS[:600], {"epsilon": 1e3}, NOTHING),
    "a constant encoder": (lambda: DIGITS, {"encoder": Point()}, verdict.COLLAPSED),
    "three steps": (lambda: DIGITS[:600], {"recipe": "paper", "epochs": 1}, SHORT),
    "digits": (lambda: DIGITS, {"epochs": "auto"}, verdict.SOUND),
    # 24 steps from a locality preserving start are better than PCA.
    "digits in three epochs": (lambda: DIGITS, {"epochs": 3}, verdict.SOUND),
    "few digits in one epoch": (lambda: DIGITS[:600], {"epochs": 1}, SHORT),
    "digits for long": (lambda: DIGITS[:600], {"epochs": 40}, verdict.SOUND),
    "digits as pictures": (lambda: DIGITS.reshape(-1, 8, 8), {"epochs": 12}, verdict.SOUND),
    "every digit twice": (
        lambda: np.repeat(DIGITS[:800], 2, 0),
        {"epochs": "auto"},
        verdict.SOUND,
    ),
    "texts": (texts, {"epochs": "auto"}, verdict.SOUND),
    "clusters": (
        lambda: make_blobs(120, 20, centers=5, random_state=0)[0],
        {"epochs": 150, "batch_size": 60},
        verdict.SOUND,
    ),
    "clusters that touch": (
        lambda: make_blobs(600, 20, centers=5, cluster_std=4, random_state=0)[0],
        {"epochs": "auto"},
        verdict.SOUND,
    ),
    "wine": (lambda: load_wine().data, {"epochs": "auto"}, verdict.SOUND),
    "breast cancer": (lambda: load_breast_cancer().data, {"epochs": "auto"}, verdict.SOUND),
}
LONG = {"digits for long", "noise learned by heart", "clusters", "every digit twice"}
CAUSES = {
    "a rate of 100": "Lower learning_rate",
    "a rate of 1e-8": "Raise learning_rate",
    "an epsilon of 1,000": "Lower epsilon",
    "three steps": "Raise epochs",
}


@pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in FITS]
)
def test_a_fit_is_called_what_it_is(name):
    make, options, outcome = FITS[name]
    given = {"epochs": 10, "random_state": 0, "verbose": 0, "precision": "float32"} | options
    found = SelfView(**given).fit(make()).health_
    assert found["outcome"] == outcome, found
    assert found["healthy"] == (outcome == verdict.SOUND)
    assert found["verdict"].startswith(f"{outcome}: ")
    assert CAUSES.get(name, "") in found["verdict"]
