"""Views: their length, their direction, and that they leave nothing behind."""

import pytest
import torch
from torch import nn

from selfview.networks.encoders import EncoderHead, cnn_encoder, head, mlp_encoder
from selfview.views import (
    adversarial_perturbation,
    frozen_batch_norm_stats,
    random_perturbation,
    scaled,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return EncoderHead(mlp_encoder(20, 5), head(5, 10), epsilon=1.0, temperature=1.0)


def step(network, x, epsilon=2.0, xi=10.0, seed=0, **kwargs):
    with frozen_batch_norm_stats(network):
        with torch.no_grad():
            p = torch.softmax(network(x), 1)
        return adversarial_perturbation(
            network, x, p, epsilon=epsilon, xi=xi, generator=generator(seed), **kwargs
        )


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 500.0])
def test_every_row_of_a_view_moves_by_epsilon(network, epsilon):
    moved = step(network, torch.randn(32, 20, generator=generator()), epsilon)
    torch.testing.assert_close(moved.norm(dim=1), torch.full((32,), epsilon), rtol=1e-5, atol=0)


def test_every_image_of_a_view_moves_by_epsilon():
    torch.manual_seed(0)
    network = EncoderHead(cnn_encoder((3, 16, 16), 5), head(5, 10), epsilon=1.0, temperature=1.0)
    moved = step(network, torch.randn(8, 3, 16, 16, generator=generator()), 3.0)
    torch.testing.assert_close(moved.flatten(1).norm(dim=1), torch.full((8,), 3.0))


def test_random_steps_have_their_length_and_differ_between_rows():
    moved = random_perturbation(torch.zeros(16, 4, 3), 7.0, generator())
    torch.testing.assert_close(moved.flatten(1).norm(dim=1), torch.full((16,), 7.0))
    assert len(moved.flatten(1).unique(dim=0)) == 16


def test_scaling_survives_tiny_huge_and_zero_vectors():
    rows = torch.tensor([[3e-30, 4e-30], [3e30, 4e30], [0.0, 0.0]])
    torch.testing.assert_close(scaled(rows, 5.0), torch.tensor([[3.0, 4], [3, 4], [0, 0]]))


@pytest.mark.parametrize("exponent", [-100, -45, -30, 20, 45, 100])
def test_scaling_by_a_power_of_two_changes_no_bit(exponent):
    rows = torch.randn(16, 30, generator=generator())
    assert torch.equal(scaled(2.0**exponent * rows, 5.0), scaled(rows, 5.0))


def test_direction_converges_to_the_top_eigenvector_for_a_linear_softmax_model():
    torch.manual_seed(0)
    dim, k = 8, 5
    linear = nn.Linear(dim, k).double()
    W = linear.weight.detach()
    x = torch.randn(6, dim, dtype=torch.float64)
    p = torch.softmax(linear(x), 1).detach()
    found = adversarial_perturbation(
        linear, x, p, epsilon=1.0, xi=1e-3, generator=generator(), power_iterations=60
    )
    for row, direction in zip(p, found.double(), strict=True):
        fisher = W.T @ (torch.diag(row) - torch.outer(row, row)) @ W
        top = torch.linalg.eigh(fisher).eigenvectors[:, -1]
        assert abs(float(top @ direction)) == pytest.approx(1.0, abs=1e-3)


def test_one_step_changes_the_prediction_more_than_a_random_one_does(network):
    x = torch.randn(64, 20, generator=generator())
    network.eval()
    p = torch.softmax(network(x), 1).detach()

    def change(moved):
        q = torch.softmax(network(x + moved), 1)
        return (p * (p / q).log()).sum(1).mean().item()

    adversarial = change(step(network, x, epsilon=1.0, xi=1.0))
    assert adversarial > 2 * change(random_perturbation(x, 1.0, generator(1)))


@pytest.mark.parametrize("training", [True, False])
def test_a_view_leaves_gradients_statistics_and_modes_as_they_were(network, training):
    network.train(training)
    x = torch.randn(32, 20, generator=generator())
    for parameter in network.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = {name: t.clone() for name, t in network.state_dict().items()}
    step(network, x)
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert all(torch.equal(p.grad, torch.ones_like(p)) for p in network.parameters())
    assert all(module.training == training for module in network.modules())
    assert all(getattr(m, "track_running_stats", True) for m in network.modules())


def test_statistics_are_given_back_also_after_an_error(network):
    with pytest.raises(RuntimeError), frozen_batch_norm_stats(network):
        raise RuntimeError
    assert all(getattr(m, "track_running_stats", True) for m in network.modules())


def test_a_norm_that_tracked_nothing_still_tracks_nothing():
    norm = nn.BatchNorm1d(3, track_running_stats=False)
    with frozen_batch_norm_stats(norm):
        pass
    assert norm.track_running_stats is False


def test_the_callers_batch_is_not_changed(network):
    x = torch.randn(8, 20, generator=generator())
    copy = x.clone()
    step(network, x)
    assert torch.equal(x, copy)
    assert not x.requires_grad


def test_the_generator_decides(network):
    x = torch.randn(8, 20, generator=generator())
    assert torch.equal(step(network, x, seed=1), step(network, x, seed=1))
    assert not torch.equal(step(network, x, seed=1), step(network, x, seed=2))


def test_steps_of_a_row_come_from_probes_of_their_own():
    dim = 6
    x = torch.zeros(4000, dim)
    seen = []

    def network(probes):
        seen.append(probes.detach())
        return torch.cat([probes, -probes], 1)

    p = torch.full((4000, 2 * dim), 1 / (2 * dim))
    found = adversarial_perturbation(
        network, x, p, epsilon=1.0, xi=2.0, generator=generator(), count=2
    )
    assert found.shape == (8000, dim)
    first, second = seen[0].view(4000, 2, dim).unbind(1)
    torch.testing.assert_close(first.norm(dim=1), torch.full((4000,), 2.0))
    # Of independent directions that are uniform on the sphere, products are 4 / dim in the mean
    # square along any axis, and 0 between axes or between the two.
    for a, b, expected in ((first, first, torch.eye(dim)), (first, second, torch.zeros(dim, dim))):
        torch.testing.assert_close(a.T @ b / 4000 * dim / 4, expected, atol=0.08, rtol=0)
    inner = (first * second).sum(1)
    assert abs(inner.square().mean() * dim / 16 - 1) < 0.1


def test_a_step_is_found_for_every_probe_by_itself(network):
    x = torch.randn(16, 20, generator=generator())
    network.eval()  # rows by themselves
    both = step(network, x, count=2).view(16, 2, 20)
    assert not torch.allclose(both[:, 0], both[:, 1], atol=0.1)
    draws = torch.randn(17, 20, generator=generator())
    for i in range(2):
        probes = (x + scaled(draws[i : i + 16], 10.0)).requires_grad_()
        p = torch.softmax(network(x), 1).detach()
        loss = -(p * torch.log_softmax(network(probes), 1)).sum()
        (gradient,) = torch.autograd.grad(loss, probes)
        torch.testing.assert_close(both[:, i], scaled(gradient, 2.0), rtol=1e-3, atol=1e-4)
