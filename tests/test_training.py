"""The loop: every row once an epoch, seeded by position, and stopped when numbers end."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from selfview.networks.encoders import cnn_encoder
from selfview.training.loop import Phase, TrainingError, all_finite, batches, step_seed, train
from selfview.training.optimiser import Adam


def train_on_zeros(phase, width, epochs):
    """Two steps an epoch, on eight rows of zeros."""
    return train(
        [phase],
        [Adam(phase.parameters)],
        lambda index: torch.zeros(len(index), width),
        8,
        epochs=range(epochs),
        batch_size=4,
        seed=0,
        device=torch.device("cpu"),
    )


@given(n=st.integers(2, 700), size=st.integers(2, 300), seed=st.integers(0, 9))
def test_an_epoch_takes_every_row_once_in_even_batches(n, size, seed):
    parts = batches(n, size, seed, epoch=3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    lengths = [len(part) for part in parts]
    assert max(lengths) <= max(size, 3)
    assert min(lengths) >= 2
    assert max(lengths) - min(lengths) <= 1


def test_order_depends_on_seed_and_epoch_alone():
    def order(seed, epoch):
        return np.concatenate(batches(100, 10, seed, epoch)).tolist()

    assert order(1, 2) == order(1, 2)
    assert len({tuple(order(s, e)) for s in range(3) for e in range(3)}) == 9


def test_every_step_draws_its_own_numbers():
    assert len({step_seed(s, e, i) for s in range(5) for e in range(5) for i in range(5)}) == 125


def regression(learning_rate=0.1, broken=False):
    torch.manual_seed(0)
    model, X = nn.Linear(3, 1), torch.randn(64, 3)
    y = X.sum(1, keepdim=True)
    data = torch.cat([X, y], 1)

    def loss(step):
        x, target = step.batch[:, :3], step.batch[:, 3:]
        value = (model(x) - target).square().mean()
        return (value * float("nan") if broken and step.epoch >= 1 else value), {"seen": len(x)}

    phase = Phase("error", list(model.parameters()), loss, lambda epoch: learning_rate)

    optimiser = Adam(phase.parameters)

    def run(epochs, **kwargs):
        return train(
            [phase],
            [optimiser],
            lambda index: data[torch.from_numpy(index)],
            64,
            epochs=epochs,
            batch_size=16,
            seed=0,
            device=torch.device("cpu"),
            **kwargs,
        )

    return model, run


def test_it_learns_and_reports_an_epoch_a_row():
    model, run = regression()
    rows = list(run(range(60)))
    assert [row["epoch"] for row in rows] == list(range(1, 61))
    assert rows[-1]["error"] < 1e-3 * rows[0]["error"]
    assert rows[0]["seen"] == 16
    torch.testing.assert_close(model.weight.detach(), torch.ones(1, 3), atol=0.02, rtol=0)


def test_no_gradients_are_left_behind():
    model, run = regression()
    list(run(range(1)))
    assert all(p.grad is None for p in model.parameters())


def test_a_loss_that_is_not_finite_stops_with_the_epoch_and_a_remedy():
    model, run = regression(broken=True)
    steps = run(range(5))
    next(steps)
    before = model.weight.detach().clone()
    with pytest.raises(TrainingError, match=r"error became nan in epoch 2\. Lower learning_rate"):
        next(steps)
    assert torch.equal(model.weight, before)


def test_the_learning_rate_follows_its_schedule():
    seen = []
    model, _ = regression()
    phase = Phase(
        "error",
        list(model.parameters()),
        lambda step: (model(step.batch).sum(), {}),
        lambda epoch: seen.append(epoch) or 0.1,
    )
    list(train_on_zeros(phase, 3, epochs=2))
    assert seen == [0.0, 0.5, 1.0, 1.5]


def test_training_goes_on_from_within_an_epoch_with_the_same_bits_and_metrics():
    whole_model, run = regression()
    rows = list(run(range(3)))
    model, run = regression()
    parts = []

    def stop(part):
        parts.append(part)
        if len(parts) == 5:  # three offers an epoch of four steps: the second epoch's second
            raise KeyboardInterrupt

    steps = run(range(3), after_step=stop)
    assert next(steps) == rows[0]
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert [part.steps for part in parts] == [1, 2, 3, 1, 2]
    assert list(run(range(1, 3), start=parts[-1])) == rows[1:]
    assert torch.equal(model.weight, whole_model.weight)


def test_a_gradient_that_is_not_finite_leaves_the_weights_alone():
    weight = nn.Parameter(torch.zeros(2))
    # The loss is 0; the square root's slope there is not a number.
    phase = Phase("loss", [weight], lambda step: (weight.sqrt().sum(), {}), lambda epoch: 0.1)
    steps = train_on_zeros(phase, 2, epochs=1)
    with pytest.raises(TrainingError, match=r"gradient of the loss .* in epoch 1\. Lower"):
        next(steps)
    assert torch.equal(weight, torch.zeros(2))


def test_large_finite_numbers_are_finite():
    assert all_finite([torch.full((10,), 3e38)])
    assert not all_finite([torch.tensor([1.0]), torch.tensor([1.0, float("inf")])])
    assert not all_finite([torch.tensor([float("inf"), -float("inf")])])


@pytest.mark.parametrize("channels", [1, 3])
def test_convolutions_learn_as_with_an_optimiser_that_minds_the_layout(channels):
    torch.manual_seed(0)
    ours = cnn_encoder((channels, 12, 12), 4)
    theirs = copy.deepcopy(ours)
    x = torch.randn(16, channels, 12, 12).contiguous(memory_format=torch.channels_last)

    def loss(step):
        return ours(step.batch).square().sum(), {}

    phase = Phase("loss", list(ours.parameters()), loss, lambda _: 1e-2)
    epochs = train(
        [phase],
        [Adam(phase.parameters)],
        lambda index: x[index],
        16,
        epochs=range(4),
        batch_size=16,
        seed=0,
        device=torch.device("cpu"),
    )
    found = [row["loss"] for row in epochs]
    plain = torch.optim.Adam(theirs.parameters(), lr=1e-2, foreach=False, fused=False)
    expected = []
    for _ in range(4):
        plain.zero_grad()
        value = theirs(x).square().sum()
        value.backward()
        plain.step()
        expected.append(value.item())
    assert found == pytest.approx(expected, rel=1e-3)
