"""Estimator: `fit` and `transform` for any network, as scikit-learn's estimators do."""
