"""LLE and Isomap: embeddings of the neighbourhood graph, extended to new rows.

Both keep the rows they were fitted on. Isomap holds the distances between all of them, and LLE
finds the null space of a matrix as large, so more than `max_rows` rows are an error; `fit_rows`
fits a sample of the rows and places the others by their neighbours in it.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh
from sklearn import manifold
from sklearn.neighbors import NearestNeighbors

from selfview.baselines.reducer import Array, Matrix, Reducer
from selfview.errors import InputError
from selfview.estimator import parameters
from selfview.rows.base import Rows
from selfview.rows.conversion import as_rows

MAX_ROWS = 20_000  # a matrix of all pairs is 3.2 GB then, and Isomap needs three of them
QUERY_ROWS = 1024  # that are placed at a time
DENSE_ROWS = 4_000  # up to which the exact eigensolver takes about a minute
REGULARISATION = 1e-3  # of LLE's weights, relative to the trace of the local Gram matrix
WEIGHT_BYTES = 1 << 27  # of the differences of rows and neighbours that are held at a time
TOLERANCE, MAX_ITERATIONS = 1e-6, 100  # of ARPACK, as scikit-learn's LLE has them


@dataclass(eq=False, repr=False, kw_only=True)
class Manifold(Reducer):
    """Base of the methods that embed a graph of neighbours."""

    n_neighbors: int = 10
    max_rows: int = MAX_ROWS
    fit_rows: int | None = None

    _checks: ClassVar[parameters.Checks] = {
        **Reducer._checks,
        "n_neighbors": partial(parameters.integer, at_least=1),
        "max_rows": partial(parameters.integer, at_least=2),
        "fit_rows": partial(parameters.integer_or_none, at_least=2),
    }

    def _check_size(self, rows: Rows) -> None:
        super()._check_size(rows)
        name = type(self).__name__
        fitted = min(rows.n, self.fit_rows or rows.n)
        if fitted > self.max_rows:
            raise InputError(
                f"{name} would need {8 * fitted**2 / 1e9:,.0f} GB for the distances between all "
                f"{fitted:,} rows, and its limit is max_rows={self.max_rows:,}. Fit a sample with "
                f"fit_rows={self.max_rows} (the other rows are then placed by their neighbours in "
                "it), or raise max_rows"
            )
        if fitted <= max(self.n_neighbors, self.n_components):
            raise InputError(
                f"{name} needs more rows than n_neighbors={self.n_neighbors} and "
                f"n_components={self.n_components}, got n_samples = {fitted}"
            )

    def _sample(self, X: Matrix, random: np.random.RandomState) -> Matrix:
        """The rows to fit: all, or `fit_rows` of them drawn at random."""
        if self.fit_rows is None or self.fit_rows >= X.shape[0]:
            return X
        return X[np.sort(random.permutation(X.shape[0])[: self.fit_rows])]

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit to `X` and return its embedding, for fitted rows the one found in the fit."""
        self.fit(X, y, **params)
        embedding = self.arrays_["embedding"]
        # A sample was fitted, so that the other rows are still to be placed.
        if len(embedding) != as_rows(X).n:
            return self.transform(X)
        rows = self.arrays_["rows" if "rows" in self.arrays_ else "rows.data"]
        return embedding.astype(rows.dtype)

    def _set_fitted_state(self, shape_in: tuple[int, ...], arrays: Any) -> None:
        super()._set_fitted_state(shape_in, arrays)
        self.neighbours_ = NearestNeighbors(n_neighbors=self.n_neighbors).fit(self._fitted_rows())

    def _fitted_rows(self) -> Matrix:
        if "rows" in self.arrays_:
            return self.arrays_["rows"]
        parts = [self.arrays_[f"rows.{part}"] for part in ("data", "indices", "indptr")]
        matrix = sp.csr_array(tuple(parts), shape=(len(parts[2]) - 1, self.n_features_in_))
        matrix.check_format()
        return matrix

    @staticmethod
    def _kept(X: Matrix) -> dict[str, Array]:
        """The fitted rows as arrays."""
        if isinstance(X, np.ndarray):
            return {"rows": X}
        return {"rows.data": X.data, "rows.indices": X.indices, "rows.indptr": X.indptr}

    def _embed(self, X: Matrix) -> Array:
        parts = range(0, X.shape[0], QUERY_ROWS)
        return np.concatenate([self._place(X[start : start + QUERY_ROWS]) for start in parts])

    def _place(self, X: Matrix) -> Array:
        """Embeddings of a bounded number of rows."""
        raise NotImplementedError

    @property
    def n_parameters_(self) -> None:
        """None: the fitted rows themselves are the model."""
        return


