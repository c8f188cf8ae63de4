"""Rows in their leading principal components: fewer columns for a network, the same distances."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from selfview.rows.base import Index, Rows

SAMPLE_ROWS = 20_000  # whose principal components are taken
SAMPLE_ENTRIES = 1 << 25  # of them, at most: 128 MiB of float32
SMALL_SIDE = 1100  # of a Gram matrix whose eigenvectors are computed whole
OVERSAMPLING, POWER_ITERATIONS = 10, 2  # of the random subspace
LEAST_VARIANCE = 1e-9  # of the largest: components of less are rounding
LEAST_NOISE = 5  # components: variances of fewer are equal by chance
NOISE_MARGIN = 1.05  # on the bounds of noise's variances, which hold for endlessly many rows
KURTOSIS_ERRORS = 5.0  # standard errors by which the kurtosis of normal noise may be off
CACHED_ENTRIES = 1 << 26  # of projected rows that are kept in memory: 256 MiB


@dataclass(frozen=True)
class Projection:
    """The affine map ``((x - mean) / scale) @ basis`` from flat rows to principal components."""

    mean: Tensor  # (n_features,)
    scale: Tensor  # a number, or (n_features,): the columns' standard deviations
    basis: Tensor  # (n_features, d), orthogonal columns
    weights: Tensor  # (d,): their lengths
    unit: float  # what a distance of 1 between rows becomes (1 standard deviation, if divided so)
    signal: int  # how many leading components are more than noise

    def __call__(self, x: Tensor) -> Tensor:
        """Rows (batch, *shape) in the components: (batch, d)."""
        flat = (x.flatten(1) - self.mean.to(x.device)) / self.scale.to(x.device)
        return flat @ self.basis.to(x.device)

    def followed_by(
        self, change: Tensor, points: Tensor, *, whitening: float, length: float
    ) -> "Projection":
        """The principal components of rows after a linear change of their components.

        Parameters
        ----------
        change : Tensor (d, d)
            Of the components as they are without weights.
        points : Tensor (n, d)
            The rows in those.
        whitening, length : float
            As in `principal_components`.
        """
        after = points @ change
        axes, variances = _leading(after, after.shape[1])
        basis = self.basis / self.weights @ change
        weights, size = _weights(variances, whitening, length)
        before = math.sqrt(float(points.square().sum(1).mean()))
        scale = 1.0 if self.scale.ndim else float(self.scale)
        unit = size / before / scale if before > 0 else 1.0
        d = len(weights)
        return Projection(self.mean, self.scale, basis @ (axes * weights), weights, unit, d)

    def tensors(self) -> dict[str, Tensor]:
        """The map as named tensors, for a file."""
        unit, signal = torch.tensor(self.unit, dtype=torch.float64), torch.tensor(self.signal)
        named = {name: getattr(self, name) for name in ("mean", "scale", "basis", "weights")}
        return named | {"unit": unit, "signal": signal}

    @classmethod
    def of_tensors(cls, tensors: dict[str, Tensor]) -> "Projection":
        """The map that `tensors` made a file of."""
        named = {name: tensors[name] for name in ("mean", "scale", "basis", "weights")}
        return cls(**named, unit=float(tensors["unit"]), signal=int(tensors["signal"]))


def principal_components(
    rows: Rows,
    count: int,
    *,
    scale: float | Sequence[float] = 1.0,
    whitening: float = 0.0,
    length: float | None = None,
) -> Projection:
    """The projection of `rows` to their leading principal components.

    Parameters
    ----------
    rows : Rows
    count : int
        How many; fewer if rows or columns are fewer.
    scale : float or sequence of float, default 1.0
        What rows, or their columns, are divided by first.
    whitening : float, default 0.0
        Components are divided by their standard deviations to this power; 0 keeps the distances
        between rows.
    length : float or None, default None
        Root mean square length that projected rows are brought to; None keeps their own.

    Examples
    --------
    >>> from selfview.rows.conversion import as_rows
    >>> x = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.1], [0.0, -0.1]])
    >>> z = principal_components(as_rows(x), 1, length=2.0)(x)
    >>> round(z.square().mean().item(), 4)
    4.0
    """
    most = min(SAMPLE_ROWS, max(2 * count, SAMPLE_ENTRIES // rows.n_features))
    some = np.sort(np.random.default_rng(0).permutation(rows.n)[:most])
    divisor = torch.tensor(scale, dtype=torch.float32)
    x = rows.pick(some).flatten(1).cpu() / divisor
    mean = x.mean(0)
    x -= mean
    basis, variances = _leading(x, min(count, rows.n_features, len(x)))
    signal = _above_noise(x, basis, variances)
    variances = variances[: basis.shape[1]]
    weights, size = _weights(variances, whitening, length)
    before = math.sqrt(float(variances.sum()))
    unit = size / before if before > 0 else 1.0
    unit = unit if divisor.ndim else unit / float(divisor)
    return Projection(
        mean * divisor, divisor, (basis * weights).contiguous(), weights, unit, signal
    )


def _above_noise(x: Tensor, axes: Tensor, variances: Tensor) -> int:
    """How many leading components are more than noise; all, if the others are not plainly noise.

    Plain noise is five components, and half of all, or more. Its variances are as equal as those of
    as many independent columns (Marchenko and Pastur, 1967), and it is normally distributed.
    """
    n, (n_features, count) = len(x), axes.shape
    if len(variances) < n_features:
        return count
    for signal in range(min(count, n_features // 2 + 1, n_features - LEAST_NOISE + 1)):
        noise = variances[signal:] / variances[signal:].mean()
        spread = math.sqrt(len(noise) / n)
        above, below = NOISE_MARGIN * (1 + spread) ** 2, (1 - spread) ** 2 / NOISE_MARGIN
        if spread < 1 and noise[0] < above and noise[-1] > below:
            points = x @ axes[:, signal:] / variances[signal:count].sqrt()
            kurtosis = points.pow(4).mean(0) - 3
            normal = kurtosis.mean().abs() < KURTOSIS_ERRORS * math.sqrt(24 / n)
            return signal if signal and normal else count
    return count


def _weights(variances: Tensor, whitening: float, length: float | None) -> tuple[Tensor, float]:
    """What components of these variances are multiplied by, and the length of rows after it."""
    stds = variances.clamp_min(LEAST_VARIANCE * float(variances[0])).sqrt()
    weights = torch.ones_like(stds) if stds[0] == 0 else (stds / stds[0]) ** -whitening
    size = math.sqrt(float((variances * weights * weights).sum()))
    if length is not None and size > 0:
        return weights * (length / size), length
    return weights, size


def _leading(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Leading principal axes (n_features, count) of centred rows, and the variances along them.

    Where the variances along further axes are known, they follow.
    """
    n, n_features = x.shape
    if n_features <= max(SMALL_SIDE, 2 * count):
        values, axes = _eigen(x.T @ x, count)
    elif n <= SMALL_SIDE:
        values, sides = _eigen(x @ x.T, count)
        axes = F.normalize(x.T @ sides, dim=0)
    else:  # a random subspace near the leading one (Halko, Martinsson, Tropp, 2011)
        generator = torch.Generator().manual_seed(0)
        spanned = x @ torch.randn(n_features, count + OVERSAMPLING, generator=generator)
        for _ in range(POWER_ITERATIONS):
            spanned = torch.linalg.qr(x @ (x.T @ spanned)).Q
        within = spanned.T @ x
        values, sides = _eigen(within @ within.T, count)
        values = values[:count]
        axes = F.normalize(within.T @ sides, dim=0)
    signs = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()  # so that they are unique
    return axes * torch.where(signs == 0, 1.0, signs), values / n


def _eigen(gram: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """All eigenvalues, largest first, and the eigenvectors of the first `count` as columns."""
    values, vectors = torch.linalg.eigh(gram.double())
    return values.flip(0).clamp_min(0).float(), vectors.flip(1)[:, :count].float()


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

    def chunks(self) -> Iterator[tuple[int, Tensor]]:
        if self._kept is not None:
            yield from super().chunks()
        else:  # as many as fit into memory before they are projected
            for start, x in self.rows.chunks():
                yield start, self.projection(x)

    def component_chunks(self, count: int) -> Iterator[Tensor]:
        """All rows in the leading components, as they are without weights: (chunk, count)."""
        weights = self.projection.weights[:count]
        for _, x in self.chunks():
            yield x[:, :count].cpu() / weights

    def components(self, count: int) -> Tensor:
        """The same at once: (n, count)."""
        return torch.cat(list(self.component_chunks(count)))
