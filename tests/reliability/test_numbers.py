"""Numbers of any size and kind: finite embeddings, or an error of ours that says what to do."""

import resource
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from small_fits import bits, rows, small_encoder, small_model
from torch import nn

from selfview import InputError, SelfView, SelfViewWarning, baselines
from selfview.errors import TrainingError
from selfview.saving.checkpoints import Checkpoints
from selfview.saving.tensor_file import read_state

pytestmark = pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")

LEARNED = dict(epochs=2, verbose=0)
METHODS = {
    "SelfView": (SelfView, LEARNED),
    "SelfView without batch norm": (SelfView, LEARNED | dict(batch_norm="none")),
    "PCA": (baselines.PCA, {}),
    "NMF": (baselines.NMF, {}),
    "LLE": (baselines.LLE, {}),
    "Isomap": (baselines.Isomap, {}),
    "Raw": (baselines.Raw, {}),
    "AutoEncoder": (baselines.AutoEncoder, LEARNED),
    "SparseAutoEncoder": (baselines.SparseAutoEncoder, LEARNED),
    "DenoisingAutoEncoder": (baselines.DenoisingAutoEncoder, LEARNED),
    "VariationalAutoEncoder": (baselines.VariationalAutoEncoder, LEARNED),
    "AdversarialAutoEncoder": (baselines.AdversarialAutoEncoder, LEARNED),
    "CPC": (baselines.CPC, LEARNED),
}


def cases():
    """Rows that are hard on arithmetic; not negative, so that NMF takes them too."""
    X = np.abs(rows(24)).astype(np.float64)
    constant, outliers = X.copy(), X.copy()
    constant[:, 1:3] = 7.0, 1e9
    outliers[5, 2] = 1e12
    yield "1e-12", 1e-12 * X
    yield "1e12", 1e12 * X
    yield "float32 at 1e-30", (1e-30 * X).astype(np.float32)
    yield "float32 at 1e30", (1e30 * X).astype(np.float32)
    yield "units from 1e-12 to 1e12", X * np.logspace(-12, 12, X.shape[1])
    yield "constant features", constant
    yield "all equal", np.ones((24, 6))
    yield "all zero", np.zeros((24, 6))
    yield "each row eight times", np.repeat(X[:3], 8, axis=0)
    yield "outlier", outliers
    yield "two rows", X[:2]
    yield "two equal rows", X[[0, 0]]
    yield "three rows", X[:3]
    yield "one feature", X[:, :1]
    for dtype in (bool, np.uint8, np.int64, np.float16, np.float64):
        yield np.dtype(dtype).name, X.astype(dtype)
    yield "integers near 2**60", (X * 1e17).astype(np.int64)


SCARCE = ("two rows", "two equal rows", "three rows", "one feature")  # too little for some methods
EXTREME = ("float32 at 1e-30", "float32 at 1e30")  # beyond what classical methods can square
TYPES = ("bool", "uint8", "int64", "float64")


