"""Encoders, the head, and what joins them. Shapes and sizes as in the paper's Section IV-C."""

import copy
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from selfview.errors import InputError
from selfview.networks.convolution import Convolution, Flatten
from selfview.networks.forward import forward_views, per_view

KERNEL, STRIDE = 5, 2
WIDTH = 1024  # of the paper's hidden layers
LARGEST_SIDE = 8  # an image is halved until it is no larger, at least twice


class Convolutional(NamedTuple):
    """What the encoders for images differ in."""

    filters: int  # of the first convolution; every further one has twice as many
    hidden: tuple[int, ...] = ()  # sizes of the layers between convolutions and embedding


CONVOLUTIONAL = {
    "cnn": Convolutional(128),
    "small-cnn": Convolutional(32),
    "dense-cnn": Convolutional(16, (256,)),
}
PAPERS = CONVOLUTIONAL["cnn"]
ENCODERS = ("auto", "mlp", *CONVOLUTIONAL)

BATCH_NORM = ("both", "encoder", "head", "none")


def perceptron(sizes: Sequence[int], batch_norm: bool) -> nn.Sequential:
    """Linear layers of the given sizes with ReLU, and batch norm if asked, between them."""
    layers: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(sizes[:-1]):
        layers.append(nn.Linear(fan_in, fan_out))
        if batch_norm:
            layers.append(nn.BatchNorm1d(fan_out))
        layers.append(nn.ReLU())
    layers.append(nn.Linear(sizes[-2], sizes[-1]))
    return nn.Sequential(*layers)


def mlp_encoder(
    n_features: int, n_components: int, batch_norm: bool = True, width: int = WIDTH
) -> nn.Sequential:
    """An encoder for vectors: n_features-width-width-n_components; the paper's width is 1024."""
    return nn.Sequential(
        nn.Flatten(), *perceptron([n_features, width, width, n_components], batch_norm)
    )


