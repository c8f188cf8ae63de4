"""Weights to start from, against scipy's generalised eigenvectors."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.linalg import eigh
from torch import nn

from selfview import SelfView
from selfview.networks.start import locality_start
from selfview.rows.conversion import as_rows


def neighbours(rng, n=300):
    """Pairs of rows that differ much in the first columns, and little in the last."""
    x = rng.normal(size=(n, 6))
    near = x + rng.normal(size=(n, 6)) * np.array([2, 1, 1, 0.5, 0.2, 0.1])
    return torch.from_numpy(x).float(), torch.from_numpy(near).float()


def test_outputs_are_those_in_which_neighbours_differ_least(rng):
    x, near = neighbours(rng)
    layers = nn.Sequential(nn.Identity(), nn.Linear(6, 2))
    locality_start(layers, x, near)
    both = torch.cat([x, near]).double().numpy()
    both -= both.mean(0)
    C = both.T @ both / len(both)
    difference = (x - near).double().numpy()
    _, vectors = eigh(
        difference.T @ difference / (2 * len(x)), C + 1e-3 * C.trace() / 6 * np.eye(6)
    )
    ours = layers(torch.cat([x, near])).detach().numpy()
    np.testing.assert_allclose(np.abs(ours), np.abs(both @ vectors[:, :2]), atol=1e-3)
    np.testing.assert_allclose(ours.std(0), 1, atol=1e-2)


@pytest.mark.parametrize("x", [torch.ones(9, 4), torch.eye(4)[:2]])
def test_a_start_without_enough_directions_is_finite(x):
    layers = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 6))
    locality_start(layers, x, x)
    assert torch.isfinite(layers(x)).all()
    assert layers[0].num_batches_tracked == 1  # by the line above alone


@pytest.mark.parametrize(
    ("rows", "given", "count", "walks"),
    [(999, {}, 10, False), (1000, {}, 6, True), (1000, {"neighbours": 8}, 8, False)],
)
def test_many_rows_have_fewer_neighbours_and_walks_over_them(rng, rows, given, count, walks):
    model = SelfView(random_state=0, verbose=0, **given)
    X = as_rows(rng.normal(size=(rows, 5)).astype(np.float32))
    plan = model._complete(X, model._plan(X))
    assert plan.neighbours.count == count
    chances = [plan.neighbours.walk(epoch) for epoch in (0, plan.epochs)]
    assert chances == (pytest.approx([0.8, 0]) if walks else [0, 0])


def test_rows_in_groups_are_not_walked_over(rng):
    model = SelfView(random_state=0, verbose=0)
    X = as_rows(rng.normal(size=(1200, 5)).astype(np.float32))
    plan = model._complete(X, replace(model._plan(X), groups=np.arange(1200) % 3))
    assert plan.neighbours.count == 10
    assert plan.neighbours.walk(0.0) == 0
