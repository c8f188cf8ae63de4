"""Mixing of groups: rows whose mixing is known, and the definition of LISI row by row."""

import numpy as np
import pytest

from selfview import InputError, evaluate
from selfview.evaluation.mixing import lisi


def scores(Z, groups):
    y = np.arange(len(Z)) % 2
    return evaluate(Z, y, groups=groups, measures="mixing")


def test_mixed_groups_and_groups_apart_are_told_apart(rng):
    groups = np.repeat(["a", "b", "c"], 100)
    Z = rng.normal(size=(300, 3))
    mixed, apart = scores(Z, groups), scores(Z + 50 * (groups == "b")[:, None], groups)
    assert mixed["ilisi"] > 2.5
    assert mixed["group_graph_accuracy"] < 0.5
    assert abs(mixed["group_silhouette"]) < 0.05
    assert apart["ilisi"] < 2.1  # a and c are still mixed
    assert apart["group_graph_accuracy"] > mixed["group_graph_accuracy"]
    assert apart["group_silhouette"] > 0.3
    assert mixed["n_groups"] == 3


def test_lisi_is_the_inverse_simpson_index_of_weights_of_the_perplexity_asked(rng):
    Z, codes = rng.normal(size=(80, 2)), rng.integers(0, 3, 80)
    found = lisi(Z, codes, perplexity=10)
    for row in (0, 17, 79):
        distances = np.linalg.norm(Z - Z[row], axis=1)
        near = np.argsort(distances)[1:31]
        betas = np.geomspace(1e-3, 1e3, 20_000)[:, None]
        P = np.exp(-betas * (distances[near] - distances[near].min()))
        P /= P.sum(axis=1, keepdims=True)
        perplexities = np.exp(-(P * np.log(P + 1e-300)).sum(axis=1))
        p = P[np.abs(perplexities - 10).argmin()]
        shares = [p[codes[near] == c].sum() for c in range(3)]
        assert found[row] == pytest.approx(1 / np.square(shares).sum(), rel=1e-2)


def test_all_measures_the_mixing_only_if_there_are_groups(rng):
    Z, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    assert "ilisi" not in evaluate(Z, y, measures=["linear", "effective_rank"])
    with pytest.raises(InputError, match="mixing needs the group of every row: pass it as groups"):
        evaluate(Z, y, measures="mixing")


@pytest.mark.parametrize(
    ("groups", "told"),
    [
        (np.zeros(59), "for each of the 60 rows, got \\(59,\\)"),
        (np.full(60, np.nan), "row 0 has np.float64\\(nan\\)|row 0 has nan"),
        (["a"] * 59 + [None], "row 59 has None"),
    ],
)
def test_groups_that_are_no_groups_are_an_error(rng, groups, told):
    with pytest.raises(InputError, match=told):
        scores(rng.normal(size=(60, 2)), groups)
