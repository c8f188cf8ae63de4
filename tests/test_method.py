"""SelfView end to end: inputs, laws, errors, and what it promises."""

import math
import pickle
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import scipy.spatial
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from torch import nn

from selfview import CollapseWarning, InputError, SelfView, SelfViewWarning, evaluate
from selfview.estimator import pairs
from selfview.estimator.plan import AUTO_STEPS
from selfview.neighbours.search import Neighbours
from selfview.networks.forward import split_views
from selfview.rows.conversion import as_rows
from selfview.training.loop import Step, n_batches

# A few steps teach nothing, and a run says so; here that is meant.
pytestmark = pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")


def small(**kwargs):
    """A model that learns in a blink."""
    given = dict(n_components=3, n_prototypes=8, epochs=3, random_state=0, verbose=0)
    return SelfView(**given | kwargs)


def same_weights(a, b):
    states = a.network_.state_dict(), b.network_.state_dict()
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0])


# -- the same seed, the same bits -----------------------------------------------------------------


def test_same_seed_same_bits_other_seed_other_bits(blobs):
    X, _ = blobs
    assert same_weights(small().fit(X), small().fit(X))
    assert not same_weights(small().fit(X), small(random_state=1).fit(X))


def test_the_callers_random_state_neither_matters_nor_changes(blobs):
    X, _ = blobs
    torch.manual_seed(5)
    first = small().fit(X)
    state = torch.get_rng_state()
    second = small().fit(X)
    assert torch.equal(torch.get_rng_state(), state)
    assert same_weights(first, second)


def test_labels_can_not_reach_fit(blobs, rng):
    X, y = blobs
    assert same_weights(small().fit(X, y), small().fit(X, rng.permutation(y)))


def test_the_container_of_the_rows_changes_nothing(blobs):
    X, _ = blobs
    expected = small().fit(X)
    for other in (X.astype(np.float64), torch.tensor(X), sp.csr_array(X), pd.DataFrame(X)):
        assert same_weights(expected, small().fit(other))


def test_a_dropout_encoder_is_repeatable_too(blobs):
    X, _ = blobs
    own = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))
    assert same_weights(small(encoder=own).fit(X), small(encoder=own).fit(X))


# -- transform ------------------------------------------------------------------------------------


def test_a_rows_embedding_does_not_depend_on_the_rows_beside_it(blobs):
    X, _ = blobs
    model = small().fit(X)
    Z = model.transform(X)
    for i in (0, 17, 239):
        alone = model.transform(X[i : i + 1])[0]
        assert np.linalg.norm(alone - Z[i]) <= 1e-5 * np.linalg.norm(Z[i])


def test_a_row_has_the_same_bits_alone_and_as_one_of_a_few(blobs):
    X, _ = blobs
    model = small().fit(X)
    few = model.transform(X[:32])
    probabilities = model.predict_proba(X[:32])
    for n in (1, 2, 3, 7, 31):
        np.testing.assert_array_equal(model.transform(X[:n]), few[:n])
        np.testing.assert_array_equal(model.predict_proba(X[:n]), probabilities[:n])


def test_transform_in_pieces_equals_transform_at_once(blobs):
    X, _ = blobs
    model = small().fit(X)
    many = np.tile(X, (40, 1))  # more rows than one piece
    np.testing.assert_allclose(model.transform(many)[-240:], model.transform(X), rtol=1e-5)


def test_probabilities_are_distributions_over_the_prototypes(blobs):
    X, _ = blobs
    p = small().fit(X).predict_proba(X)
    assert p.shape == (240, 8)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    assert (p >= 0).all()


def test_transform_changes_nothing_in_the_model(blobs):
    X, _ = blobs
    model = small().fit(X)
    before = {k: v.clone() for k, v in model.network_.state_dict().items()}
    model.transform(X)
    model.predict_proba(X)
    assert all(torch.equal(v, before[k]) for k, v in model.network_.state_dict().items())


