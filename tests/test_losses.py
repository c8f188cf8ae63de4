"""The swapped loss: closed form, finite differences, and where gradients may not go."""

import pytest
import torch
from torch.distributions import Categorical, kl_divergence

from selfview.losses import info_nce, kl, swapped_kl


def some(batch=6, k=5, seed=0):
    return torch.randn(batch, k, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_kl_equals_torch_distributions():
    q, o = torch.softmax(some(seed=1), 1), some(seed=2)
    expected = kl_divergence(Categorical(probs=q), Categorical(logits=o)).mean()
    torch.testing.assert_close(kl(q, o), expected)


def test_kl_of_a_distribution_to_itself_is_zero_also_for_one_hot_targets():
    one_hot = torch.eye(4, dtype=torch.float64)
    assert kl(one_hot, 1e3 * one_hot).item() == 0.0
    o = some()
    assert abs(kl(torch.softmax(o, 1), o).item()) < 1e-12


def test_gradient_by_finite_differences():
    q1, q2 = torch.softmax(some(seed=1), 1), torch.softmax(some(seed=2), 1)
    o1, o2 = some(seed=3).requires_grad_(), some(seed=4).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: swapped_kl(q1, a, q2, b), (o1, o2))


def test_each_view_learns_the_target_of_the_other():
    q1, q2 = torch.softmax(some(seed=1), 1), torch.softmax(some(seed=2), 1)
    o1, o2 = some(seed=3).requires_grad_(), some(seed=4)
    (gradient,) = torch.autograd.grad(swapped_kl(q1, o1, q2, o2), o1)
    torch.testing.assert_close(gradient, (torch.softmax(o1, 1) - q2) / len(q2))


def test_no_gradient_reaches_the_targets():
    q = torch.softmax(some(), 1).requires_grad_()
    o = some(seed=1).requires_grad_()
    _, to_q = torch.autograd.grad(kl(q, o), (o, q), allow_unused=True)
    assert to_q is None


def test_half_precision_logits_give_a_float32_loss():
    q, o = torch.softmax(some(), 1).float(), some(seed=1).bfloat16()
    assert kl(q, o).dtype == torch.float32


def test_rows_are_told_apart_as_a_plain_loop_over_pairs_does():
    z1, z2 = some(k=3, seed=1), some(k=3, seed=2)
    likeness = [[1 / (1 + float((a - b).square().sum())) for b in z2] for a in z1]
    table = torch.tensor(likeness, dtype=torch.float64)
    shares = (table.diagonal() / table.sum(1)).log() + (table.diagonal() / table.sum(0)).log()
    torch.testing.assert_close(info_nce(z1, z2), -shares.mean() / 2)
    # Where they lie makes no difference, even far from the origin in float32.
    moved = info_nce(z1.float() + 500, z2.float() + 500)
    torch.testing.assert_close(moved.double(), -shares.mean() / 2, atol=1e-3, rtol=0)


def test_the_power_of_the_kernel_and_the_attraction_count_as_the_formula_says():
    z1, z2 = some(k=3, seed=1), some(k=3, seed=2)
    logs = -3 * torch.log1p(torch.cdist(z1, z2).square())  # the kernel to the power 3
    repulsion = (logs.logsumexp(0).mean() + logs.logsumexp(1).mean()) / 2
    expected = repulsion - 2 * logs.diagonal().mean()
    torch.testing.assert_close(info_nce(z1, z2, power=3.0, attraction=2.0), expected)


def test_one_point_for_all_is_worst_and_pairs_far_apart_are_best():
    same = torch.zeros(8, 2)
    assert info_nce(same, same).item() == pytest.approx(torch.tensor(8.0).log().item())
    apart = 1e6 * torch.arange(8.0)[:, None]
    assert info_nce(apart, apart).item() < 1e-6


def test_gradient_of_telling_rows_apart_by_finite_differences():
    z1, z2 = some(k=3, seed=1).requires_grad_(), some(k=3, seed=2).requires_grad_()
    assert torch.autograd.gradcheck(info_nce, (z1, z2))


def test_rows_are_told_apart_in_float32_also_under_autocast():
    z1, z2 = some(k=3, seed=1).float(), some(k=3, seed=2).float()
    with torch.autocast("cpu", torch.bfloat16):
        inside = info_nce(z1, z2)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, info_nce(z1, z2))