@pytest.mark.parametrize("name", METHODS)
def test_every_method_stays_finite_or_says_what_to_do(name):
    kind, given = METHODS[name]
    for case, X in cases():
        if name != "SelfView" and "epochs" in given and case in TYPES:
            continue  # networks get their rows as float32 in one and the same way
        error = None
        model = kind(n_components=2, random_state=0, **given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SelfViewWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                Z = model.fit_transform(X)
            except InputError as caught:
                error = str(caught)
        if error is None:
            assert Z.shape[0] == len(X), case
            assert np.isfinite(Z).all(), case
            assert np.isfinite(model.transform(X)).all(), case
        else:
            classical = "epochs" not in given
            assert case in SCARCE or (classical and case in EXTREME), f"{case}: {error}"
            assert "needs" in error or "Scale the features" in error


def test_more_prototypes_than_rows_and_batches_larger_than_the_data():
    X = rows(9)
    Z = SelfView(3, n_prototypes=500, batch_size=4096, epochs=2, verbose=0).fit_transform(X)
    assert np.isfinite(Z).all()


def test_a_batch_far_larger_than_the_number_of_prototypes_is_learned():
    X = rows(16384)
    model = small_model(n_prototypes=2, batch_size=len(X), neighbours=0, epochs=2)
    assert np.isfinite(model.fit_transform(X)).all()


@pytest.mark.parametrize("kind", [SelfView, baselines.PCA, baselines.Isomap])
def test_a_hundred_thousand_features(kind):
    rng = np.random.default_rng(0)
    X = sp.random(14, 100_000, density=1e-3, format="csr", random_state=rng)
    given = dict(epochs=1, verbose=0) if kind is SelfView else {}
    model = kind(n_components=2, random_state=0, **given).fit(X)
    assert np.isfinite(model.transform(X)).all()


# NMF says that it could go on with fourteen rows of noise; they are finite all the same.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_hundred_thousand_features_for_every_method(name):
    kind, given = METHODS[name]
    X = np.abs(np.random.default_rng(0).normal(size=(14, 100_000))).astype(np.float32)
    given = given | dict(epochs=1) if "epochs" in given else given
    assert np.isfinite(kind(n_components=2, random_state=0, **given).fit_transform(X)).all()


NAMES = (
    "n_components",
    "n_prototypes",
    "epochs",
    "batch_size",
    "neighbours",
    "sinkhorn_iterations",
)


@pytest.mark.parametrize("name", NAMES)
def test_absurd_sizes_are_refused_by_name(name):
    model = SelfView(**{name: 10**30}, verbose=0)
    with pytest.raises(InputError, match=f"{name} must be at most 2147483647"):
        model.fit(np.eye(6))


@pytest.fixture
def _terabyte():
    """No more memory than this, also where the system promises more than it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**40, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.usefixtures("_terabyte")
@pytest.mark.parametrize("name", ["n_components", "n_prototypes"])
def test_a_network_larger_than_memory_is_refused(name):
    with pytest.raises(InputError, match=r"the network can't be made: .*allocate.*Lower n_comp"):
        SelfView(**{name: 2**31 - 1}, epochs=1, verbose=0).fit(np.eye(6))


@pytest.mark.parametrize("recipe", ["selfview", "paper"])
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_rows_in_any_unit_are_learned_as_well(blobs, scale, recipe):
    X, y = blobs
    given = dict(recipe=recipe, n_components=2, n_prototypes=8, epochs=6, random_state=0, verbose=0)
    Z = SelfView(**given).fit_transform(scale * X.astype(np.float64))
    probe = LogisticRegression().fit(StandardScaler().fit_transform(Z), y)
    assert probe.score(StandardScaler().fit_transform(Z), y) > 0.98


@pytest.mark.parametrize("power", [2.0**-50, 2.0**10, 2.0**30, 2.0**50])
def test_a_power_of_two_changes_no_bit(blobs, power):
    X = 200 * blobs[0]
    given = dict(n_components=2, n_prototypes=8, epochs=2, random_state=0, verbose=0)
    one, other = SelfView(**given).fit(X), SelfView(**given).fit(power * X)
    np.testing.assert_array_equal(one.transform(X), other.transform(power * X))
    assert other.epsilon_ == power * one.epsilon_  # in the unit of the rows


def test_ordinary_rows_enter_the_network_as_they_are(blobs):
    model = SelfView(2, epochs=1, n_prototypes=8, random_state=0, verbose=0).fit(blobs[0])
    assert 2 < np.linalg.norm(blobs[0], axis=1).mean() < 128
    assert float(model.network_.encoder.scale) == 1.0
    assert float(model.fit(1e6 * blobs[0]).network_.encoder.scale) > 1e4
    own = small_model(epochs=1).fit(1e6 * rows())  # a custom encoder takes what it is given
    assert isinstance(own.network_.encoder, nn.Sequential)
    assert not hasattr(own.network_.encoder, "scale")


class Spoiled(nn.Module):
    """An encoder whose output, or only its gradient, is no number from some step on."""

    def __init__(self, what, calls):
        super().__init__()
        self.inner, self.what, self.left = small_encoder(), what, calls

    def forward(self, x):
        z = self.inner(x)
        self.left -= self.training
        if self.left >= 0:
            return z
        # A factor of one whose slope is infinite, or an output that is.
        return z * z.detach().sub(z).sqrt().add(1) if self.what == "slope" else z / 0


@pytest.mark.parametrize(("what", "told"), [("output", "loss became nan"), ("slope", "gradient")])
def test_training_that_is_no_longer_finite_ends_with_the_last_good_state(
    tmp_path, monkeypatch, what, told
):
    monkeypatch.setattr(Checkpoints, "INTERVAL", 0.0)
    good = small_model(epochs=1).fit(rows())
    before = bits(good)
    good.set_params(encoder=Spoiled(what, 20), checkpoint=tmp_path, views="none", epochs=9)
    with pytest.raises(TrainingError) as caught:
        good.fit(rows())
    words = str(caught.value)
    assert told in words
    assert "in epoch 2. Lower learning_rate or epsilon" in words
    newest = max(tmp_path.glob("checkpoint-*"))
    assert f"The last good state is {newest}" in words
    tensors, meta = read_state(newest)
    assert len(meta["history"]) + meta["steps"] / 10 == 1
    assert all(torch.isfinite(t).all() for t in tensors.values())
    assert bits(good) == before, "a fit that failed changed the model"


def test_a_learning_rate_beyond_measure_is_an_error_and_no_state(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoints, "INTERVAL", 0.0)
    model = small_model(learning_rate=1e38, batch_norm="none", checkpoint=tmp_path, epochs=20)
    with pytest.raises(TrainingError, match=r"in epoch \d+\. Lower learning_rate from the"):
        model.fit(rows())
    for path in tmp_path.glob("checkpoint-*"):
        assert all(torch.isfinite(t).all() for t in read_state(path)[0].values())