# -- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("views", ["adversarial", "random", "random+adversarial", "none"])
@pytest.mark.parametrize("batch_norm", ["both", "encoder", "head", "none"])
def test_all_views_and_places_of_batch_norm_learn(blobs, views, batch_norm):
    X, _ = blobs
    model = small(views=views, batch_norm=batch_norm).fit(X)
    assert np.isfinite(model.transform(X)).all()
    norms = [n for n, m in model.network_.named_modules() if isinstance(m, nn.BatchNorm1d)]
    assert any(n.startswith("encoder") for n in norms) == (batch_norm in ("both", "encoder"))
    assert any(n.startswith("head") for n in norms) == (batch_norm in ("both", "head"))


class Witness(nn.Linear):
    """An encoder that keeps the views that it was last given while it learned."""

    def forward(self, x):
        if self.training:
            self.seen = x.detach()
        return super().forward(x)


@pytest.mark.parametrize(("given", "length"), [({}, 10.0), (dict(xi=0.5), 0.5)])
def test_random_views_lie_xi_away_from_their_rows(given, length):
    X = np.zeros((8, 5), np.float32)
    model = small(encoder=Witness(5, 3), recipe="paper", views="random", epsilon=2.0, **given)
    with pytest.warns(SelfViewWarning, match="all rows are equal"):
        model.fit(X)
    views = model.network_.encoder.seen
    assert torch.allclose(views.norm(dim=1), torch.tensor(length))
    assert not torch.allclose(views[0], views[1])


@pytest.mark.parametrize("k", [2, 3, 1000, 3000])
def test_any_number_of_prototypes_works(blobs, k):
    X, _ = blobs
    model = small(n_prototypes=k, epochs=1).fit(X[:60])
    assert model.predict_proba(X[:5]).shape == (5, k)


@pytest.mark.parametrize(("n", "batch_size"), [(2, 256), (5, 2), (33, 32), (257, 256), (7, 3)])
def test_batches_smaller_than_k_and_odd_rests_work(rng, n, batch_size):
    X = rng.normal(size=(n, 4))
    model = small(n_prototypes=50, batch_size=batch_size).fit(X)
    assert np.isfinite(model.transform(X)).all()


def test_a_constant_temperature_stays_constant(blobs):
    X, _ = blobs
    history = small(temperature=0.4).fit(X).history_
    assert {row["temperature"] for row in history} == {0.4}


def test_the_adaptive_temperature_brings_the_entropy_to_its_target(blobs):
    X, _ = blobs
    own = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
    aims = (math.log(20) / 2, 2.5)
    models = [
        small(encoder=own, n_prototypes=20, epochs=60, warmup=5, target_entropy=aim).fit(X)
        for aim in aims
    ]
    for model, aim in zip(models, aims, strict=True):
        assert abs(model.history_[-1]["entropy"] - aim) < 0.35


def test_auto_steps_grow_with_the_rows_and_stay_few(rng):
    def steps(*shape, **given):
        rows = as_rows(np.broadcast_to(rng.normal(size=(1, *shape[1:])), shape))
        model = small(**{"n_components": 10, "epochs": "auto", **given})
        plan = model._complete(rows, model._plan(rows))
        return plan.epochs * n_batches(shape[0], 256)

    assert 50 <= steps(200, 5) < steps(900, 5) < steps(3000, 5) <= 520
    assert steps(3000, 5, n_components=2) > 2 * steps(3000, 5)
    assert steps(3000, 5) == steps(3000, 700)
    assert steps(50_000, 5) > 2000
    fewest, most = AUTO_STEPS  # of encoders whose step may cost anything
    assert steps(62, 3, 128, 128) == steps(62, 5)  # few pictures learn as fast as few rows
    assert steps(1_000, 1, 28, 28) == steps(1_000, 5)
    assert steps(2_000, 1, 28, 28, encoder="cnn") == pytest.approx(fewest, rel=0.1)
    assert steps(2_000, 1, 28, 28, recipe="paper") == pytest.approx(fewest, rel=0.1)
    assert steps(300, 2, encoder=nn.Linear(2, 2)) == most


