"""PCA, NMF and raw features: scikit-learn does the fit, and what remains of it are plain arrays.

`Reducer` is the surface that all methods without a network share. A method says how to fit
(`_learn`, which returns named arrays) and how to embed rows with those arrays (`_embed`); so a
model on disk is its arrays and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn import decomposition
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from selfview import parameters, storage
from selfview.checkpoint import read_state, write_state
from selfview.errors import FileFormatError, InputError
from selfview.estimator import UnfittedError
from selfview.rows import ArrayRows, Rows, SparseRows, as_rows, expect_shape

Array = NDArray[Any]
Matrix = Any  # an ndarray (n, features), or a CSR array


def as_matrix(rows: Rows) -> Matrix:
    """All rows at once, flattened, as floats: CSR if they are sparse, else an ndarray."""
    if isinstance(rows, SparseRows):
        return _floats(rows.matrix)
    if isinstance(rows, ArrayRows):
        return _floats(rows.array.reshape(rows.n, -1))
    return rows.take(slice(0, rows.n)).reshape(rows.n, -1).cpu().numpy()


def _floats(matrix: Matrix) -> Matrix:
    return matrix.astype(matrix.dtype if matrix.dtype in (np.float32, np.float64) else np.float64)


@dataclass(eq=False, repr=False, kw_only=True)
class Reducer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the methods without a network."""

    n_components: int = field(default=10, kw_only=False)
    random_state: Any = None

    sparse = True  # does the algorithm take sparse rows as they are?

    def _learn(self, X: Matrix, random: np.random.RandomState) -> dict[str, Array]:
        """The arrays that `_embed` needs, learned from all rows."""
        raise NotImplementedError

    def _embed(self, X: Matrix) -> Array:
        """The rows' embeddings, each from its own row."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn the embedding of `X`.

        Parameters
        ----------
        X : ndarray, memmap, sparse matrix, Tensor, DataFrame or torch Dataset
            Rows of features (n, n_features), or images, which are flattened.
        y : ignored
            Labels are never looked at.

        Returns
        -------
        self
        """
        self._check_parameters()
        rows = as_rows(X)
        rows.check()
        self._check_size(rows)
        seed = parameters.seed("random_state", self.random_state)
        arrays = self._learn(self._matrix(rows), np.random.RandomState(seed))
        validate_data(self, X, skip_check_array=True, ensure_2d=False)  # remembers column names
        self._become(rows.shape, arrays)
        return self

    def transform(self, X: Any) -> Any:
        """Embed rows; each result depends on its own row alone.

        Parameters
        ----------
        X : rows as in `fit`

        Returns
        -------
        ndarray (n, embedding_dim_)
        """
        self._fitted()
        rows = as_rows(X)
        expect_shape(rows, self.shape_in_, type(self).__name__)
        validate_data(self, X, reset=False, skip_check_array=True, ensure_2d=False)
        rows.check()
        matrix = self._matrix(rows)
        return self._embed(matrix).astype(matrix.dtype, copy=False)

    def _matrix(self, rows: Rows) -> Matrix:
        matrix = as_matrix(rows)
        return matrix if self.sparse or isinstance(matrix, np.ndarray) else matrix.toarray()

    def _become(self, shape_in: tuple[int, ...], arrays: Mapping[str, Array]) -> None:
        self.shape_in_ = shape_in
        self.n_features_in_ = int(np.prod(shape_in))
        # In one layout, so that a model gives the same bits before and after it was on disk.
        self.arrays_ = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        self.embedding_dim_ = self._width()

    def _width(self) -> int:
        return int(self.n_components)

    def _fitted(self) -> None:
        if not hasattr(self, "arrays_"):
            name = type(self).__name__
            raise UnfittedError(f"This {name} instance is not fitted yet: call 'fit' first")

    @property
    def n_parameters_(self) -> int | None:
        """How many numbers were learned; None where the fitted rows themselves are the model."""
        self._fitted()
        return sum(array.size for array in self.arrays_.values() if array.ndim)

    @property
    def _n_features_out(self) -> int:
        return self.embedding_dim_

    def _check_parameters(self) -> None:
        parameters.integer("n_components", self.n_components, at_least=1)

    def _check_size(self, rows: Rows) -> None:
        if self.n_components > min(rows.n, rows.n_features) or rows.n < 2:
            raise InputError(
                f"{type(self).__name__} with n_components={self.n_components} needs at least that "
                f"many features, and as many rows but not fewer than 2; got n_samples = {rows.n} "
                f"and n_features = {rows.n_features}"
            )

    def save(self, path: str | Path) -> None:
        """Write the model to the folder `path`, without pickle.

        Parameters
        ----------
        path : str or Path
            The folder is made; a model already in it is replaced.
        """
        self._fitted()
        names = getattr(self, "feature_names_in_", None)
        meta = {
            "class": type(self).__name__,
            "parameters": storage.plain_parameters(self),
            "shape_in": list(self.shape_in_),
            "feature_names_in": None if names is None else [str(name) for name in names],
        }
        tensors = {name: torch.from_numpy(np.array(a)) for name, a in self.arrays_.items()}
        write_state(Path(path) / storage.FILE, tensors, meta)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The model that `save` wrote to the folder `path`. Nothing in it is executed.

        Parameters
        ----------
        path : str or Path
        """
        file = Path(path) / storage.FILE
        tensors, meta = read_state(file)
        if meta.get("class") != cls.__name__:
            raise InputError(f"{file} holds a model of {meta.get('class')}, not of {cls.__name__}")
        try:
            model = cls(**meta["parameters"])
            model._check_parameters()
            shape_in = tuple(storage._size(side) for side in meta["shape_in"])
            model._become(shape_in, {name: tensor.numpy() for name, tensor in tensors.items()})
            # Arrays that don't belong together can't embed a row of the right length.
            if model._embed(model._probe()).shape != (1, model.embedding_dim_):
                raise ValueError("its arrays don't fit its description")
            names = meta["feature_names_in"]
            if names is not None:
                model.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
        except (KeyError, TypeError, ValueError, IndexError, MemoryError, ArithmeticError) as error:
            raise FileFormatError(f"{file} is damaged: {error}") from error
        return model

    def _probe(self) -> Array:
        return np.zeros((1, self.n_features_in_), dtype=np.float32)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class Raw(Reducer):
    """The features themselves, flattened: what every embedding has to beat.

    Parameters
    ----------
    n_components, random_state : ignored
        There so that `Raw` can take the place of any other method.

    Examples
    --------
    >>> import numpy as np
    >>> Raw().fit_transform(np.eye(3)).shape
    (3, 3)
    """

    n_components: Any = field(default=None, kw_only=False)

    def _learn(self, X: Matrix, random: np.random.RandomState) -> dict[str, Array]:  # noqa: ARG002
        return {}

    def _embed(self, X: Matrix) -> Matrix:
        return X

    def _width(self) -> int:
        return self.n_features_in_

    def _check_parameters(self) -> None:
        pass

    def _check_size(self, rows: Rows) -> None:
        pass


@dataclass(eq=False, repr=False, kw_only=True)
class PCA(Reducer):
    """Principal components: the directions of largest variance.

    Sparse rows stay sparse.

    Parameters
    ----------
    n_components : int
        Length of the embedding.
    random_state : int, RandomState or None
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
    n_components : int
        Length of the embedding.
    random_state : int, RandomState or None
        Of the initialisation.
    max_iter : int
        Rounds of coordinate descent, at most.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> NMF(n_components=10, random_state=0, max_iter=50).fit_transform(X).min() >= 0
    np.True_
    """

    max_iter: int = 1000

    def _learn(self, X: Matrix, random: np.random.RandomState) -> dict[str, Array]:
        self._check_sign(X)
        nmf = decomposition.NMF(self.n_components, max_iter=self.max_iter, random_state=random)
        nmf.fit(X)
        return {"components": nmf.components_, "n_iter": np.array(nmf.n_iter_)}

    @property
    def n_iter_(self) -> int:
        """Rounds of coordinate descent that the fit took."""
        self._fitted()
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        parameters.integer("max_iter", self.max_iter, at_least=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
