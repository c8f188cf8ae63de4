"""What the baselines that learn by gradient steps have in common: their parameters.

Constructors are made by `dataclass`: they only remember, have an explicit signature as
scikit-learn asks for, and a derived class states only what it adds.
"""

from dataclasses import dataclass, field
from typing import Any

import torch

from selfview.errors import InputError
from selfview.estimator import Embedder


@dataclass(eq=False, repr=False, kw_only=True)
class Learned(Embedder):
    """Base of the baselines that learn an encoder by gradient steps, with the paper's settings.

    Parameters
    ----------
    n_components : int
        Length of the embedding.
    batch_norm : bool
        Whether batch norm stands after every hidden layer.
    epochs, batch_size, learning_rate, precision, device, random_state, checkpoint, verbose
        As in `SelfView`.
    """

    n_components: int = field(default=10, kw_only=False)
    batch_norm: bool = True
    epochs: str | int = "auto"
    batch_size: int = 256
    learning_rate: float = 5e-4
    precision: str = "auto"
    device: str | torch.device = "auto"
    random_state: Any = None
    checkpoint: Any = None
    verbose: int = 1

    @property
    def n_parameters_(self) -> int:
        """How many numbers were learned, decoders and all."""
        return sum(p.numel() for p in self._fitted_network().parameters())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.batch_norm, bool):
            raise InputError(f"batch_norm must be True or False, got {self.batch_norm!r}")
