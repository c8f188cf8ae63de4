"""Sinkhorn against POT and its own laws; the temperature policy against a transcription."""

import math

import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from selfview.distributed import WHOLE
from selfview.targets import (
    _far_apart,
    adapt,
    entropy,
    marginal_error,
    scheduled_entropy,
    sinkhorn,
)


def logits(batch, k, scale=1.0, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(batch, k, generator=generator, dtype=dtype)


@pytest.mark.parametrize(("batch", "k"), [(64, 10), (7, 30), (50, 50), (3, 2)])
@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_agrees_with_pot_at_convergence(batch, k, temperature):
    o = logits(batch, k, scale=2.0)
    plan = ot.sinkhorn(
        np.full(batch, 1 / batch),
        np.full(k, 1 / k),
        -o.numpy(),
        reg=temperature,
        method="sinkhorn_log",
        numItermax=20000,
        stopThr=1e-14,
    )
    q = sinkhorn(o, temperature, iterations=3000)
    np.testing.assert_allclose(q.numpy() / batch, plan, atol=1e-6 / batch, rtol=1e-6)


def plain_sinkhorn(o, temperature, iterations):
    """The paper's Algorithm 1 with PAPER readings, in the log domain, round by round."""
    log_kernel = (o / temperature).double()
    v = torch.zeros(o.shape[1], dtype=torch.float64)
    for _ in range(iterations):
        u = -torch.logsumexp(log_kernel + v, 1)
        v = -torch.logsumexp(log_kernel + u[:, None], 0)
    return torch.softmax(log_kernel + v, 1)


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(1, 40),
    k=st.integers(2, 60),
    scale=st.sampled_from([0.0, 0.1, 3.0, 30.0, 1e4]),
    temperature=st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    iterations=st.integers(1, 35),
    seed=st.integers(0, 1000),
)
def test_fast_rounds_equal_plain_rounds(batch, k, scale, temperature, iterations, seed):
    o = logits(batch, k, scale, seed)
    q = sinkhorn(o, temperature, iterations)
    torch.testing.assert_close(q, plain_sinkhorn(o, temperature, iterations), atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("scale", [0.1, 3.0, 30.0])
@pytest.mark.parametrize(("batch", "k"), [(256, 100), (3000, 200)])
def test_the_quick_way_equals_the_one_for_any_logits(batch, k, scale):
    o = logits(batch, k, scale, dtype=torch.float32)
    expected = _far_apart(o, 0.5, 10, WHOLE)
    torch.testing.assert_close(sinkhorn(o, 0.5, 10), expected, atol=1e-6, rtol=1e-4)


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(1, 40),
    k=st.integers(2, 60),
    scale=st.sampled_from([0.0, 1.0, 100.0, 1e4]),
    seed=st.integers(0, 1000),
)
def test_finite_distributions_for_any_logits_in_float32(batch, k, scale, seed):
    o = logits(batch, k, scale, seed, dtype=torch.float32).clamp(-1e4, 1e4)
    q = sinkhorn(o, 0.1, iterations=10)
    assert torch.isfinite(q).all()
    assert (q >= 0).all()
    torch.testing.assert_close(q.sum(1), torch.ones(batch), atol=1e-5, rtol=0)


def test_one_prototype_far_above_all_others_stays_finite():
    o = torch.full((20, 5), -1e4)
    o[:, 0] = 1e4
    q = sinkhorn(o, 0.1, iterations=10)
    # 1e5 has two decimals in float32.
    torch.testing.assert_close(q, torch.full_like(q, 0.2), atol=0.01, rtol=0)


def test_columns_approach_their_share_with_iterations():
    o = logits(100, 20, scale=5.0)
    errors = [marginal_error(sinkhorn(o, 0.5, n)) for n in (1, 3, 10, 100, 1000)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-6


@pytest.mark.parametrize("iterations", [1, 5, 50])
def test_rows_are_exactly_distributions(iterations):
    q = sinkhorn(logits(100, 20, scale=5.0), 0.5, iterations)
    torch.testing.assert_close(q.sum(1), torch.ones(100, dtype=torch.float64), atol=1e-12, rtol=0)


def test_adding_a_constant_to_a_row_or_column_changes_nothing_at_convergence():
    o = logits(30, 8)
    shifted = o + logits(30, 1, seed=1) + logits(1, 8, seed=2)
    torch.testing.assert_close(sinkhorn(o, 1.0, 500), sinkhorn(shifted, 1.0, 500))


def test_lower_temperature_gives_lower_entropy():
    o = logits(100, 20, scale=3.0)
    values = [float(entropy(sinkhorn(o, t, 50))) for t in (0.1, 0.3, 0.6, 1.0, 2.0)]
    assert values == sorted(values)


def algorithm_2(o, lam, s, t_warm, iterations):
    """The paper's Algorithm 2, line by line, with the warmed-up target (Eq. 8)."""
    k = o.shape[1]
    h_target, h_tol, h_step = math.log(math.sqrt(k)), 5e-3, 1e-1
    h_scale = (math.cos(math.pi * min(s / t_warm, 1.0)) + 1) / 2
    h_hat = h_target + (math.log(k) - h_target) * h_scale

    def mean_entropy(q):
        return float(-(q * q.clamp_min(1e-300).log()).sum(1).mean())

    q = plain_sinkhorn(o, lam, iterations)
    for _ in range(5):
        if mean_entropy(q) - h_hat > h_tol:
            lam = max(lam - h_step, 0.1)
        elif mean_entropy(q) - h_hat < -h_tol:
            lam = min(lam + h_step, 1)
        else:
            break
        q = plain_sinkhorn(o, lam, iterations)
    return q, lam


@settings(max_examples=80, deadline=None)
@given(
    k=st.sampled_from([2, 10, 100]),
    scale=st.sampled_from([0.01, 0.5, 2.0, 20.0]),
    start=st.sampled_from([0.1, 0.3, 0.7, 1.0]),
    progress=st.sampled_from([0.0, 0.2, 0.5, 1.0, 7.0]),
    seed=st.integers(0, 1000),
)
def test_policy_equals_the_papers_algorithm(k, scale, start, progress, seed):
    o = logits(64, k, scale, seed)
    expected_q, expected = algorithm_2(o, start, s=progress * 50, t_warm=50, iterations=10)
    aim = scheduled_entropy(math.log(k) / 2, k, progress)
    q, temperature = adapt(o, start, aim, iterations=10)
    assert temperature == pytest.approx(expected, abs=1e-12)
    torch.testing.assert_close(q, expected_q, atol=1e-8, rtol=1e-6)


def test_schedule_falls_from_log_k_to_the_target():
    k, final = 100, math.log(10)
    values = [scheduled_entropy(final, k, p) for p in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert values[0] == pytest.approx(math.log(k))
    assert values[2] == pytest.approx((math.log(k) + final) / 2)
    assert values[-1] == pytest.approx(final)
    assert values == sorted(values, reverse=True)
    assert scheduled_entropy(final, k, 3.0) == pytest.approx(final)