def test_contrast_counts_by_its_weight_and_only_beside_neighbours(blobs):
    X, _ = blobs

    def first_loss(**given):
        return small(epochs=1, batch_size=len(X), **given).fit(X).history_[0]["loss"]

    without, once, twice = (first_loss(contrast=weight) for weight in (0, 1, 2))
    assert once > without
    assert twice - once == pytest.approx(once - without, rel=1e-4)
    assert first_loss() == once
    alone = first_loss(neighbours=0)
    assert alone == first_loss(neighbours=0, contrast=0) < first_loss(neighbours=0, contrast=1)
    paper = first_loss(recipe="paper")
    assert paper == first_loss(recipe="paper", contrast=0)


@pytest.mark.parametrize(
    ("recipe", "n", "side", "encoder"),
    [
        ("selfview", 1001, 12, "mlp"),
        ("selfview", 1001, 112, "dense-cnn"),
        ("selfview", 1000, 12, "dense-cnn"),
        ("paper", 1001, 12, "cnn"),
    ],
)
def test_the_recipe_says_which_encoder_images_get(recipe, n, side, encoder, rng, tmp_path):
    X = rng.random((n, side, side), dtype=np.float32)
    model = small(epochs=1, batch_size=500, recipe=recipe).fit(X)
    model.save(tmp_path / "model")
    again = SelfView.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X[:9]), model.transform(X[:9]))
    found = model.network_.encoder
    given = dict(epochs=1, batch_size=500, recipe=recipe, encoder=encoder)
    same = small(**given).fit(X).network_.encoder
    assert [type(layer) for layer in found] == [type(layer) for layer in same]
    torch.testing.assert_close(found.state_dict(), same.state_dict(), rtol=0, atol=0)


def test_encoders_for_images_differ_in_filters_and_hidden_layers(rng):
    X = rng.random((20, 12, 12)).astype(np.float32)
    # Filters of the first convolution; linear layers behind the convolutions.
    expected = {"cnn": (128, 1), "small-cnn": (32, 1), "dense-cnn": (16, 2)}
    for given, sizes in expected.items():
        layers = small(epochs=1, encoder=given).fit(X).network_.encoder
        linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
        assert (layers[0].out_channels, len(linear)) == sizes


def test_auto_epsilon_follows_the_rows_norm(blobs, rng):
    X, _ = blobs
    norm = np.linalg.norm(X, axis=1).mean()
    text = sp.random(200, 300, density=0.03, format="csr", random_state=rng)
    text_norm = np.sqrt(text.multiply(text).sum(1)).mean()
    for rows in (X, text.toarray()):
        size = np.linalg.norm(rows - rows.mean(0), axis=1)
        expected = 0.1 * np.sqrt((size**2).mean())
        # Of dense rows weighted components count, so that lengths are only about those of rows.
        assert small(epochs=1).fit(rows).epsilon_ == pytest.approx(expected, rel=0.05)
    for rows, length in [(X, norm / 5), (text, 20 / math.sqrt(2000) * text_norm)]:
        paper = small(epochs=1, recipe="paper").fit(rows)
        assert paper.epsilon_ == pytest.approx(length, rel=1e-5)
    assert small(epochs=1, epsilon=3).fit(X).epsilon_ == 3.0


def views_of(X, **given):
    """The rows and the two views of one step."""
    model, rows = small(**given), as_rows(X)
    plan = model._complete(rows, model._plan(rows))
    network = model._network(plan)
    index = np.arange(rows.n)
    seen = plan.projected or rows
    step = Step(plan.batch(seen, index), 0.0, torch.Generator().manual_seed(0), index)
    both = pairs.two_views(step, network, model.views, plan.settings, plan.neighbours)
    return step.batch, *split_views(both, 2), plan.settings


