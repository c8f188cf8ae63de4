"""The autoencoders, by the laws of their papers and torch's own distributions."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from torch import nn
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.nn import functional

from selfview import SelfView, evaluate, load_dataset
from selfview.baselines import (
    AdversarialAutoEncoder,
    AutoEncoder,
    DenoisingAutoEncoder,
    SparseAutoEncoder,
    VariationalAutoEncoder,
)
from selfview.baselines.generative import (
    discriminator_loss,
    gaussian_nll,
    generator_loss,
    kl_from_standard_normal,
    reparametrise,
)
from selfview.baselines.learned import mean_and_scale
from selfview.baselines.regularised import corrupt, kl_sparsity
from selfview.errors import InputError
from selfview.estimator.plan import FitPlan
from selfview.networks import encoders
from selfview.networks.decoders import cnn_decoder
from selfview.networks.start import principal_start
from selfview.rows.base import Summary
from selfview.rows.conversion import as_rows
from selfview.saving.checkpoints import Checkpoints

KINDS = (
    AutoEncoder,
    SparseAutoEncoder,
    DenoisingAutoEncoder,
    VariationalAutoEncoder,
    AdversarialAutoEncoder,
)
EACH = pytest.mark.parametrize("kind", KINDS)
QUICK = {"random_state": 0, "verbose": 0}
FAST = {**QUICK, "learning_rate": 2e-3}

pytestmark = pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")


@pytest.fixture
def few(blobs):
    """A quarter of the blobs: networks of the paper's size are slow on two cores."""
    X, labels = blobs
    return X[::4], labels[::4]


def seeded():
    return torch.Generator().manual_seed(0)


def test_sparsity_penalty_is_the_divergence_of_bernoullis():
    activation = torch.rand(50, 4, generator=seeded())
    oracle = kl_divergence(Bernoulli(torch.tensor(0.3)), Bernoulli(activation.mean(0))).sum()
    torch.testing.assert_close(kl_sparsity(activation, 0.3), oracle)


def test_sparsity_penalty_is_finite_for_units_that_are_off_or_on():
    assert torch.isfinite(kl_sparsity(torch.tensor([[0.0, 1.0]]), 0.2))


def test_masking_zeroes_the_given_share_and_leaves_the_rest():
    x = torch.full((100, 100), 3.0)
    noisy = corrupt(x, "masking", 0.25, seeded())
    assert set(noisy.unique().tolist()) == {0.0, 3.0}
    assert (noisy == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)


def test_gaussian_noise_has_the_given_deviation():
    noise = corrupt(torch.zeros(100, 100), "gaussian", 0.5, seeded())
    assert noise.std().item() == pytest.approx(0.5, abs=0.02)


def test_kl_is_the_closed_form_of_torch():
    mean, log_variance = torch.randn(2, 20, 5, generator=seeded())
    oracle = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0)).sum(1)
    torch.testing.assert_close(kl_from_standard_normal(mean, log_variance), oracle)


def test_draws_have_the_posteriors_moments_and_pass_gradients():
    mean = torch.full((20_000, 1), 2.0, requires_grad=True)
    z = reparametrise(mean, torch.full((20_000, 1), math.log(0.25)), seeded())
    assert z.mean().item() == pytest.approx(2.0, abs=0.02)
    assert z.std().item() == pytest.approx(0.5, abs=0.02)
    assert torch.autograd.grad(z.sum(), mean)[0].eq(1).all()


def test_likelihood_is_that_of_a_normal_without_its_constant():
    x, mean = torch.randn(2, 10, 3, generator=seeded())
    constant = 0.5 * 3 * math.log(2 * math.pi)
    for variance in (0.1, 1.0, 7.0):
        oracle = -Normal(mean, math.sqrt(variance)).log_prob(x).sum(1).mean() - constant
        torch.testing.assert_close(gaussian_nll(x, mean, variance), oracle)


def test_variance_auto_is_the_likeliest_one():
    x, mean = torch.randn(2, 10, 3, generator=seeded())
    best = min(gaussian_nll(x, mean, v / 100).item() for v in range(1, 1000))
    # At its best variance the quadratic term is half the number of features.
    assert gaussian_nll(x, mean, None).item() + 1.5 == pytest.approx(best, abs=1e-3)


