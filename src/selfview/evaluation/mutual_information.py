"""Mutual information of features and labels or a continuous target, by MINE, in nats.

Belghazi et al. 2018: I(Z; Y) is the largest value, over functions T, of

    mean T(z, y) over the pairs of the data  -  log mean exp T(z, y') over independent pairs.

What makes the estimate reliable and fast:

- T(z, y) = a(z) + b(y) - |g(z) - h(y)|^2 / 2, with g, a and h, b out of two small networks. One
  matrix product then scores all pairs of a batch, so the log-mean-exp, the noisy part of the
  bound, is taken over all pairs. The squared distance suits correlated Gaussians.
- The critic is trained on some rows, stopped by others and scored on yet others. On its own rows
  a critic learns the noise too, and any embedding of a few hundred rows looks informative.
- For labels, the independent pairs are every scored row with every class at its frequency. No
  critic, however wrong, can then score above the entropy of the scored labels, which is at most
  ln(classes).
"""

import contextlib
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from selfview.errors import SelfViewWarning
from selfview.evaluation.inputs import Floats, Ints
from selfview.evaluation.neighbourhood import subsample
from selfview.evaluation.probes import standardise
from selfview.evaluation.split import Split

CRITICS = 5  # each leaves out other fifths of the rows
WIDTH, RANK = 64, 32
BATCH = 256
STEPS = 300
LEARNING_RATE = 6e-3
WEIGHT_DECAY = 1.0
SMOOTHING = 0.05  # of the moving average of the weights, which is what gets scored
EMA_OLD, EMA_NEW = math.log(0.95), math.log(0.05)  # the gradient's moving average, in logs
SNAPSHOTS = 20  # of the critic, evenly over its training
LAST_PART = 0.25  # of training until it was stopped, over which the bound is averaged
MAX_ROWS = 50_000  # more rows are subsampled; the noise is then below 0.01
PAIRED = 500  # values of a continuous target that each scored row is paired with
STOP_ROWS = 1_000  # enough to see the critic get worse
FEWEST_ROWS = 10
CORE = 4.0  # standard deviations of a normal distribution


@dataclass(frozen=True)
class Pairs:
    """Rows of z, values of y, each row's own among them, and the independent pairs."""

    z: Tensor  # (n, dim)
    y: Tensor  # (m, dim_y)
    own: Tensor  # (n,), in 0 .. m - 1
    log_weight: Tensor  # (k,) or (n, k): of each z with the first k of y; the weights sum to 1


