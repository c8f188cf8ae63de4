"""A whole optimiser step of recipe="paper" is the one of a plain implementation, to rounding."""

import copy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from selfview import SelfView
from selfview.rows.conversion import as_rows
from selfview.training.loop import train
from selfview.training.optimiser import Adam

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import plain

BATCH, K = 64, 20


@pytest.mark.parametrize("shape", [(30,), (1, 12, 12)])
def test_a_step_of_the_papers_recipe_is_that_of_a_plain_implementation(shape):
    X = np.random.default_rng(0).normal(size=(BATCH, *shape)).astype(np.float32)
    model = SelfView(5, recipe="paper", n_prototypes=K, warmup=0, random_state=0, verbose=0)
    rows = as_rows(X)
    plan = model._complete(rows, model._plan(rows))
    network = model._new_network(plan).train()
    theirs = copy.deepcopy(network)
    (phase,) = model._phases(network, plan)
    steps = train(
        [phase],
        [Adam(phase.parameters)],
        lambda index: plan.batch(rows, np.sort(index)),
        BATCH,
        epochs=range(1),
        batch_size=BATCH,
        seed=0,
        device=plan.device,
    )
    seen = {}
    take = torch.randn

    def spy(*size, **options):  # the random numbers that our step draws
        seen["noise"] = take(*size, **options)
        return seen["noise"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "randn", spy)
        (metrics,) = steps
    starts = iter([seen["noise"][:-1], seen["noise"][1:]])  # of the first and the second view
    step = plain.step(
        theirs,
        plan.batch(rows, np.arange(BATCH)),
        epsilon=float(network.epsilon),
        xi=plan.settings.xi,
        k=K,
        precision="float32",
        draw=lambda x: next(starts).view_as(x),
    )
    assert step() == pytest.approx(metrics["loss"], rel=1e-4)
    ours, other = (
        torch.cat([p.detach().flatten() for p in net.parameters()]) for net in (network, theirs)
    )
    # Adam's first step is the learning rate times the gradient's sign. Where a gradient is rounding
    # alone, as of biases before batch norm, that may be either.
    moved = (ours - other).abs()
    assert moved.max() <= 2 * 5e-4 + 1e-6
    assert (moved < 1e-5).float().mean() > 0.97
