"""Contrastive predictive coding: the first parts of a row predict those that follow."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from selfview.baselines.learned import Centring, Learned
from selfview.distributed import WHOLE_BATCH, BatchShard
from selfview.errors import InputError
from selfview.estimator.plan import FitPlan
from selfview.networks import encoders
from selfview.networks.encoders import EncodingNetwork
from selfview.training.loop import Phase, Step

SEGMENTS = 8  # of a vector
PATCHES = 3  # of an image along each side
PATCH_SHARE = 3 / 7  # of a side, so that patches overlap by a third: 12 of 28 pixels, 8 apart
LARGEST_PATCH = 16  # that is convolved with stride 1
SEGMENT_STRIDE = 4  # of the convolutions over a segment
IMAGE_WIDTH, VECTOR_WIDTH = 96, 512  # of a part's code; about the paper's number of parameters
AHEAD = 4  # parts ahead that a context predicts


def info_nce(predictions: Tensor, codes: Tensor, shard: BatchShard = WHOLE_BATCH) -> Tensor:
    """InfoNCE: the cross-entropy of finding each row's code among those of the batch, in nats.

    -mean over rows i of log(exp(p_i . c_i) / sum_j exp(p_i . c_j)). log(batch) minus this is a
    lower bound of the mutual information of prediction and code (van den Oord, Li, Vinyals 2018,
    Eq. 4).

    Parameters
    ----------
    predictions, codes : Tensor (pairs, batch, width)
        Row i of a prediction belongs to row i of the code; all others are its negatives.
    shard : BatchShard, default the whole batch
        Which rows of the batch these are, if several processes hold it: negatives are from all.

    Examples
    --------
    >>> round(info_nce(torch.zeros(1, 8, 2), torch.ones(1, 8, 2)).item(), 4)  # log 8
    2.0794
    """
    codes = shard.gather(codes, dim=1)
    scores = predictions @ codes.transpose(1, 2)  # (pairs, batch, batch)
    own = torch.arange(codes.shape[1], device=scores.device)[shard.rows].expand(len(scores), -1)
    return functional.cross_entropy(scores.flatten(0, 1).float(), own.flatten())


def image_patches(x: Tensor) -> Tensor:
    """Overlapping patches in reading order: (batch, c, h, w) to (batch, parts, c, ph, pw)."""
    (height, tops), (width, lefts) = _windows(x.shape[2]), _windows(x.shape[3])
    parts = [x[:, :, t : t + height, p : p + width] for t in tops for p in lefts]
    return torch.stack(parts, dim=1)


def _windows(side: int) -> tuple[int, list[int]]:
    """Length and starts of the windows along a side."""
    length = math.ceil(side * PATCH_SHARE)
    starts = {round(i * (side - length) / (PATCHES - 1)) for i in range(PATCHES)}
    return length, sorted(starts)


def vector_segments(x: Tensor) -> Tensor:
    """Consecutive segments of equal length: (batch, ...) to (batch, parts, 1, length).

    The last one is filled up with zeros.
    """
    flat = x.flatten(1)
    length = math.ceil(flat.shape[1] / SEGMENTS)
    parts = math.ceil(flat.shape[1] / length)
    padded = functional.pad(flat, (0, parts * length - flat.shape[1]))
    return padded.reshape(-1, parts, 1, length)


def part_encoder(shape: Sequence[int], width: int, batch_norm: bool) -> nn.Sequential:
    """Convolutions over a patch (channels, h, w) or a segment (1, length), and a linear layer.

    Two convolutions, of 128 and 256 filters, for small parts.
    """
    image = len(shape) == 3
    layer, norm = (nn.Conv2d, nn.BatchNorm2d) if image else (nn.Conv1d, nn.BatchNorm1d)
    patch_stride = 1 if max(shape[1:]) <= LARGEST_PATCH else encoders.STRIDE
    stride = patch_stride if image else SEGMENT_STRIDE
    layers: list[nn.Module] = []
    channels = shape[0]
    plan = encoders.convolutions(shape, stride)
    for filters, padding, _ in plan:
        layers.append(layer(channels, filters, encoders.KERNEL, stride, padding))
        layers += [norm(filters)] * batch_norm + [nn.ReLU()]
        channels = filters
    layers += [nn.Flatten(), nn.Linear(channels * math.prod(plan[-1][2]), width)]
    return nn.Sequential(*layers)


class ContextEncoder(nn.Module):
    """Rows to embeddings: the mean of the contexts along the sequence of parts."""

    def __init__(
        self, centring: Centring, shape: Sequence[int], dim: int, batch_norm: bool
    ) -> None:
        super().__init__()
        self.centring = centring
        self.cut = image_patches if len(shape) == 3 else vector_segments
        with torch.device("cpu"):  # to look at the sizes, whatever device the network is for
            self.parts, *part = self.cut(torch.zeros(1, *shape))[0].shape
        self.width = IMAGE_WIDTH if len(shape) == 3 else VECTOR_WIDTH
        self.part = part_encoder(part, self.width, batch_norm)
        self.memory = nn.GRU(self.width, self.width, batch_first=True)
        self.context = nn.Linear(self.width, dim)

    def codes(self, x: Tensor) -> Tensor:
        """The code of every part: (batch, parts, width)."""
        parts = self.cut(self.centring(x))
        # On a processor, convolutions of sequences in bfloat16 are NaN at times.
        with torch.autocast("cpu", enabled=False):
            codes: Tensor = self.part(parts.flatten(0, 1))
        return codes.reshape(-1, self.parts, self.width)

    def contexts(self, codes: Tensor) -> Tensor:
        """The context after every part: (batch, parts, dim)."""
        context: Tensor = self.context(self.memory(codes)[0])
        return context

    def forward(self, x: Tensor) -> Tensor:
        return self.contexts(self.codes(x)).mean(dim=1)


class PredictiveNetwork(EncodingNetwork):
    """A context encoder, and a linear prediction of the code of each part ahead."""

    encoder: ContextEncoder

    def __init__(self, encoder: ContextEncoder, dim: int) -> None:
        super().__init__()
        self.encoder = encoder
        ahead = min(AHEAD, encoder.parts - 1)
        self.predict = nn.ModuleList(nn.Linear(dim, encoder.width) for _ in range(ahead))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Predictions and the codes that they are of: (pairs, batch, width) each."""
        codes = self.encoder.codes(x)
        contexts = self.encoder.contexts(codes)
        codes, contexts = codes.transpose(0, 1), contexts.transpose(0, 1)  # parts first
        pairs = list(enumerate(self.predict, start=1))
        predicted = torch.cat([predict(contexts[:-ahead]) for ahead, predict in pairs])
        return predicted, torch.cat([codes[ahead:] for ahead, _ in pairs])


