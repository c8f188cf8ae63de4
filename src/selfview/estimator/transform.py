"""What a fitted estimator is for: it embeds rows, is saved, and loaded again."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from selfview.errors import FileFormatError, InputError
from selfview.estimator import clustering
from selfview.estimator.plan import FitPlan
from selfview.estimator.recipes import RECIPES, Settings
from selfview.networks import encoders
from selfview.networks.encoders import EncodingNetwork
from selfview.rows.base import Rows, Summary
from selfview.rows.conversion import as_rows, expect_shape
from selfview.saving import model_file
from selfview.tables.columns import Table
from selfview.tables.preparation import TablePreparation
from selfview.training.optimiser import Adam

TRANSFORM_ROWS = 4096
LEAST_ROWS = 32  # and a multiple of it


class UnfittedError(InputError, NotFittedError):  # type: ignore[misc]
    """The model was used before `fit`."""


class FittedMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What all estimators do with rows once they are fitted."""

    embedding_dim_: int
    shape_in_: tuple[int, ...]
    preparation_: TablePreparation | None = None  # of a data frame of mixed columns

    def _expect_fitted(self) -> None:
        if not hasattr(self, "shape_in_"):
            name = type(self).__name__
            raise UnfittedError(f"This {name} instance is not fitted yet: call 'fit' first")

    def _rows(self, X: Any) -> Rows:
        """`X` as rows, which must be of the shape that was fitted."""
        self._expect_fitted()
        rows = table_rows(X, self.preparation_)
        expect_shape(rows, self.shape_in_, type(self).__name__)
        return rows

    def _named_rows(self, X: Any) -> Rows:
        """The same; a warning tells if columns have other names than those of the fit."""
        rows = self._rows(X)
        if rows is not X and self.preparation_ is None:  # rows have no column names
            validate_data(self, X, reset=False, skip_check_array=True, ensure_2d=False)
        return rows

    @property
    def _n_features_out(self) -> int:
        return self.embedding_dim_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class TransformMixin(FittedMixin):
    """The part of an estimator that uses what `fit` has learned."""

    n_components: int
    encoder: str | nn.Module
    network_: EncodingNetwork
    epochs_: int
    seed_: int
    _optimisers: list[Adam] | None

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embed rows; each result depends on its own row alone.

        Parameters
        ----------
        X : rows as in `fit`

        Returns
        -------
        ndarray (n, embedding_dim_) of float32
        """
        encoder = self._fitted_network().encoder
        return self._apply(encoder, X, self.embedding_dim_)

    def _apply(
        self, function: Callable[[Tensor], Tensor], X: Any, width: int
    ) -> NDArray[np.float32]:
        return self._map(function, self._named_rows(X), width)

    def _map(
        self, function: Callable[[Tensor], Tensor], rows: Rows, width: int
    ) -> NDArray[np.float32]:
        device = next(self.network_.parameters()).device
        shape = encoders.input_shape(rows.shape, self.encoder)
        plan = FitPlan(shape, Summary(), self.epochs_, self.seed_, device)
        # A custom encoder may cost more for more rows.
        return map_rows(function, rows, plan, width, fill_up=isinstance(self.encoder, str))

    @property
    def encoder_(self) -> nn.Module:
        """The fitted encoder: rows to embedding."""
        encoder: nn.Module = self._fitted_network().encoder
        return encoder

    def _fitted_network(self) -> Any:
        self._expect_fitted()
        return self.network_

    def save(self, path: str | Path) -> None:
        """Write the model to the folder `path`, without pickle.

        Parameters
        ----------
        path : str or Path
            The folder is made; a model already in it is replaced.
        """
        network = self._fitted_network()
        tensors, clusters = self._cluster_tensors()
        meta = description(self) | {
            "epochs": self.epochs_,
            "seed": self.seed_,
            "history": self.history_,
            "health": self.health_,
            "clusters": clusters,
        }
        model_file.write_model(Path(path), {**network.state_dict(), **tensors}, meta)

    def _cluster_tensors(self) -> tuple[dict[str, Tensor], dict[str, Any] | None]:
        """Tensors and description of clusters: none, unless a method finds some."""
        return {}, None

    @classmethod
    def load(cls, path: str | Path, encoder: nn.Module | None = None) -> Self:
        """The model that `save` wrote to the folder `path`. Nothing in it is executed.

        Parameters
        ----------
        path : str or Path
        encoder : nn.Module or None, default None
            Needed if the model was fitted with a custom encoder: its architecture, whose weights
            are then read from the folder.
        """
        file = Path(path) / model_file.FILE
        tensors, meta = model_file.read_model(file, cls.__name__)
        parameters = meta.get("parameters")
        own = isinstance(parameters, dict) and parameters.get("encoder") == model_file.OWN_ENCODER
        if own and encoder is None:
            raise InputError(
                f"the model in {path} was fitted with a custom encoder: pass one of the same "
                f"architecture, {cls.__name__}.load({str(path)!r}, encoder=...)"
            )
        try:
            return cls._rebuilt(tensors, meta, encoder if own else None)
        except model_file.DAMAGE as error:
            or_not = " (or the encoder passed is not the one it was fitted with)" if own else ""
            reason = model_file.reason(error)
            raise FileFormatError(f"{file} is damaged{or_not}: {reason}") from error

    @classmethod
    def _rebuilt(
        cls, tensors: dict[str, Tensor], meta: dict[str, Any], encoder: nn.Module | None
    ) -> Self:
        """The model that a description tells, with these tensors."""
        given = dict(meta["parameters"])
        model = cls(**(given if encoder is None else given | {"encoder": encoder}))
        model.check_parameters()
        shape_in = model_file.row_shape(meta)
        shape = encoders.input_shape(shape_in, model.encoder)
        plan = FitPlan(
            shape,
            Summary(),
            model_file.epochs(meta["epochs"]),
            model_file.seed(meta["seed"]),
            torch.device("cpu"),
            encoder=_encoder(model.recipe, tensors) if model.encoder == "auto" else model.encoder,
            table=saved_table(meta.get("table"), shape_in),
            settings=Settings(width=_width(tensors)),
        )
        clusters = clustering.restored(tensors, meta.get("clusters"))
        # Without memory: sizes in a hostile description cost nothing until they are believed.
        with torch.device("meta"):
            network = model._network(plan)
            if isinstance(network.encoder, encoders.ScaledEncoder):
                maps = tensors["encoder.shift"], tensors["encoder.scale"]
                network.encoder.expect(*maps, math.prod(shape))
        model_file.check_shapes(network, tensors)
        network.load_state_dict(tensors, assign=True)
        history, health = model_file.history(meta["history"]), dict(meta["health"])
        model._set_fitted_state(network.eval(), shape_in, plan, history, health)
        if clusters is not None:
            model.clusters_ = clusters.expect(model.embedding_dim_)
        names = model_file.feature_names(meta, model.n_features_in_)
        if names is not None:
            model.feature_names_in_ = names
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        # What only a further pass needs would multiply a pickle: the optimisers' moments, of which
        # partial_fit then starts new ones, and a stream's newest rows.
        if hasattr(self, "network_"):
            _ = self.health_  # of a stream, found from those rows
        state: dict[str, Any] = super().__getstate__()
        left_out = ("_optimisers", "_recent", "_last_pass")
        return state | {name: None for name in left_out if name in state}


def map_rows(
    function: Callable[[Tensor], Tensor], rows: Rows, plan: FitPlan, width: int, *, fill_up: bool
) -> NDArray[np.float32]:
    """What `function` gives for the rows, taken in parts: (n, width)."""
    out = np.empty((rows.n, width), np.float32)
    with torch.inference_mode():
        for start in range(0, rows.n, TRANSFORM_ROWS):
            part = slice(start, min(start + TRANSFORM_ROWS, rows.n))
            x = rows.take(part)
            rows.check_chunk(start, x)
            x = plan.as_input(x)
            x = _filled_up(x) if fill_up else x
            out[part] = function(x)[: part.stop - start].float().cpu().numpy()
    return out


def _filled_up(x: Tensor) -> Tensor:
    """Rows of features, the last repeated until they are a multiple of `LEAST_ROWS`.

    A product of few rows takes other kernels, which sum in another order: rounding would depend on
    the number of rows. Images stay as they are, for more of them cost more.
    """
    missing = -len(x) % LEAST_ROWS
    return torch.cat([x, x[-1:].expand(missing, -1)]) if x.ndim == 2 and missing else x


def table_rows(X: Any, table: TablePreparation | None) -> Rows:
    """`X` as rows; a data frame of mixed columns as `table` prepares it."""
    return as_rows(X if table is None or isinstance(X, Rows) else table.transform(X))


def description(model: Any) -> dict[str, Any]:
    """What every model file tells: class, parameters, and what its rows are."""
    names, table = getattr(model, "feature_names_in_", None), model.preparation_
    return {
        "class": type(model).__name__,
        "parameters": model_file.plain_parameters(model),
        "shape_in": list(model.shape_in_),
        "feature_names_in": None if names is None else [str(name) for name in names],
        "table": None if table is None else table.table_.to_json(),
    }


def saved_table(saved: Any, shape: tuple[int, ...]) -> TablePreparation | None:
    """The preparation that a description tells, if it is of a mixed table."""
    if saved is None:
        return None
    table = Table.from_json(saved)
    if (len(table.features),) != shape:
        raise ValueError("its table doesn't make rows of its shape")
    return TablePreparation.from_table(table)


def _encoder(recipe: str, tensors: dict[str, Tensor]) -> str:
    """The encoder that these are the weights of: those of convolutions have four dimensions."""
    return RECIPES[recipe].images if any(t.ndim == 4 for t in tensors.values()) else "mlp"


def _width(tensors: dict[str, Tensor]) -> int:
    """Width of the hidden layers of a perceptron, whose first weight is (width, n_features)."""
    first = tensors.get("encoder.1.weight")
    return encoders.WIDTH if first is None or first.ndim != 2 else len(first)
