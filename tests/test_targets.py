"""Sinkhorn against POT and its own laws; the temperature policy against a transcription."""

import math

import numpy as np
import ot
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from selfview.targets import (
    adapt_temperature,
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


def pots_rounds(o, temperature, iterations):
    """As many rounds of POT in the log domain, and the rows of its plan as distributions.

    POT scales columns first, so it gets the transpose.
    """
    m, k = o.shape
    with np.errstate(over="ignore", invalid="ignore"):  # of an error that is not looked at here
        _, log = ot.bregman.sinkhorn_log(
            np.full(k, 1 / k),
            np.full(m, 1 / m),
            -o.double().numpy().T,
            reg=temperature,
            numItermax=iterations,
            stopThr=0,
            log=True,
            warn=False,
        )
    return torch.softmax(o.double() / temperature + torch.from_numpy(log["log_u"]), 1)


@st.composite
def shapes(draw):
    """Up to 200,000 rows or 5,000 prototypes, with at most 400,000 entries."""
    batch = int(10 ** draw(st.floats(0, math.log10(200_000))))
    return batch, draw(st.integers(1, max(1, min(5000, 400_000 // batch))))


@settings(max_examples=40, deadline=None)
@given(
    shape=shapes(),
    scale=st.sampled_from([0.0, 0.1, 3.0, 30.0, 1e3, 1e4]),
    temperature=st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    iterations=st.sampled_from([1, 2, 3, 10, 20, 21, 45]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 1000),
)
@example((16384, 2), 1.0, 1.0, 10, torch.float32, 0)
@example((131072, 10), 1.0, 1.0, 10, torch.float32, 0)
@example((200_000, 2), 1e4, 0.1, 10, torch.float32, 0)
@example((2, 5000), 1e4, 0.1, 10, torch.float32, 0)
@example((200, 5000), 1e4, 0.1, 10, torch.float32, 0)
def test_rounds_are_those_of_pot_for_any_shape_and_any_logits(
    shape, scale, temperature, iterations, dtype, seed
):
    o = logits(*shape, scale, seed, dtype).clamp(-1e4, 1e4)
    q = sinkhorn(o, temperature, iterations)
    assert q.dtype == dtype
    expected = pots_rounds(o, temperature, iterations)
    torch.testing.assert_close(q.double(), expected, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(q.double().sum(1), torch.ones(len(q)).double(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("largest", [1e4, 1e20, 3e38])
def test_one_prototype_far_above_all_others_stays_finite(largest):
    o = torch.full((20, 5), -largest)
    o[:, 0] = largest
    q = sinkhorn(o, 0.1, iterations=30)
    torch.testing.assert_close(q, torch.full_like(q, 0.2))


@pytest.mark.slow
def test_five_thousand_prototypes_for_two_hundred_thousand_rows():
    some = logits(2000, 5000, scale=100.0, dtype=torch.float32).clamp(-1e4, 1e4)
    expected = pots_rounds(some, 0.1, 10)
    q = sinkhorn(some.repeat(100, 1), 0.1, 10)
    # Rows that are repeated count for all columns alike, and so change nothing.
    for part in q.split(2000):
        torch.testing.assert_close(part.double(), expected, atol=1e-6, rtol=1e-6)


def test_the_logits_are_left_as_they_were():
    o = logits(30, 8)
    before = o.clone()
    sinkhorn(o, 0.5, 30)
    assert torch.equal(o, before)


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

    q = pots_rounds(o, lam, iterations)
    for _ in range(5):
        if mean_entropy(q) - h_hat > h_tol:
            lam = max(lam - h_step, 0.1)
        elif mean_entropy(q) - h_hat < -h_tol:
            lam = min(lam + h_step, 1)
        else:
            break
        q = pots_rounds(o, lam, iterations)
    return q, lam


@settings(max_examples=50, deadline=None)
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
    q, temperature = adapt_temperature(o, start, aim, iterations=10)
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
