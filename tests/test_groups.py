"""Groups: pairs across them, what is learned with them, and when there is nothing to pair."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from selfview import CollapseWarning, InputError, SelfView, SelfViewWarning, evaluate
from selfview.neighbours.across_groups import (
    RIDGE,
    centred,
    group_search,
    mutual_pairs,
    whitening,
    without_differences,
)
from selfview.rows.conversion import as_rows
from selfview.rows.projection import ProjectedRows, principal_components

SMALL = dict(random_state=0, verbose=0)
# Blobs without any structure within are not what an embedding is for, and the verdict says so.
pytestmark = pytest.mark.filterwarnings("ignore::selfview.CollapseWarning")


def make_batches(seed=0, n=100, groups=3, classes=4, columns=20, ways=None, apart=2.5):
    """Rows of some classes, measured with instruments of an offset and a gain each.

    Offsets lie in so many `ways`, directions that all instruments share; in any, if not given.
    """
    rng = np.random.default_rng(seed)
    centres = apart * rng.normal(size=(classes, columns))
    y, g = rng.integers(0, classes, groups * n), np.repeat(np.arange(groups), n)
    X = centres[y] + rng.normal(size=(len(y), columns))
    if ways is None:
        offsets = 4 * rng.normal(size=(groups, columns))
    else:
        offsets = 6 * rng.normal(size=(groups, ways)) @ rng.normal(size=(ways, columns))
    gains = rng.uniform(0.7, 1.4, (groups, 1))
    return (gains[g] * X + offsets[g]).astype(np.float32), y, g


@pytest.fixture(scope="module")
def batches():
    return make_batches()


@pytest.fixture(scope="module")
def fitted(batches):
    X, _, g = batches
    return SelfView(5, **SMALL).fit(X), SelfView(5, **SMALL).fit(X, groups=g)


def test_groups_are_centred_and_scaled_each_by_itself(batches):
    X, _, g = batches
    points = centred(torch.from_numpy(X), [np.flatnonzero(g == c) for c in range(3)])
    for c in range(3):
        part = points[g == c]
        torch.testing.assert_close(part.mean(0), torch.zeros(20), atol=1e-5, rtol=0)
        assert part.square().sum(1).mean() == pytest.approx(1, rel=1e-4)


def test_pairs_are_mutual_and_of_different_groups(batches):
    X, y, g = batches
    members = [np.flatnonzero(g == c) for c in range(3)]
    i, j = mutual_pairs(centred(torch.from_numpy(X), members), members)
    assert (g[i] != g[j]).all()
    assert {*zip(i.tolist(), j.tolist(), strict=True)} == {
        *zip(j.tolist(), i.tolist(), strict=True)
    }
    assert (y[i] == y[j]).mean() > 0.9


def test_what_differs_between_groups_counts_less_in_what_a_network_sees(batches):
    X, y, g = batches
    rows = as_rows(X)
    plain = ProjectedRows(rows, principal_components(rows, 20, length=16.0))
    given = dict(angle=False, power=0.0, length=16.0)
    found = ProjectedRows(rows, without_differences(plain, g, **given))

    def between(points, of):
        """Share of the variance that lies between the means of the parts."""
        means = np.stack([points[of == part].mean(0) for part in np.unique(of)])[of]
        return np.square(means - points.mean(0)).sum() / np.square(points - points.mean(0)).sum()

    before, after = (p.take(slice(None)).numpy() for p in (plain, found))
    assert between(after, g) < 0.5 * between(before, g)
    assert between(after, y) > between(before, y)
    assert np.square(after).sum(1).mean() == pytest.approx(16**2, rel=1e-3)
    map_back = np.linalg.lstsq(after, before, rcond=None)[0]
    np.testing.assert_allclose(after @ map_back, before, atol=0.02)  # nothing is lost


def test_groups_without_pairs_leave_the_projection_as_it_is():
    rows = as_rows(np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32))
    plain = ProjectedRows(rows, principal_components(rows, 5))
    found = without_differences(plain, np.zeros(60, np.int64), angle=False, power=0.0, length=16.0)
    assert found is plain.projection


def test_differences_are_white_after_whitening():
    torch.manual_seed(0)
    differences = torch.randn(5000, 3) * torch.tensor([3.0, 2.0, 1.0])
    stds = (differences @ whitening(differences)).std(0)
    variances = torch.tensor([9.0, 4.0, 1.0])
    expected = (variances / (variances + RIDGE * variances.mean())).sqrt()  # its closed form
    torch.testing.assert_close(stds, expected, rtol=0.05, atol=0)


def test_own_neighbours_are_of_the_own_group_and_others_are_not(batches):
    X, _, g = batches
    within, across = group_search(torch.from_numpy(X), g, 7, angle=False)
    assert (g[within] == g[:, None]).all()
    assert (within != np.arange(len(g))[:, None]).all()
    rows, _ = np.nonzero(across >= 0)
    assert (g[across[across >= 0]] != g[rows]).all()


def test_what_differs_between_groups_is_not_learned(batches, fitted):
    X, y, g = batches
    plain, grouped = (
        evaluate(model.transform(X), y, groups=g, measures=["clustering", "mixing"])
        for model in fitted
    )
    assert plain["kmeans_nmi"] < 0.8
    assert grouped["kmeans_nmi"] > 0.9
    assert grouped["ilisi"] > plain["ilisi"] + 0.2
    assert grouped["group_silhouette"] < plain["group_silhouette"]


def test_transform_needs_no_groups_and_takes_rows_of_a_group_never_seen():
    X, y, g = make_batches(n=60, groups=6, ways=2, apart=1.5)
    seen = g != 5
    scores = []
    for groups in (None, g[seen]):
        model = SelfView(5, **SMALL).fit(X[seen], groups=groups)
        probe = LogisticRegression(max_iter=1000).fit(model.transform(X[seen]), y[seen])
        scores.append(probe.score(model.transform(X[~seen]), y[~seen]))
    assert scores[1] > 0.9
    assert scores[1] > scores[0] + 0.1


def test_the_names_of_groups_do_not_matter(batches, fitted):
    X, _, g = batches
    named = SelfView(5, **SMALL).fit(X, groups=np.array(["ann", "bob", "eve"])[g])
    np.testing.assert_array_equal(named.transform(X), fitted[1].transform(X))


def test_one_group_or_groups_of_one_row_are_left_aside_with_a_warning(batches, fitted):
    X, _, _ = batches
    for groups, told in ((np.zeros(len(X)), "one group"), (np.arange(len(X)), "300 groups of 1")):
        with pytest.warns(SelfViewWarning, match=f"groups holds {told}.*goes on without groups"):
            model = SelfView(5, **SMALL).fit(X, groups=groups)
        np.testing.assert_array_equal(model.transform(X), fitted[0].transform(X))


def test_a_group_of_one_row_among_others_is_embedded_too(batches):
    X, _, g = batches
    groups = g.copy()
    groups[0] = 7
    with pytest.warns(SelfViewWarning, match="1 of 4 groups have nothing in common"):
        model = SelfView(5, epochs=2, **SMALL).fit(X, groups=groups)
    assert np.isfinite(model.transform(X)).all()


def test_sets_that_share_nothing_are_not_mixed():
    rng = np.random.default_rng(0)
    X = rng.normal(scale=0.1, size=(400, 40)).astype(np.float32)
    y = rng.integers(0, 3, 400)
    X[:200, :20] += 3 * rng.normal(size=(3, 20))[y[:200]]  # each in columns of its own
    X[200:, 20:] += 3 * rng.normal(size=(3, 20))[y[200:]]
    groups = np.repeat([0, 1], 200)
    with pytest.warns(SelfViewWarning, match="the groups have nothing in common"):
        model = SelfView(5, **SMALL).fit(X, groups=groups)
    scores = evaluate(model.transform(X), y, groups=groups, measures="mixing")
    assert scores["group_graph_accuracy"] > 0.99
    assert scores["ilisi"] < 1.05


def test_a_fit_with_groups_resumes_with_the_same_bits(batches, tmp_path):
    X, _, g = batches
    given = dict(n_components=3, epochs=3, **SMALL)
    whole = SelfView(**given).fit(X, groups=g)
    SelfView(**given, checkpoint=tmp_path).fit(X, groups=g)
    again = SelfView(**given, checkpoint=tmp_path).fit(X, groups=g)
    np.testing.assert_array_equal(again.transform(X), whole.transform(X))
    from selfview.errors import CheckpointError

    with pytest.raises(CheckpointError, match="the rows' groups was"):
        SelfView(**given, checkpoint=tmp_path).fit(X, groups=(g + 1) % 2)


@pytest.mark.parametrize("options", [{"neighbours": 0}, {"recipe": "paper"}])
def test_groups_are_not_ignored_where_there_are_no_neighbours(batches, options):
    X, _, g = batches
    with pytest.raises(InputError, match="neighbours must be at least 1 with groups"):
        SelfView(5, epochs=1, **SMALL, **options).fit(X, groups=g)


def test_groups_must_be_one_for_each_row(batches):
    X, _, g = batches
    with pytest.raises(InputError, match="for each of the 300 rows"):
        SelfView(5, **SMALL).fit(X, groups=g[:-1])


def test_fit_transform_takes_groups_and_nothing_is_warned_of(batches, fitted):
    X, _, g = batches
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CollapseWarning)
        Z = SelfView(5, **SMALL).fit_transform(X, groups=g)
    np.testing.assert_array_equal(Z, fitted[1].transform(X))