@dataclass(eq=False, repr=False, kw_only=True)
class CPC(Learned):
    """Contrastive predictive coding: contexts that predict the following parts of a row [1]_.

    A row becomes a sequence: nine overlapping patches of an image in reading order, or eight
    consecutive segments of a vector. Convolutions encode each part, and a GRU turns the parts so
    far into a context. Linear predictions from the context of the codes of up to four parts ahead
    are contrasted with the codes of the batch's other rows at the same place (InfoNCE). The
    embedding is the mean of a row's contexts.

    Parameters
    ----------
    n_components : int, default 10
        Length of a context, and of the embedding.
    batch_norm : bool, default True
        Batch norm after every convolution.
    recipe, epochs, batch_size, learning_rate, schedule, precision, device, random_state, \
    checkpoint, on_epoch, max_seconds, verbose
        As in `SelfView`, with the same defaults.

    References
    ----------
    .. [1] van den Oord, Li, Vinyals, "Representation learning with contrastive predictive coding",
       2018 (arXiv 1807.03748).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> CPC(n_components=10, epochs=1, random_state=0, verbose=0).fit_transform(X[:256]).shape
    (256, 10)
    """

    encoder = "auto"  # not a parameter

    def _network(self, plan: FitPlan) -> PredictiveNetwork:
        encoder = ContextEncoder(Centring(plan), plan.shape, self.n_components, self.batch_norm)
        if encoder.parts < 2:
            raise InputError(
                "CPC predicts parts of a row from others, and needs rows of at least two features "
                f"or 2 x 1 pixels; got n_features = {math.prod(plan.shape)}"
            )
        return PredictiveNetwork(encoder, self.n_components)

    def _phases(self, network: nn.Module, plan: FitPlan) -> list[Phase]:
        def loss(step: Step) -> tuple[Tensor, Mapping[str, float]]:
            predictions, codes = network(step.batch)
            value = info_nce(predictions, codes, step.shard)
            batch = len(step.batch) / step.shard.weight
            return value, {"information": math.log(batch) - value.item()}

        parameters: Any = list(network.parameters())
        return [Phase("loss", parameters, loss, self._rate(plan))]
