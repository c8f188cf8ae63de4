"""scikit-learn's own contract for estimators, on every baseline."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from selfview.baselines import (
    CPC,
    LLE,
    NMF,
    PCA,
    AdversarialAutoEncoder,
    AutoEncoder,
    DenoisingAutoEncoder,
    Isomap,
    Raw,
    SparseAutoEncoder,
    VariationalAutoEncoder,
)

QUICK = dict(epochs=1, random_state=0, verbose=0)
LEARNED = [kind(2, **QUICK) for kind in (AutoEncoder, CPC)]
# Each an autoencoder with another loss: `make test-slow` checks them too.
KINDS = (SparseAutoEncoder, DenoisingAutoEncoder, VariationalAutoEncoder, AdversarialAutoEncoder)
CLASSICAL = [
    Raw(),
    PCA(2, random_state=0),
    NMF(2, random_state=0, max_iter=100),
    LLE(2, random_state=0, n_neighbors=5),
    Isomap(2, random_state=0, n_neighbors=5),
]

OBJECTS = {"check_dtype_object": "arrays of objects are refused, also those that hold numbers"}


@pytest.mark.filterwarnings("ignore::selfview.errors.SelfViewWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The number of connected components:UserWarning")
@parametrize_with_checks(
    [*CLASSICAL, *LEARNED],
    expected_failed_checks=lambda _: OBJECTS,
)
def test_scikit_learns_estimator_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::selfview.errors.SelfViewWarning")
@parametrize_with_checks(
    [kind(2, **QUICK) for kind in KINDS],
    expected_failed_checks=lambda _: OBJECTS,
)
def test_scikit_learns_estimator_check_of_other_autoencoders(estimator, check):
    check(estimator)