def test_the_second_view_is_one_of_the_nearest_rows(blobs):
    X = blobs[0] * np.linspace(1, 3, 12, dtype=np.float32)  # no column is plain noise
    x, first, second, settings = views_of(X, neighbours=4)
    distance = scipy.spatial.distance.cdist(X, X)
    np.fill_diagonal(distance, np.inf)
    nearest = np.argsort(distance, axis=1)[:, :4]
    chosen = scipy.spatial.distance.cdist(second.numpy(), x.numpy()).argmin(axis=1)
    pairs = list(zip(nearest, chosen, strict=True))
    assert np.mean([row in near for near, row in pairs]) > 0.99
    assert len({int(np.flatnonzero(n == c)[0]) for n, c in pairs if c in n}) == 4
    lengths = torch.full((len(X),), settings.unit * settings.epsilon)
    torch.testing.assert_close((first - x).norm(dim=1), lengths, rtol=1e-4, atol=0)


def test_without_neighbours_both_views_are_steps_of_their_own(blobs):
    for given in (dict(neighbours=0), dict(recipe="paper")):
        x, first, second, _ = views_of(blobs[0], **given)
        lengths = torch.stack([(view - x).norm(dim=1) for view in (first, second)])
        torch.testing.assert_close(lengths, lengths[:1, :1].expand_as(lengths))
        assert not torch.equal(first, second)


@pytest.mark.parametrize("recipe", ["selfview", "paper"])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_numbers_for_epsilon_and_xi_are_in_the_unit_of_the_rows(blobs, recipe, unit):
    for views, length in (("adversarial", 2 * unit), ("random", 3 * unit)):
        given = dict(views=views, epsilon=2 * unit, xi=3 * unit, recipe=recipe, neighbours=0)
        x, first, second, settings = views_of(unit * blobs[0], **given)
        for view in (first, second):
            lengths = (view - x).norm(dim=1) / settings.unit
            torch.testing.assert_close(lengths, torch.full_like(lengths, length), rtol=1e-4, atol=0)


def test_rows_and_lengths_in_another_unit_are_learned_alike(blobs):
    X = 200 * blobs[0]
    for given in (dict(epsilon=300.0, xi=700.0), dict(epsilon=300.0, views="random", xi=700.0)):
        one = small(**given, epochs=1).fit_transform(X)
        lengths = {name: 1024 * given[name] for name in ("epsilon", "xi")}
        other = small(**given | lengths, epochs=1).fit_transform(1024 * X)
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-3 * np.abs(one).max())


def test_the_papers_xi_is_ten_for_ordinary_rows_and_follows_others(blobs):
    X = 16 * blobs[0] / np.linalg.norm(blobs[0], axis=1).mean()
    for unit in (1.0, 1024.0):
        x, first, _, _ = views_of(unit * X, recipe="paper", views="random")
        lengths = (first - x).norm(dim=1)
        torch.testing.assert_close(lengths, torch.full_like(lengths, 10 * unit), rtol=1e-4, atol=0)


@pytest.mark.parametrize("recipe", ["selfview", "paper"])
@pytest.mark.parametrize("neighbours", ["auto", 0, 3])
@pytest.mark.parametrize("views", ["adversarial", "random", "random+adversarial", "none"])
def test_the_views_are_those_that_were_asked_for(blobs, monkeypatch, views, neighbours, recipe):
    made = Counter()

    def counted(kind, make):
        def call(*args, **kwargs):
            made[kind] += kwargs.get("count", 1)
            return make(*args, **kwargs)

        return call

    monkeypatch.setattr(pairs, "random_perturbation", counted("random", pairs.random_perturbation))
    monkeypatch.setattr(
        pairs, "adversarial_perturbation", counted("adversarial", pairs.adversarial_perturbation)
    )
    monkeypatch.setattr(Neighbours, "draw", counted("neighbour", Neighbours.draw))
    model = small(views=views, neighbours=neighbours, recipe=recipe, epochs=1, batch_size=512)
    if views == "random+adversarial" and neighbours == 3:
        with pytest.raises(
            InputError, match=r"makes both views, got neighbours=3.*set neighbours=0"
        ):
            model.fit(blobs[0])
        return
    model.fit(blobs[0])
    expected = Counter() if views == "none" else Counter(views.split("+") * 2)
    if views == "random+adversarial":
        expected = Counter(random=1, adversarial=1)
    elif neighbours == 3 or (neighbours == "auto" and recipe == "selfview"):
        expected = Counter(neighbour=1) + Counter(set(expected))
    assert made == expected


