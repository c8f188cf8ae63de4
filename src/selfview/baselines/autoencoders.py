"""The autoencoder, of which the others derive.

It minimises the mean squared error of centred and scaled rows. That is relative to the data's
variance: 1 for a network whose output is always the mean row.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from selfview.baselines.learned import CentredPlan, Centring, Learned
from selfview.estimator.plan import FitPlan
from selfview.estimator.recipes import RECIPES
from selfview.networks import encoders
from selfview.networks.decoders import make_decoder
from selfview.networks.encoders import EncodingNetwork
from selfview.networks.start import principal_start
from selfview.training.loop import Phase, Step


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
        made = encoders.make_encoder(plan.encoder, plan.shape, self.n_components, self.batch_norm)
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
        name = plan.encoder
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
