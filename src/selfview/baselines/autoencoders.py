"""The autoencoder, and its sparse and denoising variants.

All minimise the mean squared error of centred and scaled rows. It is relative to the data's
variance: 1 for a network whose output is always the mean row.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from selfview.baselines.learned import CentredPlan, Centring, Learned
from selfview.distributed import WHOLE_BATCH, BatchShard
from selfview.estimator import parameters
from selfview.estimator.plan import FitPlan
from selfview.estimator.recipes import RECIPES
from selfview.networks import encoders
from selfview.networks.decoders import make_decoder
from selfview.networks.encoders import EncodingNetwork
from selfview.networks.start import principal_start
from selfview.training.loop import Phase, Step

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
    shard : BatchShard, default all rows
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
    shard : BatchShard, default all rows
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


class EncoderDecoder(EncodingNetwork):
    """`encoder`: rows to embedding. `decoder`: embedding to rows, centred."""

    encoder: nn.Sequential

    def __init__(
        self, centring: Centring, encoder: nn.Sequential, decoder: nn.Module, _dim: int
    ) -> None:
        super().__init__()
        self.encoder = nn.Sequential(centring, encoder)
        self.decoder = decoder

    @property
    def centring(self) -> Centring:
        centring = self.encoder[0]
        assert isinstance(centring, Centring)
        return centring


@dataclass(eq=False, repr=False, kw_only=True)
class AutoEncoder(Learned):
    """Autoencoder: an embedding from which a decoder, the encoder's mirror, rebuilds rows [1]_.

    Parameters
    ----------
    n_components : int, default 10
        Length of the embedding. With a user's `encoder`, its output decides.
    encoder : {"auto", "mlp", "cnn", "small-cnn", "dense-cnn"} or nn.Module, default "auto"
        As in `SelfView`. The decoder of a user's encoder is the perceptron's mirror.
    batch_norm : bool, default True
        Batch norm after every hidden layer of encoder and decoder, and after the embedding.
        Without the latter a step of Adam, which moves all weights of an output at once, shifts
        embeddings by several times their standard deviation. A user's `encoder` gets none.
    recipe, epochs, batch_size, learning_rate, schedule, precision, device, random_state, \
    checkpoint, on_epoch, max_seconds, verbose
        As in `SelfView`, with the same defaults.

    Attributes
    ----------
    embedding_dim_, n_features_in_, epochs_, history_, health_
        As in `SelfView`.

    References
    ----------
    .. [1] Hinton, Salakhutdinov, "Reducing the dimensionality of data with neural networks",
       Science 313, 2006. Trained here from random weights, without layer-wise pretraining.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = AutoEncoder(n_components=10, epochs=1, random_state=0, verbose=0)
    >>> model.fit_transform(X[:256]).shape
    (256, 10)
    """

    network_class: ClassVar[type[EncoderDecoder]] = EncoderDecoder

    encoder: str | nn.Module = "auto"

    def reconstruct(self, X: Any) -> NDArray[np.float32]:
        """Rows as the decoder rebuilds them from their embeddings.

        Parameters
        ----------
        X : rows as in `fit`

        Returns
        -------
        ndarray of the shape of `X`, or of the rows that a data frame of mixed columns becomes
        """
        network = self._fitted_network()

        def rebuild(x: Tensor) -> Tensor:
            rebuilt: Tensor = network.centring.undo(network.decoder(network.encoder(x)))
            return rebuilt.flatten(1)

        width = math.prod(self.shape_in_)
        return self._apply(rebuild, X, width).reshape(-1, *self.shape_in_)

    def _network(self, plan: FitPlan) -> EncoderDecoder:
        encoder = self._encoder(plan)
        dim = self._embedding_dim(encoder, plan)
        return self.network_class(Centring(plan), encoder, self._decoder(dim, plan), dim)

    def _encoder(self, plan: FitPlan) -> nn.Sequential:
        return nn.Sequential(*self._layers(plan), *self._norm(affine=False))

    def _layers(self, plan: FitPlan) -> list[nn.Module]:
        """The layers of the encoder; a user's encoder is a single one."""
        made = encoders.make_encoder(
            self._encoder_for(plan.shape), plan.shape, self.n_components, self.batch_norm
        )
        if isinstance(self.encoder, nn.Module):
            return [made]
        assert isinstance(made, nn.Sequential)
        # Not of a model that is read from a file; the paper has no such start.
        if isinstance(plan, CentredPlan) and RECIPES[self.recipe].start != "random":
            principal_start(made, Centring(plan)(plan.sample))
        return list(made)

    def _norm(self, affine: bool) -> list[nn.BatchNorm1d]:
        own = isinstance(self.encoder, nn.Module)
        normed = self.batch_norm and not own
        return [nn.BatchNorm1d(self.n_components, affine=affine)] if normed else []

    def _decoder(self, dim: int, plan: FitPlan) -> nn.Module:
        name = self._encoder_for(plan.shape)
        made = make_decoder(
            name if isinstance(name, str) else "mlp", dim, plan.shape, self.batch_norm
        )
        # Its first output is the mean row: random outputs would mislead the encoder.
        *_, last = (layer for layer in made if hasattr(layer, "weight"))
        for parameter in last.parameters():
            nn.init.zeros_(parameter)
        return made

    def _phases(self, network: nn.Module, plan: FitPlan) -> list[Phase]:
        def loss(step: Step) -> tuple[Tensor, Mapping[str, float]]:
            return self._loss(network, step)

        rate = self._rate(plan)
        learned = [p for p in network.parameters() if p.requires_grad]  # an encoder may be frozen
        return [Phase("loss", learned, loss, rate)]

    def _loss(self, network: Any, step: Step) -> tuple[Tensor, Mapping[str, float]]:
        rebuilt = network.decoder(network.encoder(step.batch))
        return functional.mse_loss(rebuilt.float(), network.centring(step.batch)), {}


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
