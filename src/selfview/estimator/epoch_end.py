"""What `on_epoch` is called with, and how its answer is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.rows.base import Rows


@dataclass(frozen=True)
class EpochEnd:
    """The end of an epoch of a fit: what `on_epoch` is called with.

    Attributes
    ----------
    epoch : int
        Epochs done.
    epochs : int
        Epochs planned.
    metrics : mapping of str to float
        The epoch's row of `history_`: the loss, `seconds` since the fit began, and the others.
    """

    epoch: int
    epochs: int
    metrics: Mapping[str, float]
    _transform: Callable[[Any], NDArray[np.float32]] = field(repr=False)
    _rows: Rows = field(repr=False)

    def embedding(self) -> NDArray[np.float32]:
        """Embedding of the fit's rows, as `fit_transform` would return it if the fit ended here."""
        return self._transform(self._rows)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embedding of `X`, as `transform` would return it if the fit ended here.

        Parameters
        ----------
        X : rows as in `fit`
        """
        return self._transform(X)


def asks_to_stop(answer: object) -> bool:
    """True for True, of Python or NumPy; a callback that returns anything else goes on."""
    return isinstance(answer, bool | np.bool_) and bool(answer)