@pytest.mark.parametrize("batch_size", [30, 512])
def test_a_share_of_all_steps_is_adversarial_however_many_an_epoch_has(
    blobs, monkeypatch, batch_size
):
    calls = []
    make = pairs.adversarial_perturbation

    def counted(*args, **kwargs):
        calls.append(args)
        return make(*args, **kwargs)

    monkeypatch.setattr(pairs, "adversarial_perturbation", counted)
    model = small(adversarial_share=0.25, epochs=8, batch_size=batch_size).fit(blobs[0])
    assert len(calls) == sum(row["steps"] for row in model.history_) / 4
    assert all("temperature" in row for row in model.history_)


def rate(**given):
    """Learning rate as a function of the epoch, of 50."""
    model = small(epochs=50, **given)
    rows = as_rows(np.eye(4))
    plan = model._complete(rows, model._plan(rows))
    (phase,) = model._phases(model._network(plan), plan)
    return phase.learning_rate


def test_the_papers_learning_rate_drops_after_a_thousand_epochs_however_many_are_run():
    paper = rate(recipe="paper")
    assert (paper(0.0), paper(49.9), paper(999.9)) == (5e-4, 5e-4, 5e-4)
    assert paper(1000.0) == pytest.approx(1e-4)


def test_fewer_epochs_of_the_papers_recipe_are_the_same_training_cut_off(blobs):
    short, long = (small(recipe="paper", epochs=n).fit(blobs[0]).history_ for n in (2, 4))
    for now, then in zip(short, long, strict=False):
        assert {**now, "seconds": 0.0} == {**then, "seconds": 0.0}


def test_our_learning_rate_rises_and_falls():
    ours = rate()
    assert 0 < ours(0.0) < 1e-5
    assert ours(2.5) == pytest.approx(2e-3, rel=1e-3)
    assert ours(2.5) > ours(20.0) > ours(40.0) > ours(49.9)
    assert ours(50.0) == ours(70.0) == pytest.approx(2e-5)  # beyond the plan, as in partial_fit


