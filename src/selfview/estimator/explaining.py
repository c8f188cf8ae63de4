"""`explain`: what the features of the rows contribute to a fitted embedding."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from selfview.errors import InputError
from selfview.estimator import parameters
from selfview.explain import Explanation, feature_names, path_gradient
from selfview.networks import encoders
from selfview.networks.encoders import EncodingNetwork, ScaledEncoder
from selfview.rows.base import Rows
from selfview.tables.preparation import TablePreparation

Arrays = tuple[tuple[str, ...], tuple[NDArray[Any], ...]]  # of an Explanation, with names

BY = ("component", "cluster", "row")
ROWS = 500  # of a component or a cluster, at most, drawn from those given
PART = 128  # rows at a time


class ExplainMixin:
    """The part of an estimator that tells which features its embedding is made of."""

    encoder: str | nn.Module
    network_: EncodingNetwork
    shape_in_: tuple[int, ...]
    seed_: int
    preparation_: TablePreparation | None

    _rows: Callable[..., Rows]
    _labels: Callable[[Rows], NDArray[np.int64]]
    get_feature_names_out: Callable[..., Any]

    def explain(
        self,
        X: Any,
        by: str = "component",
        *,
        labels: Any = None,
        baseline: Any = None,
        steps: int = 16,
    ) -> Explanation:
        """How much each feature contributes, by integrated gradients from a baseline to the rows.

        Contributions are in the unit of the embedding, differences in that of the data:

        - by="component": the mean absolute contribution of a feature to the component, with the
          sign of the component's mean slope along it. For a linear encoder it is the weight times
          the feature's mean absolute deviation from the baseline.
        - by="cluster": how far each feature moves the cluster's rows, on average, from the baseline
          towards the cluster's mean. They sum to the distance. What moves rows away from the
          cluster is negative. Needs `n_clusters`, or `labels`.
        - by="row": how far each feature moves the row from the baseline. They sum to the distance.

        Parameters
        ----------
        X : rows as in `fit`
            By component or cluster, at most 500 rows, drawn at random, are looked at for each.
        by : {"component", "cluster", "row"}, default "component"
        labels : array (n,) of int, or None, default None
            Clusters of the rows, where they are not the model's own.
        baseline : row, or None, default None
            What rows are compared with. None: the mean row of the fit, or of `X` for images and own
            encoders.
        steps : int, default 16
            Points of the line from the baseline to a row at which the gradient is taken.

        Returns
        -------
        Explanation
            With `contributions`, `slopes` and `differences` (targets, features), and names;
            `top(10)` lists the leading features.

        Examples
        --------
        >>> import numpy as np
        >>> from selfview import SelfView
        >>> X = np.random.default_rng(0).normal(size=(100, 8))
        >>> model = SelfView(n_components=3, epochs=2, random_state=0, verbose=0).fit(X)
        >>> model.explain(X).contributions.shape
        (3, 8)
        """
        parameters.one_of("by", by, BY)
        parameters.integer("steps", steps, at_least=1)
        rows = self._rows(X)
        rows.check()
        start = self._baseline(rows, baseline)
        if by == "cluster":
            found = self._labels(rows) if labels is None else _own_labels(labels, rows.n)
            names, arrays = self._by_cluster(rows, found, start, steps)
        else:
            explain = self._by_component if by == "component" else self._by_row
            names, arrays = explain(rows, start, steps)
        known = getattr(self, "feature_names_in_", None) if self.preparation_ is None else None
        features = feature_names(known, start.numel())
        explanation = Explanation(by, names, features, *(a.astype(np.float32) for a in arrays))
        if self.preparation_ is None:
            return explanation
        table = self.preparation_.table_
        return explanation.in_units(table.features, table.units)

    def _by_component(self, rows: Rows, start: Tensor, steps: int) -> Arrays:
        names = tuple(map(str, self.get_feature_names_out()))
        index = self._sample(np.arange(rows.n))
        sizes, slopes, squares = np.zeros((3, len(names), start.numel()))
        for x in self._parts(rows, index):
            squares += _sum((x - start).square())
            for c, axis in enumerate(torch.eye(len(names), device=x.device)):
                slope = path_gradient(partial(self._along, axis), x, start, steps)
                sizes[c] += _sum((slope * (x - start)).abs())
                slopes[c] += _sum(slope)
        n = len(index)
        return names, (sizes / n * np.sign(slopes), slopes / n, np.sqrt(squares / n))

    def _by_cluster(
        self, rows: Rows, labels: NDArray[np.int64], start: Tensor, steps: int
    ) -> Arrays:
        found = np.unique(labels)
        values, slopes, differences = np.zeros((3, len(found), start.numel()))
        with torch.no_grad():
            z0 = self._embed(start)
        for i, label in enumerate(found):
            index = self._sample(np.flatnonzero(labels == label))
            with torch.no_grad():
                z = torch.cat([self._embed(x) for x in self._parts(rows, index)]).mean(0)
            way = F.normalize(z - z0)[0]
            for x in self._parts(rows, index):
                slope = path_gradient(partial(self._along, way), x, start, steps)
                values[i] += _sum(slope * (x - start)) / len(index)
                slopes[i] += _sum(slope) / len(index)
                differences[i] += _sum(x - start) / len(index)
        return tuple(f"cluster {label}" for label in found), (values, slopes, differences)

    def _by_row(self, rows: Rows, start: Tensor, steps: int) -> Arrays:
        values, slopes, differences = np.zeros((3, rows.n, start.numel()), np.float32)
        with torch.no_grad():
            z0 = self._embed(start)
        done = 0
        for x in self._parts(rows, np.arange(rows.n)):
            with torch.no_grad():
                ways = F.normalize(self._embed(x) - z0)
            slope = path_gradient(partial(self._along, ways), x, start, steps)
            part = slice(done, done := done + len(x))
            values[part] = (slope * (x - start)).flatten(1).cpu().numpy()
            slopes[part] = slope.flatten(1).cpu().numpy()
            differences[part] = (x - start).flatten(1).cpu().numpy()
        return tuple(f"row {i}" for i in range(rows.n)), (values, slopes, differences)

    def _embed(self, x: Tensor) -> Tensor:
        z: Tensor = self.network_.encoder(x)
        return z.float()

    def _along(self, direction: Tensor, x: Tensor) -> Tensor:
        """The embedding's length in a direction, or each row's in its own: (batch,)."""
        return (self._embed(x) * direction).sum(1)

    def _sample(self, index: NDArray[np.intp]) -> NDArray[np.intp]:
        """At most `ROWS` of the row numbers."""
        return np.sort(np.random.default_rng(self.seed_).permutation(index)[:ROWS])

    def _parts(self, rows: Rows, index: NDArray[np.intp]) -> Iterator[Tensor]:
        """The rows of these numbers, some at a time, as the network takes them."""
        shape = encoders.input_shape(rows.shape, self.encoder)
        device = next(self.network_.parameters()).device
        for first in range(0, len(index), PART):
            yield rows.pick(index[first : first + PART]).reshape(-1, *shape).to(device)

    def _baseline(self, rows: Rows, given: Any) -> Tensor:
        """The row that others are compared with: (1, *shape)."""
        shape = encoders.input_shape(rows.shape, self.encoder)
        device = next(self.network_.parameters()).device
        encoder = self.network_.encoder
        if given is not None:
            row = np.asarray(given, np.float32)
            if row.size != rows.n_features or not np.isfinite(row).all():
                raise InputError(
                    f"baseline must be one row of {rows.n_features} finite numbers, got an array "
                    f"of shape {row.shape}"
                )
            start = torch.from_numpy(row)
        elif isinstance(encoder, ScaledEncoder) and encoder.shift.ndim:
            start = encoder.shift
        elif rows.n == 1:
            raise InputError("baseline must be given: the mean of one row is the row itself")
        else:
            start = sum((x.double().sum(0) for _, x in rows.chunks()), torch.zeros(())) / rows.n
        return start.to(device, torch.float32).reshape(1, *shape)


def _own_labels(labels: Any, n: int) -> NDArray[np.int64]:
    found = np.asarray(labels)
    if found.shape != (n,) or found.dtype.kind not in "iu":
        raise InputError(
            f"labels must be a whole number for each of the {n} rows, got {found.dtype} of shape "
            f"{found.shape}"
        )
    return found.astype(np.int64)


def _sum(x: Tensor) -> NDArray[np.float64]:
    """The sum over rows, for each feature."""
    total: NDArray[np.float64] = x.flatten(1).sum(0).double().cpu().numpy()
    return total
