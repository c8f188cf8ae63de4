"""The adversarial autoencoder: three phases a step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from selfview.baselines.autoencoders import AutoEncoder, EncoderDecoder
from selfview.baselines.learned import Centring
from selfview.estimator import parameters
from selfview.estimator.base import Run
from selfview.networks import encoders
from selfview.training.loop import Phase, Step

WIDTH = 1024  # of the discriminator's two hidden layers


def discriminator_loss(on_prior: Tensor, on_posterior: Tensor) -> Tensor:
    """Cross-entropy of telling draws of the prior (1) from embeddings (0), given the logits.

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
        self, centring: Centring, encoder: nn.Module, decoder: nn.Module, dim: int
    ) -> None:
        super().__init__(centring, encoder, decoder)
        self.discriminator = encoders.perceptron([dim, WIDTH, WIDTH, 1], batch_norm=False)


@dataclass(eq=False, repr=False, kw_only=True)
class AdversarialAutoEncoder(AutoEncoder):
    """An autoencoder whose embeddings, all together, are spread like a standard normal [1]_.

    Every step has three phases: reconstruction moves encoder and decoder; the discriminator learns
    to tell embeddings from draws of N(0, I); the encoder learns to deceive it.

    Parameters
    ----------
    adversarial_rate : float
        Learning rate of the last two phases over that of the first. Adam's steps are as long as
        their rate however weak the gradient, so that at equal rates the game moves the encoder as
        far as reconstruction does, and embeddings neither settle near the prior nor hold the rows.
    n_components, encoder, batch_norm, recipe, epochs, batch_size, learning_rate, schedule,
    precision, device, random_state, checkpoint, verbose
        As in `AutoEncoder`. Batch norm stands in encoder and decoder, not in the discriminator,
        which would see from it whether a batch is of one kind.

    References
    ----------
    .. [1] Makhzani, Shlens, Jaitly, Goodfellow, Frey, "Adversarial autoencoders", ICLR workshop,
       2016 (arXiv 1511.05644). Here with the deterministic posterior.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = AdversarialAutoEncoder(n_components=10, epochs=2, random_state=0, verbose=0)
    >>> sorted(model.fit(X).history_[-1])
    ['discriminator', 'epoch', 'generator', 'reconstruction', 'seconds']
    """

    adversarial_rate: float = 0.1

    def check_parameters(self) -> None:
        super().check_parameters()
        parameters.positive("adversarial_rate", self.adversarial_rate)

    def _network(self, run: Run) -> AdversarialNetwork:
        encoder = self._encoder(run)
        dim = self._embedding_dim(encoder, run)
        return AdversarialNetwork(Centring(run), encoder, self._decoder(dim, run), dim)

    def _phases(self, network: nn.Module, run: Run) -> list[Phase]:
        assert isinstance(network, AdversarialNetwork)
        encoder, judge = network.encoder, network.discriminator

        def reconstruction(step: Step) -> tuple[Tensor, Mapping[str, float]]:
            return self._loss(network, step)

        def discriminator(step: Step) -> tuple[Tensor, Mapping[str, float]]:
            with torch.no_grad():
                z = encoder(step.batch)
            prior = step.share.draw(torch.randn, z.shape, generator=step.generator, device=z.device)
            return discriminator_loss(judge(prior), judge(z)), {}

        def generator(step: Step) -> tuple[Tensor, Mapping[str, float]]:
            return generator_loss(judge(encoder(step.batch))), {}

        rate = self._rate(run)

        def slower(epoch: float) -> float:
            return self.adversarial_rate * rate(epoch)

        both: Any = [*encoder.parameters(), *network.decoder.parameters()]
        return [
            Phase("reconstruction", both, reconstruction, rate),
            Phase("discriminator", list(judge.parameters()), discriminator, slower),
            Phase("generator", list(encoder.parameters()), generator, slower),
        ]