def test_what_is_given_wins_over_the_recipe():
    assert rate(recipe="paper", learning_rate=0.1)(0.0) == 0.1
    assert rate(schedule="drop")(0.0) == 2e-3
    assert rate(recipe="paper", schedule="cosine")(2.5) == pytest.approx(5e-4, rel=1e-3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(n_components=0), "n_components must be an integer of at least 1, got 0"),
        (dict(n_prototypes=1), "n_prototypes must be an integer of at least 2, got 1"),
        (dict(epochs=0), "epochs must be an integer of at least 1, got 0"),
        (dict(epochs=1.5), "epochs must be an integer of at least 1, got 1.5"),
        (dict(batch_size=1), "batch_size must be an integer of at least 2, got 1"),
        (dict(epsilon=-1.0), "epsilon must be positive and finite, got -1.0"),
        (dict(epsilon=math.nan), "epsilon must be positive and finite, got nan"),
        (dict(epsilon="big"), "epsilon must be 'auto' or a positive number, got 'big'"),
        (dict(contrast=-1), "contrast must be"),
        (dict(contrast="much"), "contrast must be"),
        (dict(neighbours=-1), "neighbours must be an integer of at least 0, got -1"),
        (
            dict(neighbours="many"),
            "neighbours must be 'auto' or an integer of at least 0, got 'many'",
        ),
        (dict(xi=0), "xi must be positive and finite, got 0"),
        (dict(learning_rate=-1e-3), "learning_rate must be positive and finite, got -0.001"),
        (dict(temperature=0), "temperature must be positive and finite, got 0"),
        (dict(temperature="warm"), "temperature must be 'adaptive' or a positive number"),
        (dict(target_entropy=9.0), r"be at most log\(n_prototypes\) = 2.079, got 9.0"),
        (dict(warmup=-1), "warmup must be positive and finite, got -1"),
        (dict(sinkhorn_iterations=0), "sinkhorn_iterations must be an integer of at least 1"),
        (dict(views="mirror"), "views must be one of 'adversarial', 'random', .*got 'mirror'"),
        (dict(batch_norm=True), "batch_norm must be one of 'both', .*got True"),
        (dict(encoder="resnet"), "encoder must be one of 'auto', 'mlp', 'cnn', .*got 'resnet'"),
        (dict(encoder="cnn"), "encoder='cnn' needs images"),
        (dict(precision="float16"), "precision must be one of .* got 'float16'"),
        (dict(device="tpu9"), "device must be 'auto', 'cpu' or one that torch has here"),
        (dict(recipe="soup"), "recipe must be one of 'paper', 'selfview', got 'soup'"),
        (dict(random_state="zero"), "random_state must be an integer"),
        (dict(verbose="loud"), "verbose must be an integer"),
        (dict(checkpoint=5), "checkpoint must be a folder or None, got 5"),
    ],
)
def test_a_wrong_parameter_is_named_with_its_value_and_nothing_is_half_done(blobs, wrong, message):
    X, _ = blobs
    model = small(**wrong)
    with pytest.raises(InputError, match=message):
        model.fit(X)
    assert not [name for name in vars(model) if name.endswith("_")]


# -- bad input ------------------------------------------------------------------------------------


def test_nan_is_named_at_fit_and_at_transform(blobs):
    X, _ = blobs
    bad = X.copy()
    bad[7, 3] = np.nan
    with pytest.raises(InputError, match="NaN at row 7, column 3"):
        small().fit(bad)
    model = small().fit(X)
    with pytest.raises(InputError, match="NaN at row 7, column 3"):
        model.transform(bad)


def test_one_row_is_too_few():
    with pytest.raises(InputError, match="at least 2 rows"):
        small().fit(np.zeros((1, 4)))


def test_another_number_of_features_is_refused(blobs):
    X, _ = blobs
    model = small().fit(X)
    with pytest.raises(InputError, match="X has 11 features, but SelfView is expecting 12"):
        model.transform(X[:, :11])
    with pytest.raises(InputError, match=r"rows of shape \(3, 4\), but SelfView was fitted on"):
        model.transform(X.reshape(-1, 3, 4))


@pytest.mark.parametrize("use", ["transform", "predict_proba"])
def test_use_before_fit_is_an_error_of_both_kinds(blobs, use):
    with pytest.raises(NotFittedError, match="not fitted yet") as caught:
        getattr(small(), use)(blobs[0])
    assert isinstance(caught.value, InputError)
    assert not hasattr(small(), "epsilon_")


def test_equal_rows_warn_that_there_is_nothing_to_learn():
    with pytest.warns(SelfViewWarning, match="nothing to learn"):
        model = small().fit(np.ones((20, 4)))
    assert np.isfinite(model.transform(np.ones((2, 4)))).all()


def test_zero_rows_in_sparse_input_are_allowed(rng):
    X = sp.random(100, 40, density=0.1, format="lil", random_state=rng)
    X[::7] = 0
    model = small().fit(X.tocsr())
    assert np.isfinite(model.transform(sp.csr_array((3, 40)))).all()