@dataclass(eq=False, repr=False, kw_only=True)
class LLE(Manifold):
    """Locally linear embedding: the same neighbours rebuild a row and its embedding [1]_.

    Sparse rows stay sparse: scikit-learn takes dense rows only, so that the weights are then found
    here, from a bounded number of rows at a time.

    Parameters
    ----------
    n_components : int, default 10
        Length of the embedding.
    random_state : int, RandomState or None, default None
        Of the eigensolver, and of the sample that `fit_rows` draws.
    n_neighbors : int, default 10
        Neighbours that rebuild a row. On FSDD the linear accuracy is 59 % with 5 (scikit-learn's
        default), 65 % with 10 and 72 % with 15; the paper doesn't give its number.
    max_rows : int, default 20000
        Fitting more rows than this is an error.
    fit_rows : int or None, default None
        Fit this many rows, drawn at random, and place the others by their neighbours among them.

    References
    ----------
    .. [1] Roweis, Saul, "Nonlinear dimensionality reduction by locally linear embedding", Science
       290, 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> LLE(n_components=10, random_state=0, fit_rows=500).fit_transform(X).shape
    (1797, 10)
    """

    def _learn(self, X: Matrix, random: np.random.RandomState) -> dict[str, Array]:
        X = self._sample(X, random)
        n, solver = X.shape[0], "dense" if X.shape[0] <= DENSE_ROWS else "arpack"
        try:
            if isinstance(X, np.ndarray):
                lle = manifold.LocallyLinearEmbedding(
                    n_neighbors=self.n_neighbors,
                    n_components=self.n_components,
                    reg=REGULARISATION,
                    eigen_solver=solver,
                    random_state=random,
                )
                embedding = lle.fit(X).embedding_
            else:
                graph = neighbour_weights(X, self.n_neighbors)
                embedding = null_space(graph, self.n_components, solver, random)
        except (ValueError, RuntimeError) as error:
            # Equal rows make the null space larger than ARPACK can settle on.
            raise InputError(
                f"LLE's eigensolver did not converge on {n:,} rows, which happens if many "
                "rows are equal. Raise n_neighbors, remove equal rows, or fit at most "
                f"fit_rows={DENSE_ROWS} rows, for which there is an exact solver"
            ) from error
        return {**self._kept(X), "embedding": embedding}

    def _place(self, X: Matrix) -> Array:
        near = self.neighbours_.kneighbors(X, return_distance=False)  # (batch, k)
        weights = barycentric(X, self._fitted_rows(), near)
        return np.asarray(np.einsum("bk,bkl->bl", weights, self.arrays_["embedding"][near]))


