"""scikit-learn's own contract for estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from selfview import SelfView

EXPECTED_FAILURES = {
    "check_dtype_object": "arrays of objects are refused, also those that hold numbers",
    "check_estimator_sparse_array": "expects predict_proba to be over classes, not prototypes",
    "check_estimator_sparse_matrix": "expects predict_proba to be over classes, not prototypes",
}


@parametrize_with_checks(
    [SelfView(n_components=2, n_prototypes=5, epochs=2, random_state=0, verbose=0)],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learns_estimator_check(estimator, check, recwarn):
    check(estimator)
    assert not [w for w in recwarn if issubclass(w.category, DeprecationWarning)]