def test_a_failed_refit_leaves_the_fitted_model_as_it_was(blobs):
    X, _ = blobs
    model = small().fit(X)
    Z = model.transform(X)
    with pytest.raises(InputError):
        model.fit(np.full((20, 5), np.nan))
    np.testing.assert_array_equal(model.transform(X), Z)


# -- other encoders and shapes --------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 12, 12), (12, 12), (1, 9, 14)])
def test_images_are_learned_by_the_cnn(rng, shape):
    X = rng.random((24, *shape))
    model = small(epochs=1, batch_size=12, encoder="dense-cnn").fit(X)
    assert any(isinstance(m, nn.Conv2d) for m in model.network_.modules())
    assert model.transform(X).shape == (24, 3)
    assert model.n_features_in_ == math.prod(shape)


def test_small_images_are_learned_by_the_perceptron(rng):
    X = rng.random((1200, 3, 8, 8))
    model = small(epochs=1).fit(X)
    assert not any(isinstance(m, nn.Conv2d) for m in model.network_.modules())
    assert model.transform(X).shape == (1200, 3)


def test_an_own_encoder_decides_the_size_and_is_not_changed(blobs):
    X, _ = blobs
    own = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 6))
    before = own[0].weight.detach().clone()
    model = small(encoder=own).fit(X)
    assert model.transform(X).shape == (240, 6)
    assert model.embedding_dim_ == 6
    assert torch.equal(own[0].weight, before)
    assert not torch.equal(model.network_.encoder[0].weight, before)


# -- scikit-learn ---------------------------------------------------------------------------------


def test_an_encoder_that_can_not_be_copied_is_told(blobs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of TorchScript itself
        encoder = torch.jit.script(nn.Linear(blobs[0].shape[1], 3))
    with pytest.raises(InputError, match="pass the module it was made from"):
        small(encoder=encoder).fit(blobs[0])


def test_partial_fit_goes_on_training(blobs):
    X, _ = blobs
    model = small(epochs=5).fit(X)
    weights = model.network_.state_dict()["encoder.1.weight"].clone()
    model.partial_fit(X)
    assert len(model.history_) == 6
    assert model.history_[-1]["epoch"] == 6
    assert not torch.equal(model.network_.state_dict()["encoder.1.weight"], weights)


def test_partial_fit_after_a_fit_keeps_what_was_learned(rng):
    """Rows of more columns than the principal components on which `fit` learned."""
    X = load_digits().data[:400].astype(np.float32)
    X = np.concatenate([X, X[:, ::-1] + rng.normal(size=X.shape)], axis=1).astype(np.float32)
    model = SelfView(epochs=20, random_state=0, verbose=0).fit(X)
    before = model.transform(X)
    after = model.partial_fit(X).transform(X)
    assert not np.array_equal(before, after)
    near = [
        NearestNeighbors(n_neighbors=10).fit(Z).kneighbors(return_distance=False)
        for Z in (before, after)
    ]
    kept = np.mean([len({*a} & {*b}) / 10 for a, b in zip(*near, strict=True)])
    assert kept > 0.5


def test_partial_fit_refuses_other_features(blobs):
    X, _ = blobs
    model = small().fit(X)
    with pytest.raises(InputError, match="12 features"):
        model.partial_fit(X[:, :5])


def test_names_of_a_data_frame_are_kept_and_checked(blobs):
    X, _ = blobs
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(12)])
    model = small().fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"gene 0": "gene X"}))
    assert model.get_feature_names_out().tolist() == ["selfview0", "selfview1", "selfview2"]
    out = model.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == ["selfview0", "selfview1", "selfview2"]


def test_a_polars_frame_is_fitted_as_its_numbers_are(blobs):
    X, _ = blobs
    frame = pl.DataFrame(X, schema=[f"gene {i}" for i in range(12)])
    model = small().fit(frame)
    assert same_weights(model, small().fit(X))
    assert list(model.feature_names_in_) == frame.columns
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename({"gene 0": "gene X"}))
    out = model.set_output(transform="polars").transform(frame)
    assert out.columns == ["selfview0", "selfview1", "selfview2"]


