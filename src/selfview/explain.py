"""Which features an embedding is made of: integrated gradients from the mean row to every row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Explanation:
    """What every feature contributes to each of several targets: components, clusters or rows.

    Attributes
    ----------
    by : str
        "component", "cluster" or "row".
    targets, features : tuple of str
        Names of the rows and the columns of the arrays.
    contributions : ndarray (targets, features)
        In the unit of the embedding. See `SelfView.explain`.
    slopes : ndarray (targets, features)
        Mean gradients: the embedding's unit over the data's. A linear encoder's are its weights.
    differences : ndarray (targets, features)
        In the unit of the data. Of a cluster or a row: how far its features are from those of the
        baseline. Of a component: the root mean square of that over the rows.

    Examples
    --------
    >>> import numpy as np
    >>> found = Explanation(
    ...     "row", ("row 0",), ("age", "size"), np.array([[0.1, -2.0]]), np.ones((1, 2)),
    ...     np.array([[3.0, 4.0]]),
    ... )
    >>> found.top(1)
    [('row 0', 'size', -2.0, 4.0)]
    """

    by: str
    targets: tuple[str, ...]
    features: tuple[str, ...]
    contributions: Floats
    slopes: Floats
    differences: Floats

    def in_units(self, features: Sequence[str], units: Sequence[float] | NDArray[Any]) -> Self:
        """The same for features of these names, 1 of which is so much in the unit of the data.

        Parameters
        ----------
        features : sequence of str
        units : sequence of float
            0 of a feature that is constant, an m/z bin without a peak for example.
        """
        sizes = np.asarray(units, np.float32)
        slopes = np.divide(self.slopes, sizes, out=np.zeros_like(self.slopes), where=sizes != 0)
        return replace(
            self,
            features=tuple(features),
            slopes=slopes,
            differences=self.differences * sizes,
        )

    def top(self, count: int = 10) -> list[tuple[str, str, float, float]]:
        """(target, feature, contribution, difference) of each target's leading features.

        Parameters
        ----------
        count : int, default 10
            How many for each target, those of the largest contribution first.
        """
        order = np.argsort(-np.abs(self.contributions), axis=1, kind="stable")[:, :count]
        return [
            (target, self.features[f], float(values[f]), float(differences[f]))
            for target, chosen, values, differences in zip(
                self.targets, order, self.contributions, self.differences, strict=True
            )
            for f in chosen
        ]


def path_gradient(
    function: Callable[[Tensor], Tensor], x: Tensor, baseline: Tensor, steps: int
) -> Tensor:
    """Gradient of `function`, averaged along the straight line from `baseline` to each row.

    Times ``x - baseline`` it is the integrated gradient [1]_: the contributions of the features,
    which sum to ``function(x) - function(baseline)``. The integral is taken by the midpoint rule.

    Parameters
    ----------
    function : callable
        From rows (batch, *shape) to a number for each: (batch,).
    x : Tensor (batch, *shape)
    baseline : Tensor, of a shape that broadcasts to that of `x`
    steps : int
        Points of the line.

    References
    ----------
    .. [1] Sundararajan, Taly, Yan, "Axiomatic attribution for deep networks", ICML 2017.

    Examples
    --------
    >>> x = torch.tensor([[3.0, 1.0]])
    >>> path_gradient(lambda x: x.square().sum(1), x, torch.zeros(2), steps=4)
    tensor([[3., 1.]])
    """
    total = torch.zeros_like(x)
    for step in range(steps):
        point = baseline + (step + 0.5) / steps * (x - baseline)
        point = point.detach().requires_grad_()
        total += torch.autograd.grad(function(point).sum(), point)[0]
    return total / steps


def feature_names(given: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """The names given, or "feature 1" and so on."""
    return (
        tuple(map(str, given))
        if given is not None
        else tuple(f"feature {i}" for i in range(1, count + 1))
    )
