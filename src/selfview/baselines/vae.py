"""The variational autoencoder."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from selfview.baselines.autoencoders import AutoEncoder, EncoderDecoder
from selfview.baselines.learned import Centring
from selfview.distributed import WHOLE, Share
from selfview.estimator import parameters
from selfview.estimator.base import Run
from selfview.training.loop import Step

LOG_VARIANCE_RANGE = (-12.0, 12.0)  # so that exp of it stays a sensible float32


def kl_from_standard_normal(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(N(mean, exp(log_variance)) || N(0, I)) of every row, in nats: (batch, dim) to (batch,).

    The closed form of Kingma and Welling, Appendix B.

    Examples
    --------
    >>> kl_from_standard_normal(torch.zeros(1, 3), torch.zeros(1, 3)).tolist()
    [0.0]
    """
    return 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(dim=1)


def reparametrise(
    mean: Tensor, log_variance: Tensor, generator: torch.Generator, share: Share = WHOLE
) -> Tensor:
    """A draw from N(mean, exp(log_variance)) through which gradients pass."""
    noise = share.draw(
        torch.randn, mean.shape, generator=generator, device=mean.device, dtype=mean.dtype
    )
    return mean + (0.5 * log_variance).exp() * noise


def gaussian_nll(x: Tensor, mean: Tensor, variance: float | None, share: Share = WHOLE) -> Tensor:
    """Mean over rows of -log N(x; mean, variance I), without the constant; nats.

    With variance None it is the one that makes the rows likeliest: the mean squared error, so
    that the value is (n_features / 2) log(error) (Rybkin, Daniilidis, Levine, "Simple and
    effective VAE training with calibrated decoders", ICML 2021).
    """
    n_features = x[0].numel()
    error = share.mean((x - mean).square())
    if variance is None:
        return 0.5 * n_features * error.clamp_min(torch.finfo(error.dtype).tiny).log()
    return 0.5 * n_features * (error / variance + math.log(variance))


class VariationalNetwork(EncoderDecoder):
    """`encoder` gives the mean of the posterior, and `log_variance` its width from the same body.

    The body is all of the encoder but its last layer; an own encoder is the body itself, and its
    output the mean.
    """

    def __init__(
        self, centring: Centring, encoder: nn.Module, decoder: nn.Module, dim: int, *, whole: bool
    ) -> None:
        super().__init__(centring, encoder, decoder)
        layers = [encoder, nn.Identity()] if whole else [encoder[:-1], encoder[-1]]  # type: ignore[index]
        self.encoder = nn.Sequential(self.centring, *layers)
        self.log_variance = nn.Linear(getattr(layers[1], "in_features", dim), dim)

    def posterior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and logarithm of the variance of every row's posterior: (batch, dim) each."""
        features = self.encoder[:2](x)
        log_variance = self.log_variance(features).float().clamp(*LOG_VARIANCE_RANGE)
        return self.encoder[2](features).float(), log_variance


@dataclass(eq=False, repr=False, kw_only=True)
class VariationalAutoEncoder(AutoEncoder):
    """An autoencoder whose embedding is a distribution, kept near a standard normal one [1]_.

    The loss is the negative evidence lower bound, with a Gaussian decoder; a row's embedding is
    the mean of its posterior.

    Parameters
    ----------
    variance : "auto" or float
        Of the decoder's Gaussian, in units of the data's variance. "auto" is the one that
        makes the data likeliest at every step [2]_; a fixed one that is too large for the data
        ends in a posterior that ignores it.
    beta : float
        Weight of the divergence from the prior; 1 is the bound itself.
    n_components, encoder, batch_norm, recipe, epochs, batch_size, learning_rate, schedule,
    precision, device, random_state, checkpoint, verbose
        As in `AutoEncoder`.

    References
    ----------
    .. [1] Kingma, Welling, "Auto-encoding variational Bayes", ICLR 2014.
    .. [2] Rybkin, Daniilidis, Levine, "Simple and effective VAE training with calibrated
       decoders", ICML 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = VariationalAutoEncoder(n_components=10, epochs=2, random_state=0, verbose=0)
    >>> model.fit_transform(X).shape
    (1797, 10)
    """

    variance: str | float = "auto"
    beta: float = 1.0

    def check_parameters(self) -> None:
        super().check_parameters()
        parameters.positive("beta", self.beta)
        if self.variance != "auto":
            parameters.positive("variance", self.variance)

    def _encoder(self, run: Run) -> nn.Module:
        return nn.Sequential(*self._layers(run))  # the prior keeps the embedding in bounds

    def _network(self, run: Run) -> VariationalNetwork:
        encoder = self._encoder(run)
        dim = self._embedding_dim(encoder, run)
        decoder = self._decoder(dim, run)
        own = isinstance(self.encoder, nn.Module)
        return VariationalNetwork(Centring(run), encoder, decoder, dim, whole=own)

    def _loss(self, network: Any, step: Step) -> tuple[Tensor, Mapping[str, float]]:
        mean, log_variance = network.posterior(step.batch)
        z = reparametrise(mean, log_variance, step.generator, step.share)
        variance = None if self.variance == "auto" else float(self.variance)
        x, rebuilt = network.centring(step.batch), network.decoder(z).float()
        divergence = kl_from_standard_normal(mean, log_variance).mean()
        error = (x - rebuilt.detach()).square().mean()
        figures = {"kl": divergence.item(), "error": error.item()}
        return gaussian_nll(x, rebuilt, variance, step.share) + self.beta * divergence, figures