def test_pipeline_and_grid_search(blobs):
    X, y = blobs
    pipeline = make_pipeline(small(epochs=10), LogisticRegression())
    search = GridSearchCV(pipeline, {"selfview__n_components": [2, 4]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.9


def test_clone_and_pickle(blobs):
    X, _ = blobs
    model = small().fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert same_weights(clone(model).fit(X), model)
    again.partial_fit(X)
    assert len(again.history_) == 4


# -- what a run says of itself --------------------------------------------------------------------


def test_history_has_a_row_an_epoch(blobs):
    history = small().fit(blobs[0]).history_
    assert [row["epoch"] for row in history] == [1, 2, 3]
    expected = {"loss", "loss_over_log_k", "entropy", "temperature", "marginal_error", "seconds"}
    assert expected <= set(history[0])


def test_a_sound_run_is_called_sound():
    health = small(n_components=10, epochs=30).fit(load_digits().data[:600]).health_
    assert health["healthy"], health
    assert {"loss_over_log_k", "prototype_use", "effective_rank", "marginal_error"} <= set(health)
    assert health["verdict"].startswith("sound: ")


def test_effective_rank_is_that_of_the_delivered_embedding(blobs):
    X, y = blobs
    model = small().fit(X)
    told = evaluate(model.transform(X), y, measures="effective_rank")["effective_rank"]
    assert model.health_["effective_rank"] == pytest.approx(told, rel=1e-5)


def test_a_collapsed_run_warns_with_what_to_change(blobs):
    class Point(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1))

        def forward(self, x):
            return (0 * x[:, :1] + self.weight).expand(-1, 3) * torch.ones(3)

    with pytest.warns(
        CollapseWarning, match="collapsed: the embedding fills 0.0 of 3.*or lower eps"
    ):
        model = small(encoder=Point()).fit(blobs[0])
    assert not model.health_["healthy"]


@pytest.mark.filterwarnings("ignore::selfview.CollapseWarning")
def test_scale_tells_what_rows_are_divided_by(blobs):
    X, _ = blobs
    assert small().fit(X).scale_ == 1.0
    assert small().fit(X * 2**20).scale_ > 2**15
    unlike = X * np.where(np.arange(X.shape[1]) == 0, 1e4, 1)
    np.testing.assert_allclose(small().fit(unlike).scale_, unlike.std(axis=0), rtol=1e-4)

    class Own(nn.Linear):
        def __init__(self):
            super().__init__(12, 3)
            self.scale = nn.Parameter(torch.ones(3))  # a name of its own, not ours

        def forward(self, x):
            return super().forward(x) * self.scale

    assert small(encoder=Own()).fit(X).scale_ == 1.0


def test_silent_at_verbose_0_and_plain_lines_without_a_terminal(blobs, capfd):
    small().fit(blobs[0])
    assert capfd.readouterr() == ("", "")
    small(verbose=1).fit(blobs[0])
    out, err = capfd.readouterr()
    assert out == ""
    first, *lines = err.splitlines()
    assert "240 rows of 12" in first
    assert "3 epochs" in first
    assert "epsilon" in first
    assert len(lines) == 3
    assert all(word in lines[0] for word in ("epoch 1/3", "loss/log k", "entropy", "temperature"))


def test_bfloat16_is_close_to_float32(rng):
    X = rng.normal(size=(16, 8)).astype(np.float32)
    own = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SelfViewWarning)
        full, half = (
            small(encoder=own, precision=p, epochs=1).fit(X) for p in ("float32", "bfloat16")
        )
    assert half.history_[0]["loss"] == pytest.approx(full.history_[0]["loss"], rel=0.1, abs=0.02)
    assert all(p.dtype == torch.float32 for p in half.network_.parameters())
