"""Autoencoders with a prior on the embedding: variational and adversarial."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from selfview.baselines.autoencoders import AutoEncoder, EncoderDecoder
from selfview.baselines.learned import Centring
from selfview.distributed import WHOLE_BATCH, BatchShard
from selfview.estimator import parameters
from selfview.estimator.plan import FitPlan
from selfview.networks import encoders
from selfview.training.loop import Phase, Step

WIDTH = 1024  # of the discriminator's two hidden layers
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
    mean: Tensor, log_variance: Tensor, generator: torch.Generator, shard: BatchShard = WHOLE_BATCH
) -> Tensor:
    """A draw from N(mean, exp(log_variance)) through which gradients pass."""
    noise = shard.draw(
        torch.randn, mean.shape, generator=generator, device=mean.device, dtype=mean.dtype
    )
    return mean + (0.5 * log_variance).exp() * noise


def gaussian_nll(
    x: Tensor, mean: Tensor, variance: float | None, shard: BatchShard = WHOLE_BATCH
) -> Tensor:
    """Mean over rows of -log N(x; mean, variance I), without the constant; nats.

    With variance None it is the maximum-likelihood one, the mean squared error, so that the value
    is (n_features / 2) log(error) (Rybkin, Daniilidis, Levine, "Simple and
    effective VAE training with calibrated decoders", ICML 2021).
    """
    n_features = x[0].numel()
    error = shard.mean((x - mean).square())
    if variance is None:
        return 0.5 * n_features * error.clamp_min(torch.finfo(error.dtype).tiny).log()
    return 0.5 * n_features * (error / variance + math.log(variance))


class VariationalNetwork(EncoderDecoder):
    """`encoder` gives the mean of the posterior, `log_variance` the logarithm of its variance.

    Both start from the input of the encoder's last layer, or from the output of a user's encoder,
    which is then the mean.
    """

    def __init__(
        self, centring: Centring, encoder: nn.Sequential, decoder: nn.Module, dim: int
    ) -> None:
        super().__init__(centring, encoder, decoder, dim)
        own = len(encoder) == 1  # a user's encoder is a single layer
        layers = [encoder, nn.Identity()] if own else [encoder[:-1], encoder[-1]]
        self.encoder = nn.Sequential(self.centring, *layers)
        self.log_variance = nn.Linear(getattr(layers[1], "in_features", dim), dim)

    def posterior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and logarithm of the variance of every row's posterior: (batch, dim) each."""
        features = self.encoder[:2](x)
        log_variance = self.log_variance(features).float().clamp(*LOG_VARIANCE_RANGE)
        return self.encoder[2](features).float(), log_variance


@dataclass(eq=False, repr=False, kw_only=True)
class VariationalAutoEncoder(AutoEncoder):
    """Variational autoencoder: the embedding is the mean of a row's Gaussian posterior [1]_.

    The loss is the negative evidence lower bound with a Gaussian decoder:
    -log N(x; decoder(z), variance I) + beta KL(q(z | x) || N(0, I)).

    Parameters
    ----------
    variance : "auto" or float, default "auto"
        Of the decoder's Gaussian, in units of the data's variance. "auto" is its maximum-likelihood
        value at every step [2]_; one that is too large ends in a posterior that ignores the data.
    beta : float, default 1.0
        Weight of the KL divergence; 1 is the evidence lower bound.
    n_components, encoder, batch_norm, recipe, epochs, batch_size, learning_rate, schedule, \
    precision, device, random_state, checkpoint, on_epoch, max_seconds, verbose
        As in `AutoEncoder`, with the same defaults.

    References
    ----------
    .. [1] Kingma, Welling, "Auto-encoding variational Bayes", ICLR 2014.
    .. [2] Rybkin, Daniilidis, Levine, "Simple and effective VAE training with calibrated
       decoders", ICML 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = VariationalAutoEncoder(n_components=10, epochs=1, random_state=0, verbose=0)
    >>> model.fit_transform(X[:256]).shape
    (256, 10)
    """

    network_class = VariationalNetwork

    variance: str | float = "auto"
    beta: float = 1.0

    _checks: ClassVar[parameters.Checks] = {
        **AutoEncoder._checks,
        "beta": parameters.positive,
        "variance": partial(parameters.positive_or, word="auto"),
    }

    def _encoder(self, plan: FitPlan) -> nn.Sequential:
        return nn.Sequential(*self._layers(plan))  # the prior keeps the embedding in bounds

    def _loss(self, network: Any, step: Step) -> tuple[Tensor, Mapping[str, float]]:
        mean, log_variance = network.posterior(step.batch)
        z = reparametrise(mean, log_variance, step.generator, step.shard)
        variance = None if self.variance == "auto" else float(self.variance)
        x, rebuilt = network.centring(step.batch), network.decoder(z).float()
        divergence = kl_from_standard_normal(mean, log_variance).mean()
        error = (x - rebuilt.detach()).square().mean()
        metrics = {"kl": divergence.item(), "error": error.item()}
        return gaussian_nll(x, rebuilt, variance, step.shard) + self.beta * divergence, metrics


def discriminator_loss(on_prior: Tensor, on_posterior: Tensor) -> Tensor:
    """Cross-entropy of classifying draws of the prior (1) and embeddings (0), given the logits.

    Examples
    --------
    >>> round(discriminator_loss(torch.zeros(4), torch.zeros(4)).item(), 4)  # 2 log 2
    1.3863
    """
    return softplus(-on_prior).mean() + softplus(on_posterior).mean()


def generator_loss(on_posterior: Tensor) -> Tensor:
    """Cross-entropy of passing embeddings off as draws of the prior, given the logits.

    Examples
    --------
    >>> round(generator_loss(torch.zeros(4)).item(), 4)  # log 2
    0.6931
    """
    return softplus(-on_posterior).mean()


class AdversarialNetwork(EncoderDecoder):
    """An autoencoder, and a discriminator of embeddings from draws of the prior."""

    def __init__(
        self, centring: Centring, encoder: nn.Sequential, decoder: nn.Module, dim: int
    ) -> None:
        super().__init__(centring, encoder, decoder, dim)
        self.discriminator = encoders.perceptron([dim, WIDTH, WIDTH, 1], batch_norm=False)


@dataclass(eq=False, repr=False, kw_only=True)
class AdversarialAutoEncoder(AutoEncoder):
    """Adversarial autoencoder: the distribution of all embeddings is a standard normal [1]_.

    Every step has three phases: reconstruction updates encoder and decoder; the discriminator
    learns to distinguish embeddings from draws of N(0, I); the encoder learns to deceive it.

    Parameters
    ----------
    adversarial_rate : float, default 0.1
        Learning rate of the last two phases over that of the first. Adam's steps are as long as
        their rate however weak the gradient, so at equal rates the adversarial phases move the
        encoder as far as reconstruction does, and it does neither well.
    n_components, encoder, batch_norm, recipe, epochs, batch_size, learning_rate, schedule, \
    precision, device, random_state, checkpoint, on_epoch, max_seconds, verbose
        As in `AutoEncoder`, with the same defaults. The discriminator has no batch norm, which
        would reveal whether a batch is of one kind.

    References
    ----------
    .. [1] Makhzani, Shlens, Jaitly, Goodfellow, Frey, "Adversarial autoencoders", ICLR workshop,
       2016 (arXiv 1511.05644). Here with the deterministic posterior.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = AdversarialAutoEncoder(n_components=10, epochs=1, random_state=0, verbose=0)
    >>> sorted(model.fit(X[:256]).history_[-1])
    ['discriminator', 'epoch', 'generator', 'reconstruction', 'seconds', 'steps']
    """

    network_class = AdversarialNetwork

    adversarial_rate: float = 0.1

    _checks: ClassVar[parameters.Checks] = {
        **AutoEncoder._checks,
        "adversarial_rate": parameters.positive,
    }

    def _phases(self, network: nn.Module, plan: FitPlan) -> list[Phase]:
        assert isinstance(network, AdversarialNetwork)
        encoder, judge = network.encoder, network.discriminator

        def reconstruction(step: Step) -> tuple[Tensor, Mapping[str, float]]:
            return self._loss(network, step)

        def discriminator(step: Step) -> tuple[Tensor, Mapping[str, float]]:
            with torch.no_grad():
                z = encoder(step.batch)
            prior = step.shard.draw(torch.randn, z.shape, generator=step.generator, device=z.device)
            return discriminator_loss(judge(prior), judge(z)), {}

        def generator(step: Step) -> tuple[Tensor, Mapping[str, float]]:
            return generator_loss(judge(encoder(step.batch))), {}

        rate = self._rate(plan)

        def slower(epoch: float) -> float:
            return self.adversarial_rate * rate(epoch)

        both: Any = [*encoder.parameters(), *network.decoder.parameters()]
        return [
            Phase("reconstruction", both, reconstruction, rate),
            Phase("discriminator", list(judge.parameters()), discriminator, slower),
            Phase("generator", list(encoder.parameters()), generator, slower),
        ]