def test_adversarial_losses_are_cross_entropies():
    real, fake = torch.randn(2, 30, generator=seeded())
    bce = functional.binary_cross_entropy_with_logits
    ones, zeros = torch.ones(30), torch.zeros(30)
    torch.testing.assert_close(discriminator_loss(real, fake), bce(real, ones) + bce(fake, zeros))
    torch.testing.assert_close(generator_loss(fake), bce(fake, ones))


def test_the_start_is_principal_components_of_the_last_layers_input(rng):
    x = torch.from_numpy(rng.normal(size=(90, 6)) @ rng.normal(size=(6, 6))).float()
    layers = nn.Sequential(nn.Identity(), nn.Linear(6, 3))
    principal_start(layers, x)
    ours, oracle = layers(x).detach().numpy(), PCA(3, whiten=True).fit_transform(x)
    np.testing.assert_allclose(np.abs(ours), np.abs(oracle), atol=1e-3)


@pytest.mark.parametrize("x", [torch.ones(9, 4), torch.eye(4)[:2]])
def test_a_start_without_enough_directions_is_finite(x):
    layers = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3))
    principal_start(layers, x)
    assert torch.isfinite(layers(x)).all()
    assert not layers[0].running_mean.isnan().any()
    assert layers[0].num_batches_tracked == 1  # by the line above alone


@EACH
def test_decoders_begin_with_the_mean_row(kind, few):
    X, _ = few
    model = kind(2, epochs=1, learning_rate=1e-12, **QUICK).fit(X)
    np.testing.assert_allclose(model.reconstruct(X), np.tile(X.mean(0), (len(X), 1)), atol=1e-4)


class LinearAutoEncoder(AutoEncoder):
    """Linear layers only, for which the best that can be reached is known."""

    def _encoder(self, plan):
        return nn.Linear(*plan.shape, self.n_components)

    def _decoder(self, dim, plan):
        return nn.Linear(dim, *plan.shape)


def test_linear_autoencoder_reaches_pcas_reconstruction_error(blobs):
    X, _ = blobs
    model = LinearAutoEncoder(3, epochs=600, learning_rate=5e-2, **QUICK).fit(X)
    pca = PCA(3).fit(X)
    best = np.square(X - pca.inverse_transform(pca.transform(X))).mean()
    error = np.square(X - model.reconstruct(X)).mean()
    assert best * (1 - 1e-5) <= error <= best * 1.02


def test_denoising_rebuilds_the_clean_row_from_a_corrupted_one(few):
    X, _ = few
    mean = X.mean(0)
    noisy = corrupt(torch.from_numpy(X - mean), "masking", 0.3, seeded()).numpy() + mean
    trained = DenoisingAutoEncoder(3, level=0.3, epochs=60, **FAST).fit(X)
    plain = AutoEncoder(3, epochs=60, **FAST).fit(X)
    error = np.square(trained.reconstruct(noisy) - X).mean()
    assert error < 0.5 * np.square(noisy - X).mean()
    assert error < 0.8 * np.square(plain.reconstruct(noisy) - X).mean()


@pytest.mark.parametrize("target", [0.1, 0.4])
def test_mean_activation_approaches_its_target(few, target):
    X, _ = few
    model = SparseAutoEncoder(4, target_activation=target, penalty=30.0, epochs=80, **FAST).fit(X)
    np.testing.assert_allclose(model.transform(X).mean(0), target, atol=0.06)


def mmd(Z):
    """Squared maximum mean discrepancy of rows from a standard normal, with a Gaussian kernel."""
    prior = np.random.default_rng(0).normal(size=(500, Z.shape[1]))

    def kernel(a, b):
        return np.exp(-np.square(a[:, None] - b[None]).sum(-1) / (2 * Z.shape[1])).mean()

    return kernel(Z, Z) + kernel(prior, prior) - 2 * kernel(Z, prior)


@pytest.mark.slow
def test_aggregated_posterior_moves_towards_the_prior(rng):
    X = (rng.uniform(-1, 1, size=(100, 2)) @ rng.normal(size=(2, 12))).astype(np.float32)
    # A custom encoder: ours begins, and with batch norm stays, at the prior's mean and variance.
    with torch.random.fork_rng():
        torch.manual_seed(0)
        own = encoders.mlp_encoder(12, 2, batch_norm=False)
    free = {"encoder": own, "batch_norm": False, "learning_rate": 1e-3, **QUICK}
    plain = AutoEncoder(2, epochs=60, **free).fit_transform(X)
    early = AdversarialAutoEncoder(2, adversarial_rate=0.3, epochs=1, **free).fit_transform(X)
    late = AdversarialAutoEncoder(2, adversarial_rate=0.3, epochs=60, **free).fit_transform(X)
    assert mmd(late) < 0.4 * mmd(early)
    assert mmd(late) < 0.6 * mmd(plain)