def barycentric(X: Matrix, rows: Matrix, near: Array) -> Array:
    """Weights, of sum 1, by which its neighbours best rebuild each row of `X`: (batch, k).

    Parameters
    ----------
    X, rows : ndarray or CSR array (batch, features), (n, features)
    near : ndarray (batch, k)
        Which of `rows` are the neighbours.

    Examples
    --------
    >>> x, corners = np.array([[0.25]]), np.array([[0.0], [1.0]])
    >>> barycentric(x, corners, np.array([[0, 1]])).round(2)
    array([[0.75, 0.25]])
    """
    k = near.shape[1]
    size = max(1, WEIGHT_BYTES // (8 * k * X.shape[1]))
    weights = np.empty(near.shape)
    for start in range(0, len(near), size):
        part = slice(start, start + size)
        around, at = _dense(rows[near[part].ravel()]), _dense(X[part])
        differences = around.reshape(-1, k, X.shape[1]) - at[:, None]
        gram = differences @ differences.transpose(0, 2, 1)
        trace = np.trace(gram, axis1=1, axis2=2)
        ridge = REGULARISATION * np.where(trace > 0, trace, 1.0)
        gram += ridge[:, None, None] * np.eye(k)
        weights[part] = np.linalg.solve(gram, np.ones((len(gram), k, 1)))[..., 0]
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _dense(rows: Matrix) -> Array:
    plain = rows if isinstance(rows, np.ndarray) else rows.toarray()
    return np.asarray(plain, dtype=np.float64)


def neighbour_weights(X: Matrix, k: int) -> sp.csr_array:
    """The weights of every row's `k` neighbours among the others: (n, n), `k` entries a row."""
    n = X.shape[0]
    near = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(return_distance=False)
    entries = (barycentric(X, X, near).ravel(), near.ravel(), np.arange(0, n * k + 1, k))
    return sp.csr_array(entries, shape=(n, n))


def null_space(graph: sp.csr_array, dim: int, solver: str, random: np.random.RandomState) -> Array:
    """The `dim` eigenvectors of (I - W)^T (I - W) of smallest eigenvalue, but for the constant."""
    change = sp.eye_array(graph.shape[0], format="csr") - graph
    cost = (change.T @ change).tocsr()
    if solver == "dense":
        return np.asarray(eigh(cost.toarray(), subset_by_index=(1, dim), overwrite_a=True)[1])
    start = random.uniform(-1, 1, graph.shape[0])
    _, vectors = eigsh(cost, dim + 1, sigma=0.0, v0=start, tol=TOLERANCE, maxiter=MAX_ITERATIONS)
    return np.asarray(vectors[:, 1:])


@contextmanager
def _global_state_of(random: np.random.RandomState) -> Iterator[None]:
    """Within it NumPy's global state is that of `random`: Isomap's eigensolver starts from it."""
    before = np.random.get_state()
    np.random.set_state(random.get_state())
    try:
        yield
    finally:
        np.random.set_state(before)


@dataclass(eq=False, repr=False, kw_only=True)
class Isomap(Manifold):
    """Isomap: an embedding that preserves distances along the graph of neighbours [1]_.

    Sparse rows stay sparse; the distances of all pairs of fitted rows are part of the model.

    Parameters
    ----------
    n_components, random_state, max_rows, fit_rows
        As in `LLE`, with the same defaults.
    n_neighbors : int, default 10
        Neighbours that a row is connected to.

    References
    ----------
    .. [1] Tenenbaum, de Silva, Langford, "A global geometric framework for nonlinear
       dimensionality reduction", Science 290, 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> Isomap(n_components=10, random_state=0, fit_rows=500).fit_transform(X).shape
    (1797, 10)
    """

    def _learn(self, X: Matrix, random: np.random.RandomState) -> dict[str, Array]:
        X = self._sample(X, random)
        isomap = manifold.Isomap(n_neighbors=self.n_neighbors, n_components=self.n_components)
        with warnings.catch_warnings(), _global_state_of(random):
            # scikit-learn joins the parts of a graph edge by edge, and SciPy finds that slow.
            warnings.simplefilter("ignore", sp.SparseEfficiencyWarning)
            embedding = isomap.fit_transform(X)
        distances, values = isomap.dist_matrix_, isomap.kernel_pca_.eigenvalues_
        lengths = np.sqrt(np.where(values > 0, values, np.inf))
        return {
            **self._kept(X),
            "embedding": embedding,
            "distances": distances,
            "mean_squares": np.einsum("ij,ij->j", distances, distances) / len(distances),
            "axes": isomap.kernel_pca_.eigenvectors_ / lengths,
        }

    def _place(self, X: Matrix) -> Array:
        distances, mean_squares = self.arrays_["distances"], self.arrays_["mean_squares"]
        steps, near = self.neighbours_.kneighbors(X)  # (batch, k)
        squares = np.stack(
            [(distances[n] + s[:, None]).min(axis=0) ** 2 for n, s in zip(near, steps, strict=True)]
        )  # (batch, fitted): along the graph, through the nearest of the row's neighbours
        centred = squares - mean_squares - squares.mean(1, keepdims=True) + mean_squares.mean()
        return np.asarray(-0.5 * centred @ self.arrays_["axes"])
