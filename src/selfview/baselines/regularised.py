"""Sparse and denoising autoencoders: a penalty or noise keeps them from copying their rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from selfview.baselines.autoencoders import AutoEncoder
from selfview.distributed import WHOLE_BATCH, BatchShard
from selfview.estimator import parameters
from selfview.estimator.plan import FitPlan
from selfview.training.loop import Step

CORRUPTIONS = ("masking", "gaussian")


def kl_sparsity(activation: Tensor, target: float, shard: BatchShard = WHOLE_BATCH) -> Tensor:
    """KL divergence of the units' mean activations from `target`, summed over the units.

    Every unit is taken as a Bernoulli variable whose mean is that of its activation over the
    batch: KL(target || mean) (Ng, "Sparse autoencoder", CS294A lecture notes, 2011).

    Parameters
    ----------
    activation : Tensor (batch, dim)
        Between 0 and 1.
    target : float
    shard : BatchShard, default the whole batch
        Which rows of the batch these are, if several processes hold it.

    Examples
    --------
    >>> kl_sparsity(torch.full((8, 3), 0.2), target=0.2).item()
    0.0
    """
    mean = shard.mean(activation, 0).clamp(1e-6, 1 - 1e-6)  # (dim,)
    p, off = torch.tensor(target).to(mean), torch.tensor(1 - target).to(mean)
    return (p * (p / mean).log() + off * (off / (1 - mean)).log()).sum()


def corrupt(
    x: Tensor, kind: str, level: float, generator: torch.Generator, shard: BatchShard = WHOLE_BATCH
) -> Tensor:
    """`x` with a share of its entries set to zero ("masking"), or with noise added ("gaussian").

    Parameters
    ----------
    x : Tensor (batch, *shape)
    kind : {"masking", "gaussian"}
    level : float
        Probability that an entry is zeroed, or the noise's standard deviation.
    generator : torch.Generator
    shard : BatchShard, default the whole batch
        Which rows of the batch these are, if several processes hold it.

    Examples
    --------
    >>> x = torch.ones(1, 1000)
    >>> bool(corrupt(x, "masking", 0.25, torch.Generator().manual_seed(0)).mean() < 0.8)
    True
    """
    sample = torch.rand if kind == "masking" else torch.randn
    draw = shard.draw(sample, x.shape, generator=generator, device=x.device, dtype=x.dtype)
    return x * (draw >= level) if kind == "masking" else x + level * draw


@dataclass(eq=False, repr=False, kw_only=True)
class SparseAutoEncoder(AutoEncoder):
    """Sparse autoencoder: each unit of the embedding is active for few rows [1]_.

    The embedding passes a sigmoid. The loss of a row is half its squared error, summed over the
    features, plus `penalty` times the sum over units of KL(target_activation || mean activation).

    Parameters
    ----------
    target_activation : float, default 0.2
        Between 0 and 1. Ng takes 0.05 for a code that is longer than the row; ten units that are
        each silent for 19 rows of 20 would hold next to nothing.
    penalty : float, default 3.0
        Weight of the divergence; 3 is Ng's.
    n_components, encoder, batch_norm, recipe, epochs, batch_size, learning_rate, schedule, \
    precision, device, random_state, checkpoint, on_epoch, max_seconds, verbose
        As in `AutoEncoder`, with the same defaults.

    References
    ----------
    .. [1] Ng, "Sparse autoencoder", CS294A lecture notes, Stanford, 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = SparseAutoEncoder(n_components=10, epochs=1, random_state=0, verbose=0)
    >>> bool((model.fit_transform(X[:256]) >= 0).all())
    True
    """

    target_activation: float = 0.2
    penalty: float = 3.0

    _checks: ClassVar[parameters.Checks] = {
        **AutoEncoder._checks,
        "target_activation": parameters.share,
        "penalty": parameters.positive,
    }

    def _encoder(self, plan: FitPlan) -> nn.Sequential:
        norm = self._norm(affine=True)
        for layer in norm:
            # Around zero the sigmoid's mean is a half, and to learn another takes long.
            rho = self.target_activation
            nn.init.constant_(layer.bias, math.log(rho / (1 - rho)))
        return nn.Sequential(*self._layers(plan), *norm, nn.Sigmoid())

    def _loss(self, network: Any, step: Step) -> tuple[Tensor, Mapping[str, float]]:
        z = network.encoder(step.batch)
        error = functional.mse_loss(network.decoder(z).float(), network.centring(step.batch))
        divergence = kl_sparsity(z.float(), self.target_activation, step.shard)
        metrics = {"error": error.item(), "activation": z.mean().item()}
        return 0.5 * step.batch[0].numel() * error + self.penalty * divergence, metrics


@dataclass(eq=False, repr=False, kw_only=True)
class DenoisingAutoEncoder(AutoEncoder):
    """Denoising autoencoder: rebuilds the clean row from a corrupted one [1]_ [2]_.

    Parameters
    ----------
    corruption : {"masking", "gaussian"}, default "masking"
        Entries set to their feature's mean at random [1]_, or Gaussian noise added [2]_.
    level : float, default 0.25
        Fraction of the entries that are masked, or the noise's standard deviation relative to that
        of the data's entries around their mean.
    n_components, encoder, batch_norm, recipe, epochs, batch_size, learning_rate, schedule, \
    precision, device, random_state, checkpoint, on_epoch, max_seconds, verbose
        As in `AutoEncoder`, with the same defaults.

    References
    ----------
    .. [1] Vincent, Larochelle, Bengio, Manzagol, "Extracting and composing robust features with
       denoising autoencoders", ICML 2008.
    .. [2] Vincent, Larochelle, Lajoie, Bengio, Manzagol, "Stacked denoising autoencoders", JMLR 11,
       2010.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = DenoisingAutoEncoder(n_components=10, epochs=1, random_state=0, verbose=0)
    >>> model.fit_transform(X[:256]).shape
    (256, 10)
    """

    corruption: str = "masking"
    level: float = 0.25

    _checks: ClassVar[parameters.Checks] = {
        **AutoEncoder._checks,
        "corruption": partial(parameters.one_of, options=CORRUPTIONS),
    }

    def check_parameters(self) -> None:
        super().check_parameters()
        check = parameters.share if self.corruption == "masking" else parameters.positive
        check("level", self.level)

    def _loss(self, network: Any, step: Step) -> tuple[Tensor, Mapping[str, float]]:
        clean = network.centring(step.batch)
        noisy = corrupt(clean, self.corruption, self.level, step.generator, step.shard)
        rebuilt = network.decoder(network.encoder[1:](noisy))
        return functional.mse_loss(rebuilt.float(), clean), {}