@pytest.mark.parametrize("kind", [AutoEncoder, DenoisingAutoEncoder, AdversarialAutoEncoder])
def test_batch_norm_keeps_embeddings_at_one_scale(kind, few):
    X, _ = few
    Z = kind(3, epochs=40, **FAST).fit_transform(X)
    np.testing.assert_allclose(Z.mean(0), 0, atol=0.3)
    np.testing.assert_allclose(Z.std(0), 1, atol=0.3)


def test_posterior_tells_rows_apart_and_has_a_divergence(few):
    X, labels = few
    model = VariationalAutoEncoder(2, epochs=60, **FAST).fit(X)
    Z = model.transform(X)
    within = np.mean([Z[labels == c].var(0).sum() for c in range(3)])
    assert within < 0.35 * Z.var(0).sum()
    assert model.history_[-1]["kl"] > 0.5


def parameters(kind, shape, **options):
    encoder = "mlp" if len(shape) == 1 else "cnn"
    plan = FitPlan(shape, Summary(), 1, 0, torch.device("cpu"), encoder)
    model = kind(10, **options)._network(plan)
    return list(model.parameters())


def count(tensors):
    return sum(t.numel() for t in tensors)


def test_table_1_counts():
    mlp = parameters(AutoEncoder, (1024,), batch_norm=False)
    assert (
        round(count(p for p in mlp if p.ndim > 1) / 1e6, 2) == 4.21
    )  # the table's, without biases
    assert count(mlp) == 4_219_914
    cnn = parameters(AutoEncoder, (1, 28, 28), batch_norm=False, recipe="paper")
    assert round(count(cnn) / 1e6, 2) == 1.73  # a mirrored decoder; the table's 1.23 M fits none
    assert round(count(parameters(SelfView, (1, 28, 28), recipe="paper")) / 1e6, 2) == 0.90
    encoder = encoders.mlp_encoder(1024, 10, batch_norm=False)
    assert round(count(encoder.parameters()) / 1e6, 2) == 2.11  # the table's; without the head


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 17, 30), (2, 3, 2), (1, 1, 1), (1, 40, 9)])
@pytest.mark.parametrize("batch_norm", [True, False])
def test_the_decoder_gives_images_of_the_size_that_came(shape, batch_norm):
    x = torch.randn(2, *shape)
    encoder = encoders.cnn_encoder(shape, 3, batch_norm)
    assert cnn_decoder(3, shape, batch_norm)(encoder(x)).shape == x.shape


@EACH
def test_images_sparse_rows_and_vectors_are_taken(kind, rng):
    images = rng.random((12, 6, 7)).astype(np.float32)
    model = kind(2, epochs=1, **QUICK)
    assert model.fit_transform(images).shape == (12, 2)
    assert model.reconstruct(images).shape == images.shape
    sparse = sp.random_array((12, 30), density=0.2, rng=rng, format="csr")
    assert model.fit_transform(sparse).shape == (12, 2)


@EACH
@pytest.mark.parametrize("batch_norm", [True, False])
def test_a_saved_model_gives_the_same_bits(kind, batch_norm, blobs, tmp_path):
    X, _ = blobs
    model = kind(2, epochs=1, batch_norm=batch_norm, **QUICK).fit(X)
    model.save(tmp_path)
    loaded = kind.load(tmp_path)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(loaded.reconstruct(X), model.reconstruct(X))


@EACH
def test_an_own_encoder_is_taken(kind, blobs, tmp_path):
    X, _ = blobs
    model = kind(encoder=nn.Linear(12, 3), epochs=1, **QUICK).fit(X)
    assert model.transform(X).shape == (240, 3)
    model.save(tmp_path)
    loaded = kind.load(tmp_path, encoder=nn.Linear(12, 3))
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


@EACH
def test_data_in_another_unit_learns_alike(kind, few):
    X, _ = few
    model = kind(2, epochs=2, batch_norm=False, **QUICK)
    np.testing.assert_array_equal(model.fit_transform(X * 2.0**20), model.fit_transform(X))