def convolutions(
    shape: Sequence[int], stride: int = STRIDE, filters: int = PAPERS.filters
) -> list[tuple[int, int, tuple[int, ...]]]:
    """(filters, padding, resulting sides) of every convolution for `shape` (channels, *sides).

    28 x 28 pixels become 12 x 12 and 4 x 4, as in the paper. A side shorter than the kernel is
    padded; a large image gets further layers.
    """
    _, *sides = shape
    plan: list[tuple[int, int, tuple[int, ...]]] = []
    most = 2 * filters
    while len(plan) < 2 or max(sides) > LARGEST_SIDE:
        padding = 0 if min(sides) >= KERNEL else KERNEL // 2
        sides = [(side + 2 * padding - KERNEL) // stride + 1 for side in sides]
        plan.append((filters, padding, tuple(sides)))
        filters = most
    return plan


def cnn_encoder(
    shape: Sequence[int], n_components: int, batch_norm: bool = True, kind: Convolutional = PAPERS
) -> nn.Sequential:
    """An encoder for images of `shape` (channels, height, width): the paper's, unless said.

    Which has two convolutions of 128 and 256 filters (kernel 5, stride 2, no padding) and a linear
    layer for 28 x 28; see `convolutions` for other sizes.
    """
    layers: list[nn.Module] = []
    channels = shape[0]
    plan = convolutions(shape, filters=kind.filters)
    for filters, padding, _ in plan:
        layers.append(Convolution(channels, filters, KERNEL, STRIDE, padding))
        if batch_norm:
            layers.append(nn.BatchNorm2d(filters))
        layers.append(nn.ReLU())
        channels = filters
    height, width = plan[-1][2]
    sizes = [channels * height * width, *kind.hidden, n_components]
    return nn.Sequential(*layers, Flatten(), *perceptron(sizes, batch_norm))


def head(n_components: int, n_prototypes: int, batch_norm: bool = True) -> nn.Sequential:
    """The paper's classifier on top of the embedding: n_components-128-128-n_prototypes."""
    return perceptron([n_components, 128, 128, n_prototypes], batch_norm)


class ScaledEncoder(nn.Sequential):
    """Layers between two affine maps that are saved with their weights, and not learned.

    The layers see ``(x - shift) / scale``; the embedding is ``(z - centre) @ axes`` of what they
    give.
    """

    shift: Tensor  # 0, or (n_features,)
    scale: Tensor  # a number, or (n_features,)
    centre: Tensor  # (n_components,)
    axes: Tensor  # (n_components, n_components)

    def __init__(self, scale: float | Sequence[float], *layers: nn.Module) -> None:
        super().__init__(*layers)
        last = layers[-1]
        assert isinstance(last, nn.Linear)  # as of all encoders here
        self.register_buffer("shift", torch.zeros(()))
        self.register_buffer("scale", torch.tensor(scale, dtype=torch.float32))
        self.register_buffer("centre", torch.zeros(last.out_features))
        # torch.eye would import the compiler, for seconds, where a model is loaded ("meta" device).
        axes = torch.zeros(last.out_features, last.out_features).fill_diagonal_(1.0)
        self.register_buffer("axes", axes)

    def features(self, x: Tensor, parts: int = 1) -> Tensor:
        """What the layers give: what training looks at."""
        if self.shift.ndim:
            x = x.flatten(1) - self.shift
        # Elsewhere than on a processor the question would cost more than the answer saves.
        if self.scale.ndim or not x.is_cpu or self.scale != 1:
            x = x / self.scale
        return forward_views(self, x, parts)

    def forward(self, x: Tensor) -> Tensor:
        return (self.features(x) - self.centre) @ self.axes

    @torch.no_grad()
    def fold(self, mean: Tensor, scale: Tensor, basis: Tensor) -> None:
        """Take rows x where ``((x - mean) / scale) @ basis`` was taken: the first layer changes."""
        first = next(m for m in self if isinstance(m, nn.Linear))
        first.weight = nn.Parameter(first.weight @ basis.to(first.weight).T)
        first.in_features = len(basis)
        self.shift, self.scale = mean.to(first.weight), scale.to(first.weight)

    def expect(self, shift: Tensor, scale: Tensor, n_features: int) -> None:
        """Make room for a file's `shift` and `scale`: each a number, or one for every column."""
        for name, found in (("shift", shift), ("scale", scale)):
            if found.shape not in ((), (n_features,)):
                raise ValueError(f"{name} has {found.numel()} numbers for {n_features} columns")
            setattr(self, name, torch.empty(found.shape))


def scale_of(encoder: nn.Module) -> Tensor:
    """What an encoder of ours divides rows by; a custom one takes them as they are."""
    return encoder.scale if isinstance(encoder, ScaledEncoder) else torch.tensor(1.0)


class EncodingNetwork(nn.Module):
    """A network whose part `encoder` gives the embedding."""

    encoder: nn.Module

    def train(self, mode: bool = True) -> Self:
        """Set the mode of all layers but the encoder's frozen ones, which stay in evaluation mode.

        So their batch-norm statistics stay too, and they do in training what `transform` does.
        """
        super().train(mode)
        for layer in frozen_layers(self.encoder):
            layer.training = False
        return self


class EncoderHead(EncodingNetwork):
    """An encoder with a head: rows to logits; `encoder` alone gives the embedding."""

    # Buffers, so that they are saved and resumed with the weights.
    epsilon: Tensor
    temperature: Tensor

    def __init__(
        self, encoder: nn.Module, head: nn.Sequential, *, epsilon: float, temperature: float
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.register_buffer("epsilon", torch.tensor(epsilon, dtype=torch.float64))
        self.register_buffer("temperature", torch.tensor(temperature, dtype=torch.float64))

    @property
    def layers(self) -> list[nn.Module]:
        """Those of our own: an encoder that was given may want its weights as they are."""
        own = [self.encoder] if isinstance(self.encoder, ScaledEncoder) else []
        return [layer for part in (*own, self.head) for layer in part.children()]

    def forward(self, x: Tensor, parts: int = 1) -> Tensor:
        """Logits of rows; of `parts` interleaved batches, each as if it came alone."""
        return self.logits(self.features(x, parts), parts)

    def logits(self, z: Tensor, parts: int = 1) -> Tensor:
        """Logits of what the encoder's layers gave."""
        return forward_views(self.head, z, parts)

    def features(self, x: Tensor, parts: int = 1) -> Tensor:
        """What the encoder's layers give."""
        if isinstance(self.encoder, ScaledEncoder):
            return self.encoder.features(x, parts)
        return per_view(self.encoder, x, parts)  # a custom one may look at a batch as it likes


def frozen_layers(network: nn.Module) -> Iterator[nn.Module]:
    """Layers of every part that has parameters, none of which is learned."""
    for part in network.modules():
        learned = [parameter.requires_grad for parameter in part.parameters()]
        if learned and not any(learned):
            # Of a recurrent layer in evaluation mode cuDNN gives no gradient, which views need.
            yield from (m for m in part.modules() if not isinstance(m, nn.RNNBase))


def input_shape(shape: tuple[int, ...], encoder: str | nn.Module) -> tuple[int, ...]:
    """Shape in which a row of `shape` enters the network: a grey image gets its channel."""
    if isinstance(encoder, nn.Module) or encoder == "mlp" or len(shape) == 1:
        return shape
    if len(shape) == 2:
        return (1, *shape)
    if len(shape) == 3 and shape[0] > 4 and shape[2] <= 4:
        raise InputError(
            f"images must be (n, channels, height, width), and rows of shape {shape} look like "
            "(height, width, channels): pass X.transpose(0, 3, 1, 2)"
        )
    return shape


def make_encoder(
    encoder: str | nn.Module,
    shape: tuple[int, ...],
    n_components: int,
    batch_norm: bool,
    width: int = WIDTH,
) -> nn.Module:
    """The encoder that the parameter `encoder` names, for rows of `shape`; a module is copied."""
    if isinstance(encoder, torch.jit.ScriptModule):
        raise InputError("a TorchScript encoder can't learn here: pass the module it was made from")
    if isinstance(encoder, nn.Module):
        return copy.deepcopy(encoder)
    if len(shape) == 3 and encoder != "mlp":
        return cnn_encoder(shape, n_components, batch_norm, CONVOLUTIONAL[encoder])
    if encoder in CONVOLUTIONAL:
        raise InputError(
            f"encoder={encoder!r} needs images (n, channels, height, width), got rows of shape "
            f"{shape}: reshape X, or take encoder='mlp'"
        )
    return mlp_encoder(math.prod(shape), n_components, batch_norm, width)


def products(encoder: str, shape: tuple[int, ...]) -> int:
    """Multiplications of the encoder of that name for a row of `shape`, without its last layer."""
    if len(shape) < 3 or encoder == "mlp":
        return 1024 * (math.prod(shape) + 1024)
    kind = CONVOLUTIONAL[encoder]
    channels, count, pixels = shape[0], 0, 1
    for filters, _, sides in convolutions(shape, filters=kind.filters):
        pixels = math.prod(sides)
        count += filters * channels * KERNEL**2 * pixels
        channels = filters
    sizes = [channels * pixels, *kind.hidden]
    return count + sum(math.prod(pair) for pair in itertools.pairwise(sizes))


@torch.no_grad()
def output_size(encoder: nn.Module, shape: tuple[int, ...]) -> int:
    """Length of the vectors that `encoder` makes of rows of `shape`, found by trying."""
    device = next((p.device for p in encoder.parameters()), torch.device("cpu"))
    training = encoder.training
    try:
        z = encoder.eval()(torch.zeros(2, *shape, device=device))
    except (RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"the encoder does not take rows of shape {shape}: {error}") from error
    finally:
        encoder.train(training)
    if not isinstance(z, Tensor) or z.ndim != 2 or z.shape[0] != 2:
        found = tuple(z.shape) if isinstance(z, Tensor) else type(z).__name__
        raise InputError(f"the encoder must return (batch, n_components), got {found} for 2 rows")
    return int(z.shape[1])