def mutual_information(
    Z: Floats, y: Floats | Ints, split: Split | None, seed: int
) -> dict[str, float]:
    """MINE of Z and y: integer codes of classes (n,), or continuous values (n, outputs).

    Five critics. Without a split, each is trained on three fifths of the rows, stopped by the
    fourth and scored on the fifth, so that every row is scored once. With a split, each is trained
    on four fifths of the training rows, stopped by the fifth and scored on the test rows.

    `mine` is the mean of the bound over the critics and the last quarter of their training,
    `mine_spread` the standard deviation over both. A critic whose bound on the stopping rows is
    never above 0 counts as 0. A held-out bound is at most the truth, up to sampling noise, so
    independent data can score slightly below 0.
    """
    train = np.arange(len(Z)) if split is None else split.train
    train = train[subsample(train.size, MAX_ROWS, seed)]
    test = None if split is None else np.random.default_rng(seed).permutation(split.test)[:MAX_ROWS]
    generator = torch.Generator("cpu").manual_seed(seed)
    folds = [train[fold] for fold in _folds(y[train], generator)]
    values: list[float] = []
    enough = train.size >= FEWEST_ROWS and (test is None or test.size >= 2)
    with _one_thread(), torch.inference_mode(False), torch.enable_grad():
        for fold in range(CRITICS if enough else 0):
            stop, *rest = folds[fold:] + folds[:fold]
            score = rest.pop(0) if test is None else test
            values += _one_critic(Z, y, (np.concatenate(rest), stop, score), generator)
    if not enough:
        message = f"too few rows for mutual information: {train.size}, at least {FEWEST_ROWS}"
        warnings.warn(message, SelfViewWarning, stacklevel=2)
        values = [float("nan")]
    return {
        "mine": float(np.mean(values)),
        "mine_spread": float(np.std(values)),
        "mine_rows": train.size,
    }


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """The steps are so small that synchronising threads would take most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _folds(y: Floats | Ints, generator: torch.Generator) -> list[Ints]:
    """Five lists of rows in random order, stratified by class."""
    order = torch.randperm(len(y), generator=generator, device="cpu").numpy()
    if y.ndim == 1:
        order = order[np.argsort(y[order], kind="stable")]
    return [order[fold::CRITICS] for fold in range(CRITICS)]


def _one_critic(
    Z: Floats, y: Floats | Ints, parts: tuple[Ints, Ints, Ints], generator: torch.Generator
) -> list[float]:
    """The bound on the scored rows, several times in the last part of training."""
    z = _squashed(*(Z[rows] for rows in parts))
    if y.ndim == 1:
        learn, stop, score = (
            _class_pairs(part, torch.from_numpy(y[rows]), int(y.max()) + 1)
            for part, rows in zip(z, parts, strict=True)
        )
    else:
        values = _squashed(*(y[rows].astype(np.float64) for rows in parts))
        learn = Pairs(z[0], values[0], torch.arange(len(z[0]), device="cpu"), values[0])
        stop, score = (
            _value_pairs(part[:most], value[:most])
            for part, value, most in zip(z[1:], values[1:], (STOP_ROWS, None), strict=True)
        )
    snapshots = _train(learn, y.ndim == 1, generator)
    stopping = [_bound(weights, stop) for weights in snapshots]
    if max(stopping) <= 0:  # no moment of this critic beats T = 0, whose bound is 0
        return [0.0]
    end = int(np.argmax(stopping)) + 1
    first = min(math.floor(end * (1 - LAST_PART)), end - 1)
    return [_bound(weights, score) for weights in snapshots[first:end]]


def _squashed(*parts: Floats) -> list[Tensor]:
    """All parts scaled by the first one's quartiles, values beyond CORE squashed below CORE + 1.

    Mutual information doesn't change under an invertible map of each feature, so this costs none,
    while an outlier can neither flatten all other rows nor dominate the bound.
    """
    low, middle, high = np.quantile(parts[0], (0.25, 0.5, 0.75), axis=0)
    # 1.349: the interquartile range of a normal distribution; it is 0 for mostly constant features.
    scale = np.where(high > low, (high - low) / 1.349, parts[0].std(axis=0))
    scale[scale == 0] = 1
    squashed = []
    for part in parts:
        scaled = (part - middle) / scale
        beyond = np.log1p(np.maximum(np.abs(scaled) - CORE, 0))
        inner = np.clip(scaled, -CORE, CORE)
        squashed.append(inner + np.sign(scaled) * beyond / (1 + beyond))
    return [torch.from_numpy(part.astype(np.float32)) for part in standardise(*squashed)]


def _class_pairs(z: Tensor, codes: Tensor, n_classes: int) -> Pairs:
    """Every z with every class, at the class's frequency."""
    shares = torch.bincount(codes, minlength=n_classes).float() / len(codes)
    one_hot = torch.eye(n_classes, dtype=torch.float32, device="cpu")
    return Pairs(z, one_hot, codes, torch.log(shares) - math.log(len(z)))


def _value_pairs(z: Tensor, y: Tensor) -> Pairs:
    """Every z with the first values of y but its own, which is no independent draw."""
    n, met = len(z), min(len(z), PAIRED)
    weight = torch.full((n, met), -math.log((n - 1) * met), dtype=torch.float32, device="cpu")
    weight.fill_diagonal_(-math.inf)
    return Pairs(z, y, torch.arange(n, device="cpu"), weight)


def _batch(pairs: Pairs, rows: Tensor, classes: bool) -> Pairs:
    if not classes:
        return _value_pairs(pairs.z[rows], pairs.y[rows])
    fewer = math.log(len(pairs.z) / len(rows))
    return Pairs(pairs.z[rows], pairs.y, pairs.own[rows], pairs.log_weight + fewer)


