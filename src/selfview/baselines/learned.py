"""What the baselines trained by gradient descent share: parameters, centring and scaling.

Their networks get centred rows, divided by the root mean square of the centred entries, so that
the scale of the data doesn't matter and no capacity is spent on the mean. Without centring, a few
directions of the embedding hold nearly everything on FSDD.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from selfview.estimator import parameters
from selfview.estimator.embedder import Embedder
from selfview.estimator.plan import FitPlan
from selfview.networks.start import START_ROWS
from selfview.rows.base import Rows
from selfview.rows.stream import Stream


@dataclass(frozen=True, kw_only=True)
class CentredPlan(FitPlan):
    """A plan with the mean and the scale of the rows."""

    mean: Tensor  # a row's shape
    scale: float  # root mean square of the centred entries; 1 if all rows are equal
    sample: Tensor  # some of the rows: (sample, *shape)


class Centring(nn.Module):
    """Centred and scaled rows; the mean and the scale are buffers, saved with the weights."""

    mean: Tensor  # divided by the scale
    scale: Tensor

    def __init__(self, plan: FitPlan) -> None:
        super().__init__()
        # A model that is read from a file brings its own.
        mean = plan.mean / plan.scale if isinstance(plan, CentredPlan) else torch.zeros(plan.shape)
        scale = plan.scale if isinstance(plan, CentredPlan) else 1.0
        self.register_buffer("mean", mean.float())
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        # Divided first: a difference of the largest floats would not be one.
        return x / self.scale - self.mean

    def undo(self, x: Tensor) -> Tensor:
        """The rows of centred and scaled ones."""
        return (x + self.mean) * self.scale


def mean_and_scale(rows: Rows) -> tuple[Tensor, float]:
    """The mean row, and the root mean square of the entries around it, in one pass.

    Examples
    --------
    >>> import numpy as np
    >>> from selfview.rows.conversion import as_rows
    >>> mean, scale = mean_and_scale(as_rows(np.array([[1.0, 5.0], [3.0, 5.0]])))
    >>> mean.tolist(), round(scale, 4)
    ([2.0, 5.0], 0.7071)
    """
    origin = rows.take(slice(0, 1))[0].double()  # near the rows, so that squares don't cancel
    sums, squares = torch.zeros_like(origin), torch.zeros_like(origin)
    for _, chunk in rows.chunks():
        x = chunk.double() - origin
        sums += x.sum(0)
        squares += x.square().sum(0)
    variance = squares / rows.n - (sums / rows.n).square()
    return origin + sums / rows.n, math.sqrt(max(float(variance.mean()), 0.0)) or 1.0


@dataclass(eq=False, repr=False, kw_only=True)
class Learned(Embedder):
    """Base of the baselines that train an encoder; parameters as in `SelfView`."""

    batch_norm: bool = True

    _checks: ClassVar[parameters.Checks] = {
        **Embedder._checks,
        "batch_norm": parameters.boolean,
    }

    @property
    def n_parameters_(self) -> int:
        """The number of parameters, those of the decoder included."""
        return sum(p.numel() for p in self._fitted_network().parameters())

    def _plan(self, rows: Rows, stream: Stream | None = None) -> CentredPlan:
        plan = super()._plan(rows, stream)
        mean, scale = mean_and_scale(rows)
        some = np.unique(np.linspace(0, rows.n - 1, START_ROWS).astype(np.intp))
        sample = rows.pick(some).cpu().reshape(-1, *plan.shape)
        mean = mean.reshape(plan.shape)
        return CentredPlan(**vars(plan), mean=mean, scale=scale, sample=sample)
