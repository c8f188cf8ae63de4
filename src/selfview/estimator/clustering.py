"""Clusters of a fitted embedding: `fit_predict`, `predict` and `cluster_proba`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from torch import Tensor

from selfview.clusters import Clusters, find_clusters
from selfview.errors import InputError
from selfview.estimator import parameters
from selfview.networks.encoders import EncodingNetwork
from selfview.rows.base import Rows

KEPT_ENTRIES = 1 << 22  # of an embedding: 16 MiB
PREFIX = "clusters."  # of their tensors in a model file


def n_clusters(name: str, value: Any) -> int | None:
    """None, or the number of clusters, of which "auto" is none yet."""
    return None if value is None else parameters.integer_or(name, value, "auto", at_least=1)


def _asked(model: Any) -> bool:
    if model.n_clusters is None:  # what scikit-learn's own AttributeError gives as its cause
        raise AttributeError("there are no clusters: set n_clusters, to a number or to 'auto'")
    return True


class ClusteringMixin:
    """The part of an estimator that gives rows to clusters."""

    n_clusters: int | str | None
    network_: EncodingNetwork
    embedding_dim_: int
    seed_: int
    embedding_: NDArray[np.float32]
    labels_: NDArray[np.int64]
    clusters_: Clusters | None = None

    _map: Callable[[Callable[[Tensor], Tensor], Rows, int], NDArray[np.float32]]
    _fitted_network: Callable[[], Any]
    transform: Callable[[Any], Any]
    fit: Callable[..., Any]

    @available_if(_asked)  # type: ignore[untyped-decorator]
    def fit_predict(self, X: Any, y: Any = None, groups: Any = None) -> NDArray[np.int64]:  # noqa: ARG002
        """Fit, and give the cluster of every row: (n,), from 0, the largest cluster first.

        Parameters
        ----------
        X : rows as in `fit`
        y : ignored
        groups : as in `fit`, default None
        """
        labels: NDArray[np.int64] = self.fit(X, groups=groups).labels_
        return labels

    @available_if(_asked)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of every row, new ones too: (n,).

        Parameters
        ----------
        X : rows as in `fit`
        """
        return self._found_clusters().assign(self._plain(X))

    @available_if(_asked)  # type: ignore[untyped-decorator]
    def cluster_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of every cluster for every row: (n, n_clusters_), rows sum to 1.

        They are calibrated by clusters that were found from random halves of the rows: how often a
        row is in the same cluster there.

        Parameters
        ----------
        X : rows as in `fit`
        """
        return self._found_clusters().probabilities(self._plain(X))

    @property
    def n_clusters_(self) -> int:
        """Number of clusters."""
        if self.clusters_ is None:
            raise AttributeError("n_clusters_ is there after a fit with n_clusters")
        return self._found_clusters().count

    @property
    def cluster_stability_(self) -> dict[int, float]:
        """How alike clusters of random halves of the rows are (adjusted Rand index, at most 1).

        For the number of clusters and, with "auto", the next best number.
        """
        if self.clusters_ is None:
            raise AttributeError("cluster_stability_ is there after a fit with n_clusters")
        return dict(self._found_clusters().stability)

    def _plain(self, X: Any) -> NDArray[np.float32]:
        """The embedding as an array, whatever `set_output` asks `transform` for."""
        return np.asarray(self.transform(X))

    def _found_clusters(self) -> Clusters:
        self._fitted_network()
        if self.clusters_ is None:
            raise InputError("clusters are found by fit: call it with n_clusters set")
        return self.clusters_

    def _labels(self, rows: Rows) -> NDArray[np.int64]:
        if self.n_clusters is None:
            raise InputError("explain by cluster needs n_clusters, got None: set it and fit")
        labels: NDArray[np.int64] = self.predict(rows)
        return labels

    def _forget_rows(self) -> None:
        """Leave out what belongs to the rows of an earlier fit."""
        self.clusters_ = None
        for name in ("embedding_", "labels_"):
            self.__dict__.pop(name, None)

    def _find_clusters(self, rows: Rows) -> None:
        """The clusters of the rows of a fit; and their embedding, if it is small."""
        encoder, dim = self.network_.encoder, self.embedding_dim_
        small = rows.stored is None and rows.n * dim <= KEPT_ENTRIES
        if small:
            self.embedding_ = self._map(encoder, rows, dim)
        if self.n_clusters is None:
            return
        count = None if self.n_clusters == "auto" else int(self.n_clusters)
        Z = self.embedding_ if small else self._map(encoder, rows, dim)
        self.clusters_ = find_clusters(Z, count, self.seed_)
        self.labels_ = self.clusters_.assign(Z)

    def _cluster_tensors(self) -> tuple[dict[str, Tensor], dict[str, Any] | None]:
        """Tensors and description of the clusters, for a model file."""
        import torch

        found = self.clusters_
        if found is None:
            return {}, None
        tensors = {
            PREFIX + "centres": torch.from_numpy(found.centres),
            PREFIX + "labels": torch.from_numpy(found.labels),
        }
        stability = {str(k): value for k, value in found.stability.items()}
        return tensors, {
            "unit": found.unit, "sharpness": found.sharpness, "stability": stability,
        }  # fmt: skip


def restored(tensors: dict[str, Tensor], meta: Mapping[str, Any] | None) -> Clusters | None:
    """The clusters of a model file, checked; their tensors are taken out of `tensors`."""
    found = {name: tensors.pop(PREFIX + name, None) for name in ("centres", "labels")}
    if meta is None:
        return None
    centres, labels = found["centres"], found["labels"]
    if centres is None or labels is None or centres.ndim != 2 or len(centres) != len(labels):
        raise ValueError("its clusters don't fit its description")
    codes = labels.numpy().astype(np.int64)
    if not len(codes) or not centres.isfinite().all():
        raise ValueError("its clusters have no centres")
    if codes.min() != 0 or codes.max() + 1 != len(np.unique(codes)):
        raise ValueError("its clusters are not numbered from 0")
    unit, sharpness = float(meta["unit"]), float(meta["sharpness"])
    if not (unit > 0 and sharpness > 0 and np.isfinite([unit, sharpness]).all()):
        raise ValueError("its clusters have no size")
    stability = {int(k): float(value) for k, value in dict(meta["stability"]).items()}
    return Clusters(centres.float().numpy(), codes, unit, sharpness, stability)
