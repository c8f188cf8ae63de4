"""PCA, NMF and raw features: fitted by scikit-learn, kept as plain arrays."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn import decomposition

from selfview.baselines.reducer import Array, Matrix, Reducer
from selfview.errors import InputError
from selfview.estimator import parameters
from selfview.rows.base import Rows


@dataclass(eq=False, repr=False, kw_only=True)
class Raw(Reducer):
    """The features themselves, flattened: the baseline of every comparison.

    Parameters
    ----------
    n_components, random_state : ignored, default None
        So that `Raw` can take the place of any other method.

    Examples
    --------
    >>> import numpy as np
    >>> Raw().fit_transform(np.eye(3)).shape
    (3, 3)
    """

    n_components: Any = field(default=None, kw_only=False)

    _checks: ClassVar[parameters.Checks] = {}

    def _learn(self, X: Matrix, random: np.random.RandomState) -> dict[str, Array]:  # noqa: ARG002
        return {}

    def _embed(self, X: Matrix) -> Matrix:
        return X

    def _width(self) -> int:
        return self.n_features_in_

    def _check_size(self, rows: Rows) -> None:
        pass


@dataclass(eq=False, repr=False, kw_only=True)
class PCA(Reducer):
    """Principal components: the directions of largest variance.

    Sparse rows stay sparse.

    Parameters
    ----------
    n_components : int, default 10
        Length of the embedding.
    random_state : int, RandomState or None, default None
        Of the randomised or iterative solvers that scikit-learn takes for large or sparse rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> PCA(n_components=10, random_state=0).fit_transform(X).shape
    (1797, 10)
    """

    def _learn(self, X: Matrix, random: np.random.RandomState) -> dict[str, Array]:
        # Lanczos finds fewer components than rows or features; the other solver for sparse rows
        # needs a covariance matrix, which is small exactly where that matters.
        lanczos = self.n_components < min(X.shape)
        solver = "auto" if not sp.issparse(X) else "arpack" if lanczos else "covariance_eigh"
        pca = decomposition.PCA(self.n_components, svd_solver=solver, random_state=random)
        with np.errstate(invalid="ignore"):  # shares of a variance that is zero
            pca.fit(X)
        return {"components": pca.components_, "mean": pca.mean_}

    def _embed(self, X: Matrix) -> Array:
        components = self.arrays_["components"]
        return np.asarray(X @ components.T - self.arrays_["mean"] @ components.T)


@dataclass(eq=False, repr=False, kw_only=True)
class NMF(Reducer):
    """Non-negative matrix factorisation: rows as sums of non-negative parts.

    scikit-learn finds the parts H. The embedding of a row x is then the exact solution of
    min |x - w H| over w >= 0: unlike scikit-learn's, which iterates over all rows until their sum
    settles, it doesn't depend on the rows beside it. Sparse rows stay sparse.

    Parameters
    ----------
    n_components : int, default 10
        Length of the embedding.
    random_state : int, RandomState or None, default None
        Of the initialisation.
    max_iter : int, default 1000
        Iterations of coordinate descent, at most.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> bool((NMF(n_components=3, random_state=0).fit_transform(X[:256]) >= 0).all())
    True
    """

    max_iter: int = 1000

    _checks: ClassVar[parameters.Checks] = {
        **Reducer._checks,
        "max_iter": partial(parameters.integer, at_least=1),
    }

    def _learn(self, X: Matrix, random: np.random.RandomState) -> dict[str, Array]:
        self._check_sign(X)
        nmf = decomposition.NMF(self.n_components, max_iter=self.max_iter, random_state=random)
        nmf.fit(X)
        return {"components": nmf.components_, "n_iter": np.array(nmf.n_iter_)}

    @property
    def n_iter_(self) -> int:
        """Iterations of coordinate descent that the fit took."""
        self._expect_fitted()
        return int(self.arrays_["n_iter"])

    def _embed(self, X: Matrix) -> Array:
        from scipy.optimize import nnls

        self._check_sign(X)
        parts = self.arrays_["components"].astype(np.float64)
        # |x - w H|² is |A w - b|² and a constant, with A and b as small as the embedding.
        values, vectors = np.linalg.eigh(parts @ parts.T)
        kept = values > values[-1] * 1e-12
        roots = np.sqrt(np.maximum(values[kept], 0.0))
        A = roots[:, None] * vectors[:, kept].T
        B = np.asarray(X @ parts.T) @ (vectors[:, kept] / roots)
        return np.stack([nnls(A, b)[0] for b in B])

    def _check_sign(self, X: Matrix) -> None:
        if X.min() < 0:
            row, column = np.unravel_index(int(X.argmin()), X.shape)
            raise InputError(
                f"Negative values in data passed to NMF: {X.min():g} at row {row}, column "
                f"{column}. Shift the features above zero, for example with "
                "sklearn.preprocessing.MinMaxScaler"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
