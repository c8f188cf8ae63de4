"""Columns of different scale: tables as they come, without a scaler in front."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from selfview import CollapseWarning, SelfView
from selfview.estimator.pairs import two_views
from selfview.neighbours.search import nearest, search_points
from selfview.rows.conversion import as_rows
from selfview.training.loop import Step

# Two epochs learn little, which is told.
pytestmark = pytest.mark.filterwarnings(f"ignore::{CollapseWarning.__module__}.CollapseWarning")


def small(**given):
    return SelfView(**({"epochs": 2, "random_state": 0, "verbose": 0} | given))


def linear_accuracy(Z, y):
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return cross_val_score(model, Z, y, cv=5).mean()


def table(n=80):
    """Columns that differ by up to a billion, one of them constant."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6)) + 3
    return X * [1e-3, 1.0, 1e6, 1.0, 10.0, 0.0] + [0, 0, 0, 0, 0, 7e8]


def test_column_stds_are_found_only_if_columns_differ_in_scale():
    X = table()
    stds = as_rows(X).summary().column_stds
    np.testing.assert_allclose(stds[:5], X[:, :5].std(0), rtol=1e-4)
    assert stds[5] == pytest.approx(7e8)
    assert as_rows(X / X.std(0).clip(1e-9)[None] * [1, 2, 3, 1, 5, 0]).summary().column_stds == ()
    assert as_rows(load_wine().data).summary().column_stds != ()


def test_column_stds_are_right_for_rows_in_many_chunks(monkeypatch):
    monkeypatch.setattr("selfview.rows.base.CHUNK_BYTES", 200)
    X = table(300)
    np.testing.assert_allclose(as_rows(X).summary().column_stds[:5], X[:, :5].std(0), rtol=1e-4)


def test_images_and_text_keep_their_own_unit():
    X = np.abs(table(20))
    assert as_rows(X.reshape(20, 1, 2, 3)).summary().column_stds == ()
    X[np.random.default_rng(0).random(X.shape) > 0.05] = 0
    assert as_rows(X).summary().column_stds == ()


def test_raw_wine_is_learned_and_its_clusters_are_its_cultivars():
    X, y = load_wine(return_X_y=True)
    Z = small(epochs=40).fit_transform(X)

    def agreement(Z):
        return adjusted_rand_score(y, KMeans(3, n_init=10, random_state=0).fit_predict(Z))

    assert linear_accuracy(Z, y) > 0.93
    assert agreement(Z) > 0.8
    assert agreement(X) < 0.5


def test_steps_are_counted_in_the_columns_standard_deviations():
    model = small().fit(table())
    assert model.epsilon_ == pytest.approx(0.1 * np.sqrt(5), rel=1e-3)  # one column is constant
    assert model.network_.encoder.scale.shape == (6,)


def test_a_number_for_xi_is_in_the_columns_standard_deviations_as_one_for_epsilon_is():
    X = table()[:, :5]
    for views, length in (("random", 0.7), ("adversarial", 0.2)):
        model = small(views=views, xi=0.7, epsilon=0.2, neighbours=0)
        plan = model._complete(as_rows(X), model._plan(as_rows(X)))
        seen = plan.projected.take(slice(0, len(X)))
        step = Step(seen, 0.0, torch.Generator().manual_seed(0))
        both = two_views(step, model._network(plan), views, plan.settings, None)
        lengths = (both[::2] - seen).norm(dim=1) / plan.projected.projection.unit
        expected = torch.full_like(lengths, length)
        torch.testing.assert_close(lengths, expected, rtol=1e-4, atol=0)


def test_neighbours_are_those_of_the_scaled_columns():
    X = table()[:, :5]
    scaled = search_points(as_rows(X / X.std(0)), 5, angle=False)
    found = search_points(as_rows(X), 5, angle=False, scale=X.std(0).tolist())
    assert np.array_equal(nearest(found, 3), nearest(scaled, 3))


def test_the_papers_recipe_and_own_encoders_take_rows_as_they_are():
    from torch import nn

    assert small(recipe="paper").fit(table()).network_.encoder.scale.ndim == 0
    own = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    model = small(encoder=own).fit(table() / 1e3)
    assert not hasattr(model.network_.encoder, "scale")


def test_saved_exported_and_resumed_models_keep_the_units(tmp_path):
    X = table()
    model = small(checkpoint=tmp_path / "run", epochs=3).fit(X)
    Z = model.transform(X)
    model.save(tmp_path / "model")
    assert np.array_equal(SelfView.load(tmp_path / "model").transform(X), Z)
    again = small(checkpoint=tmp_path / "run", epochs=3).fit(X)
    assert np.array_equal(again.transform(X), Z)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_an_exported_encoder_takes_the_columns_as_they_come(tmp_path):
    import torch

    from selfview.saving.export import export

    X = table().astype(np.float32)
    model = small().fit(X)
    export(model, tmp_path / "encoder.pt", format="torchscript")
    found = torch.jit.load(tmp_path / "encoder.pt")(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(found, model.transform(X), rtol=1e-3, atol=1e-3)


def test_scales_of_another_number_than_the_columns_are_refused(tmp_path):
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    from selfview.errors import FileFormatError

    small().fit(table()).save(tmp_path)
    (path,) = tmp_path.glob("*.safetensors")
    with safe_open(path, "pt") as file:
        meta = file.metadata()
    tensors = load_file(path)
    tensors["encoder.scale"] = tensors["encoder.scale"][:4].clone()
    save_file(tensors, path, meta)
    with pytest.raises(FileFormatError, match="damaged"):
        SelfView.load(tmp_path)