@EACH
def test_what_all_rows_share_is_left_out(kind, few):
    X, _ = few
    model = kind(2, epochs=2, batch_norm=False, **QUICK)
    shifted = (X + 64 * np.arange(12)).astype(np.float32)
    alike = (shifted - 64 * np.arange(12)).astype(np.float32)  # rounded as the shifted ones were
    np.testing.assert_allclose(model.fit_transform(shifted), model.fit_transform(alike), atol=1e-3)


@given(st.integers(1, 60), st.floats(-1e4, 1e4), st.floats(1e-2, 1e3), st.integers(0, 99))
def test_mean_and_scale_are_numpys(n, offset, size, seed):
    X = np.random.default_rng(seed).normal(offset, size, (n, 5)).astype(np.float32)
    mean, scale = mean_and_scale(as_rows(X))
    np.testing.assert_allclose(mean.numpy(), X.astype(float).mean(0), rtol=1e-9)
    centred = X.astype(float) - X.astype(float).mean(0)
    expected = np.sqrt(np.square(centred).mean())
    assert scale == (pytest.approx(expected, rel=1e-6) if n > 1 else 1.0)


def test_rows_near_the_largest_float_are_centred(rng):
    X = (rng.choice([-3e38, 3e38], size=(20, 4))).astype(np.float32)
    model = AutoEncoder(2, epochs=1, **QUICK).fit(X)
    assert np.isfinite(model.transform(X)).all()


def test_three_optimisers_resume_bit_for_bit(few, tmp_path, monkeypatch):
    X, _ = few
    monkeypatch.setattr(Checkpoints, "INTERVAL", 0.0)
    model = AdversarialAutoEncoder(2, epochs=3, batch_size=30, checkpoint=tmp_path, **QUICK)
    whole = model.fit_transform(X)
    before_last, last = sorted(tmp_path.glob("*.safetensors"))
    last.unlink()  # as if killed in the last epoch
    written = before_last.stat().st_mtime_ns
    np.testing.assert_array_equal(model.fit_transform(X), whole)
    assert before_last.stat().st_mtime_ns == written


def test_labels_change_nothing(blobs):
    X, y = blobs
    model = AutoEncoder(2, epochs=1, **QUICK)
    np.testing.assert_array_equal(model.fit(X, y).transform(X), model.fit(X).transform(X))


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (AutoEncoder(batch_norm="both"), "batch_norm must be True or False, got 'both'"),
        (SparseAutoEncoder(target_activation=1.0), "target_activation must be between 0 and 1"),
        (SparseAutoEncoder(penalty=-1), "penalty must be positive"),
        (DenoisingAutoEncoder(corruption="salt"), "corruption must be one of 'masking'"),
        (DenoisingAutoEncoder(level=1.5), "level must be between 0 and 1, got 1.5"),
        (VariationalAutoEncoder(beta=0), "beta must be positive"),
        (VariationalAutoEncoder(variance=-1.0), "variance must be"),
        (AdversarialAutoEncoder(adversarial_rate=0), "adversarial_rate must be positive"),
    ],
)
def test_wrong_parameters_are_named(model, said, blobs):
    with pytest.raises(InputError, match=said):
        model.fit(blobs[0])


@pytest.mark.slow
@EACH
def test_spoken_digits_are_classified_better_than_with_pca(kind, real_data):
    # 240 steps, about a minute of one core for each kind.
    digits = load_dataset("fsdd")
    Z = kind(10, epochs=20, **QUICK).fit_transform(digits.X)
    pca = PCA(10, random_state=0).fit_transform(digits.X)
    ours, theirs = (evaluate(z, digits.y, measures=["linear"])["linear_accuracy"] for z in (Z, pca))
    assert ours > theirs


@pytest.mark.slow
@EACH
def test_garments_are_classified_better_than_with_pca(kind, real_data):
    # 1,880 steps, four to ten minutes of one core for each kind.
    garments = load_dataset("fashion-mnist")
    X, flat = garments.X, garments.X.reshape(len(garments.X), -1)
    train = np.random.default_rng(0).permutation(garments.train)
    pca = PCA(10, random_state=0).fit(flat[train]).transform(flat)
    Z = kind(10, epochs=8, encoder="small-cnn", **QUICK).fit(X[train]).transform(X)
    split = (garments.train, garments.test)
    ours, theirs = (
        evaluate(z, garments.y, split=split, measures=["linear"])["linear_accuracy"]
        for z in (Z, pca)
    )
    print(f"{kind.__name__} {100 * ours:.1f}, PCA {100 * theirs:.1f}")  # noqa: T201 (to be read)
    assert ours > theirs
