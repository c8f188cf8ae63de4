"""What the methods without a network share: fit, transform, and a model of plain arrays.

A method defines `_learn`, which returns named arrays, and `_embed`, which embeds rows with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from selfview.errors import FileFormatError, InputError
from selfview.estimator import parameters
from selfview.estimator.transform import (
    FittedMixin,
    description,
    saved_table,
    table_rows,
)
from selfview.rows.base import Rows
from selfview.rows.in_memory import ArrayRows, SparseRows
from selfview.saving import model_file
from selfview.tables.preparation import TablePreparation, preparation_for

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
class Reducer(FittedMixin):
    """Base of the methods without a network."""

    n_components: int = field(default=10, kw_only=False)
    random_state: Any = None

    _checks: ClassVar[parameters.Checks] = {"n_components": partial(parameters.integer, at_least=1)}

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
        X : rows as in `SelfView.fit`; images are flattened
        y : ignored

        Returns
        -------
        self
        """
        self.check_parameters()
        table = preparation_for(X)
        rows = table_rows(X, table)
        rows.check()
        self._check_size(rows)
        seed = parameters.seed("random_state", self.random_state)
        arrays = self._learned(as_matrix(rows), np.random.RandomState(seed))
        validate_data(self, X, skip_check_array=True, ensure_2d=False)  # remembers column names
        self._set_fitted_state(rows.shape, arrays)
        self._set_table(table)
        return self

    def _learned(self, X: Matrix, random: np.random.RandomState) -> dict[str, Array]:
        """What `_learn` gives if all of it is finite; else an error that says what to do."""
        name = type(self).__name__
        remedy = "Scale the features, for example with sklearn.preprocessing.StandardScaler"
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                arrays = self._learn(X, random)
        except InputError:
            raise
        except (ValueError, np.linalg.LinAlgError) as error:
            raise InputError(f"{name} can't be fitted to these rows: {error}. {remedy}") from error
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise InputError(f"{name}'s numbers left the range of {X.dtype}. {remedy}")
        return arrays

    def transform(self, X: Any) -> Any:
        """Embed rows; each result depends on its own row alone.

        Parameters
        ----------
        X : rows as in `fit`

        Returns
        -------
        ndarray (n, embedding_dim_)
        """
        rows = self._named_rows(X)
        rows.check()
        matrix = as_matrix(rows)
        return self._embed(matrix).astype(matrix.dtype, copy=False)

    def _set_fitted_state(self, shape_in: tuple[int, ...], arrays: Mapping[str, Array]) -> None:
        self.shape_in_ = shape_in
        self.n_features_in_ = int(np.prod(shape_in))
        # In one layout, so that a model gives the same bits before and after it was on disk.
        self.arrays_ = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        self.embedding_dim_ = self._width()

    def _set_table(self, table: TablePreparation | None) -> None:
        """Remember how a data frame of mixed columns becomes rows."""
        self.preparation_ = table
        if table is not None:
            self.n_features_in_ = table.n_features_in_

    def _width(self) -> int:
        return int(self.n_components)

    @property
    def n_parameters_(self) -> int | None:
        """The number of learned values; None where the fitted rows themselves are the model."""
        self._expect_fitted()
        return sum(array.size for array in self.arrays_.values() if array.ndim)

    def check_parameters(self) -> None:
        """Raise InputError if a parameter is not what it may be."""
        parameters.check_all(self, self._checks)

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
        self._expect_fitted()
        tensors = {name: torch.from_numpy(np.array(a)) for name, a in self.arrays_.items()}
        model_file.write_model(Path(path), tensors, description(self))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The model that `save` wrote to the folder `path`. Nothing in it is executed.

        Parameters
        ----------
        path : str or Path
        """
        file = Path(path) / model_file.FILE
        tensors, meta = model_file.read_model(file, cls.__name__)
        try:
            model = cls(**meta["parameters"])
            model.check_parameters()
            arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
            model._set_fitted_state(model_file.row_shape(meta), arrays)
            # Arrays that don't belong together can't embed a row of the right length.
            row = np.zeros((1, model.n_features_in_), dtype=np.float32)
            if model._embed(row).shape != (1, model.embedding_dim_):
                raise ValueError("its arrays don't fit its description")
            model._set_table(saved_table(meta.get("table"), model.shape_in_))
            names = model_file.feature_names(meta, model.n_features_in_)
            if names is not None:
                model.feature_names_in_ = names
        except model_file.DAMAGE as error:
            raise FileFormatError(f"{file} is damaged: {model_file.reason(error)}") from error
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