def _shapes(dim: int) -> list[tuple[int, ...]]:
    """Of a tower's weights: two hidden layers, then the way out with a short cut past them."""
    hidden = [(dim, WIDTH), (WIDTH,), (WIDTH, WIDTH), (WIDTH,)]
    return [*hidden, (WIDTH, RANK + 1), (dim, RANK + 1), (RANK + 1,)]


def _start(dim: int, generator: torch.Generator) -> Tensor:
    """A tower's first weights, end to end, drawn from our generator alone."""
    gains = (1.4, 0, 1.4, 0, 0.2, 0.2, 0)
    parts = [
        torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu").flatten()
        * (gain / math.sqrt(shape[0]))
        for shape, gain in zip(_shapes(dim), gains, strict=True)
    ]
    return torch.cat(parts)


def _embed(tower: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The point g(x) (n, rank) and the offset a(x) - |g(x)|^2 / 2 (n,)."""
    shapes = _shapes(x.shape[1])
    parts = torch.split_with_sizes(tower, [math.prod(shape) for shape in shapes])
    first, bias_1, second, bias_2, third, skip, bias_3 = (
        part.view(shape) for part, shape in zip(parts, shapes, strict=True)
    )
    hidden = functional.silu(x @ first + bias_1)
    hidden = functional.silu(hidden @ second + bias_2)
    out = hidden @ third + x @ skip + bias_3
    return out[:, 1:], out[:, 0] - 0.5 * out[:, 1:].square().sum(1)


def _terms(weights: Tensor, pairs: Pairs) -> tuple[Tensor, Tensor]:
    """The two halves of the bound: the mean over own pairs, the log-mean-exp over all others."""
    size_z = sum(math.prod(shape) for shape in _shapes(pairs.z.shape[1]))
    z, offset_z = _embed(weights[:size_z], pairs.z)
    y, offset_y = _embed(weights[size_z:], pairs.y)
    own = ((z * y[pairs.own]).sum(1) + offset_z + offset_y[pairs.own]).mean()
    met = pairs.log_weight.shape[-1]
    scores = z @ y[:met].T + offset_z[:, None] + offset_y[:met]  # (n, met)
    return own, torch.logsumexp((scores + pairs.log_weight).flatten(), 0)


def _bound(weights: Tensor, pairs: Pairs) -> float:
    with torch.no_grad():
        own, log_mean = _terms(weights, pairs)
    return float(own - log_mean)


def _train(pairs: Pairs, classes: bool, generator: torch.Generator) -> list[Tensor]:
    """Snapshots of a critic, evenly over its training; the weights are smoothed over steps.

    The gradient of log mean exp T divides by a batch's mean, which biases it; dividing by a moving
    average instead is MINE's correction (Belghazi et al. 2018, section 3.2).
    """
    n = len(pairs.z)
    # One vector for all weights: at this size the number of calls decides the time of a step.
    weights = torch.cat([_start(side.shape[1], generator) for side in (pairs.z, pairs.y)])
    smooth = weights.clone()
    weights.requires_grad_()
    optimiser = torch.optim.AdamW([weights], LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)
    average = torch.zeros((), dtype=torch.float32, device="cpu")
    snapshots: list[Tensor] = []
    for step in range(STEPS):
        rows = torch.randint(n, (min(BATCH, n),), generator=generator, device="cpu")
        own, log_mean = _terms(weights, _batch(pairs, rows, classes))
        now = log_mean.detach()
        average = torch.logaddexp(average + EMA_OLD, now + EMA_NEW) if step else now
        loss = torch.exp(log_mean - average) - own
        (gradient,) = torch.autograd.grad(loss, [weights])
        weights.grad = gradient / gradient.norm().clamp(min=1.0)
        optimiser.step()
        smooth.lerp_(weights.detach(), max(SMOOTHING, 1 / (step + 1)))
        if (step + 1) % (STEPS // SNAPSHOTS) == 0:
            snapshots.append(smooth.clone())
    return snapshots
