"""MINE against closed forms and laws."""

import numpy as np
import pytest
import torch

from selfview import SelfViewWarning, evaluate
from selfview.evaluation import mutual_information


def gaussians(dim, rho, n=6000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dim))
    return x, rho * x + np.sqrt(1 - rho**2) * rng.normal(size=(n, dim))


def mine(Z, y, **options):
    return evaluate(Z, y, measures="mine", **options)["mine"]


MORE = [
    pytest.param(*case, marks=pytest.mark.slow) for case in ((1, 0.8), (2, 0.9), (3, 0.4), (5, 0.5))
]


@pytest.mark.parametrize(("dim", "rho"), [(5, 0.9), *MORE])
def test_correlated_gaussians_have_the_closed_forms_information(dim, rho):
    Z, y = gaussians(dim, rho)
    truth = -dim / 2 * np.log(1 - rho**2)
    assert mine(Z, y, target="continuous") == pytest.approx(truth, rel=0.1)


@pytest.mark.slow
def test_independent_data_have_none():
    rng = np.random.default_rng(1)
    assert abs(mine(rng.normal(size=(1500, 5)), rng.normal(size=(1500, 3)))) < 0.05
    assert abs(mine(rng.normal(size=(1500, 5)), rng.integers(0, 10, 1500))) < 0.05


def test_separated_classes_reach_the_entropy_and_never_pass_it():
    y = np.repeat(np.arange(8), 250)
    Z = 5 * np.eye(8)[y] + 0.1 * np.random.default_rng(0).normal(size=(2000, 8))
    value = mine(Z, y)
    assert 0.97 * np.log(8) < value <= np.log(8) + 1e-3
    # the bound holds for data made to be memorised, too
    assert mine(np.random.default_rng(0).normal(size=(60, 50)), np.arange(60) % 3) <= np.log(3)


@pytest.mark.slow
def test_two_overlapping_classes_have_the_integrals_information():
    # I = ln 2 - E[h(p(1|z))] for z ~ N(+-1, 1), by quadrature
    grid = np.linspace(-9, 9, 20001)
    density = [np.exp(-((grid - m) ** 2) / 2) / np.sqrt(2 * np.pi) for m in (-1, 1)]
    mixture = (density[0] + density[1]) / 2
    truth = sum(0.5 * np.trapezoid(d * np.log(d / mixture), grid) for d in density)
    y = np.repeat([0, 1], 3000)
    Z = np.random.default_rng(0).normal(size=(6000, 1)) + 2 * y[:, None] - 1
    assert mine(Z, y) == pytest.approx(truth, rel=0.1)


@pytest.mark.slow
def test_the_scale_of_the_features_does_not_matter(monkeypatch):
    monkeypatch.setattr(mutual_information, "STEPS", 100)
    Z, y = gaussians(3, 0.7, n=1000)
    plain = mine(Z, y)
    assert mine(1000 * Z, 1000 * y + 5) == pytest.approx(plain, abs=0.02)


@pytest.mark.slow
def test_one_wild_row_does_not_decide(monkeypatch):
    monkeypatch.setattr(mutual_information, "STEPS", 100)
    Z, y = gaussians(2, 0.8, n=1000)
    plain = mine(Z, y)
    Z[7] = 1e30
    assert mine(Z, y) == pytest.approx(plain, abs=0.1)


def test_the_callers_random_state_and_modes_are_left_alone(monkeypatch):
    monkeypatch.setattr(mutual_information, "STEPS", 40)
    Z, y = gaussians(1, 0.5, n=100)
    state = torch.get_rng_state()
    with torch.inference_mode():
        inside = evaluate(Z, y, measures="mine")
    assert torch.equal(state, torch.get_rng_state())
    assert evaluate(Z, y, measures="mine") == inside
    assert inside["mine_spread"] > 0


def test_too_few_rows_give_nan_and_a_warning():
    with pytest.warns(SelfViewWarning, match="too few rows"):
        assert np.isnan(mine(np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1]))
