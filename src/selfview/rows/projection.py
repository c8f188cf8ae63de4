"""Rows in their leading principal components: fewer columns for a network, the same distances."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from selfview.rows.base import Index, Rows

SAMPLE_ROWS = 20_000  # whose principal components are taken
SAMPLE_ENTRIES = 1 << 25  # of them, at most: 128 MiB of float32
CACHED_ENTRIES = 1 << 26  # of projected rows that are kept in memory: 256 MiB


@dataclass(frozen=True)
class Projection:
    """The affine map ``((x - mean) / scale) @ basis`` from flat rows to principal components.

    The columns of the basis are orthogonal, and all of one length: distances between rows keep
    their proportions.
    """

    mean: Tensor  # (n_features,)
    scale: Tensor  # a number, or (n_features,): the columns' standard deviations
    basis: Tensor  # (n_features, d)
    unit: float  # length of the basis' columns: a distance of 1 between rows becomes this

    def __call__(self, x: Tensor) -> Tensor:
        """Rows (batch, *shape) in the components: (batch, d)."""
        flat = (x.flatten(1) - self.mean.to(x.device)) / self.scale.to(x.device)
        return flat @ self.basis.to(x.device)

    def tensors(self) -> dict[str, Tensor]:
        """The map as named tensors, for a file."""
        unit = torch.tensor(self.unit, dtype=torch.float64)
        return {"mean": self.mean, "scale": self.scale, "basis": self.basis, "unit": unit}

    @classmethod
    def of_tensors(cls, tensors: dict[str, Tensor]) -> "Projection":
        """The map that `tensors` made a file of."""
        named = {name: tensors[name] for name in ("mean", "scale", "basis")}
        return cls(**named, unit=float(tensors["unit"]))


def principal_components(
    rows: Rows, count: int, *, stds: Sequence[float] = (), length: float = 1.0
) -> Projection:
    """The projection of `rows` to their leading principal components.

    Parameters
    ----------
    rows : Rows
    count : int
        How many; fewer if rows or columns are fewer.
    stds : sequence of float, default ()
        Standard deviations by which columns are divided first; () for not at all.
    length : float, default 1.0
        Root mean square length that projected rows are brought to.

    Examples
    --------
    >>> from selfview.rows.conversion import as_rows
    >>> x = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.1], [0.0, -0.1]])
    >>> principal_components(as_rows(x), 1, length=2.0)(x).abs().round(decimals=2).T.tolist()
    [[2.83, 2.83, 0.0, 0.0]]
    """
    from sklearn.decomposition import PCA  # takes a while, and not every fit needs it

    most = min(SAMPLE_ROWS, max(2 * count, SAMPLE_ENTRIES // rows.n_features))
    some = np.sort(np.random.default_rng(0).permutation(rows.n)[:most])
    scale = torch.tensor(stds or 1.0, dtype=torch.float32)
    x = rows.pick(some).flatten(1).cpu() / scale
    mean = x.mean(0)
    count = min(count, rows.n_features, len(x))
    pca = PCA(count, random_state=0).fit((x - mean).numpy())
    size = float(np.sqrt(pca.explained_variance_.sum(dtype=np.float64)))
    unit = length / size if size > 0 else 1.0
    basis = torch.from_numpy(np.ascontiguousarray(pca.components_.T, dtype=np.float32)) * unit
    return Projection(mean * scale, scale, basis, unit)


class ProjectedRows(Rows):
    """Rows in principal components; kept in memory if that takes little of it."""

    def __init__(self, rows: Rows, projection: Projection) -> None:
        self.rows, self.projection = rows, projection
        self.n, self.shape = rows.n, (projection.basis.shape[1],)
        self.stored = rows.stored
        self._kept: Tensor | None = None
        if self.n * self.shape[0] <= CACHED_ENTRIES:
            self._kept = torch.cat([projection(x.cpu()) for _, x in rows.chunks()])
            self.stored = None

    def take(self, index: Index | slice) -> Tensor:
        if self._kept is None:
            return self.projection(self.rows.take(index))
        taken = self._kept[index if isinstance(index, slice) else torch.from_numpy(index)]
        return taken.clone() if isinstance(index, slice) else taken

    def pick(self, index: Index) -> Tensor:
        return self.projection(self.rows.pick(index)) if self._kept is None else self.take(index)
