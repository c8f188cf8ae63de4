"""Recipes: the values that parameters take when they are left at "auto", also by the rows."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from selfview.networks.encoders import WIDTH
from selfview.rows.base import Summary
from selfview.training.schedules import cosine_rate, dropping_rate

ORDINARY_NORMS = (2.0, 128.0)  # mean norms of rows that are taken as they are: all the paper's are
MANY_ROWS = 20_000  # from which on hidden layers are twice as wide
WARMUP_SHARE = 1 / 50  # of the epochs, for the target entropy to fall
STREAM_WARMUP = 5  # optimiser steps, for the same in a stream
USUAL_NORM = 16.0  # to which others are brought, near enough
SCHEDULES: dict[str, Callable[[float, int], Callable[[float], float]]] = {
    "drop": lambda start, _: dropping_rate(start),
    "cosine": cosine_rate,
}


@dataclass(frozen=True)
class Recipe:
    """A set of values that belong together."""

    learning_rate: float
    schedule: str  # of the learning rate
    warmup: float | None  # epochs until the target entropy is reached; None is a fiftieth of all
    neighbours: int  # nearest rows that the second view is drawn from; 0 for a step like the first
    dense_ratio: float  # epsilon over the mean row norm
    text_ratio: float  # the same for tf-idf-like rows
    xi: float | None  # length of the probe, for rows of ordinary norms; None is epsilon
    contrast: float  # weight of telling neighbours from other rows
    images: str  # the encoder for images
    axes: str  # along which the embedding is given
    components: int  # principal components that a perceptron sees; 0 for the rows themselves
    width: int  # of a perceptron's hidden layers
    adversarial_share: float  # of the steps
    principal_start: bool  # do autoencoders begin with principal components?

    def rate(
        self, learning_rate: str | float, schedule: str, epochs: int
    ) -> Callable[[float], float]:
        """Learning rate as a function of the epoch; what isn't "auto" wins over the recipe."""
        shape = SCHEDULES[self.schedule if schedule == "auto" else schedule]
        return shape(self.peak(learning_rate), epochs)

    def peak(self, learning_rate: str | float) -> float:
        """The highest learning rate."""
        return self.learning_rate if learning_rate == "auto" else float(learning_rate)

    def epsilon(self, summary: Summary) -> float:
        """Length of a view's step: a share of the mean row norm."""
        if summary.spreads:  # in whose units a row is about so long
            return self.dense_ratio * math.sqrt(len(summary.spreads))
        ratio = self.text_ratio if summary.text_like else self.dense_ratio
        # Rows that are all zero have no scale: any step is as good.
        return ratio * summary.mean_norm or 1.0


RECIPES = {
    "paper": Recipe(
        learning_rate=5e-4,
        schedule="drop",
        warmup=100,
        neighbours=0,
        dense_ratio=1 / 5,
        text_ratio=20 / math.sqrt(2000),
        xi=10.0,
        contrast=0.0,
        images="cnn",
        axes="learned",
        components=0,
        width=WIDTH,
        adversarial_share=1.0,
        principal_start=False,
    ),
    # Neighbours differ from a row as rows do, steps where the model is weakest; to tell neighbours
    # from other rows gives distances in the embedding a meaning; a higher rate, shorter steps and
    # fewer filters with a hidden layer suit budgets of minutes. Measured by benchmarks/quality.py.
    "selfview": Recipe(
        learning_rate=2e-3,
        schedule="cosine",
        warmup=None,
        neighbours=10,
        dense_ratio=1 / 10,
        text_ratio=1 / 10,
        xi=None,
        contrast=1.0,
        images="dense-cnn",
        axes="principal",
        components=256,
        width=256,
        adversarial_share=0.25,
        principal_start=True,
    ),
}


def input_scale(summary: Summary) -> float | tuple[float, ...]:
    """What rows are divided by, so that data in any unit learn alike: 1 if they are ordinary.

    Columns of unlike units by their spreads. Else a power of two, by which division changes no
    rounding: rows times 1024 learn the same bits.
    """
    norm = summary.mean_norm
    if summary.spreads:
        return summary.spreads
    if norm == 0 or ORDINARY_NORMS[0] <= norm < ORDINARY_NORMS[1]:
        return 1.0
    return 2.0 ** round(math.log2(norm / USUAL_NORM))


@dataclass(frozen=True)
class Settings:
    """What SelfView does, with every "auto" decided."""

    width: int = WIDTH  # of a perceptron's hidden layers
    neighbours: int = 0  # nearest rows that the second view is drawn from
    contrast: float = 0.0  # weight of InfoNCE
    adversarial_share: float = 1.0  # of the steps
    epsilon: float = 1.0  # length of an adversarial perturbation, in the unit of the rows
    xi: float = 1.0  # length of a random one, in the same unit
    unit: float = 1.0  # a length of 1 between rows, as the network sees them
    target_entropy: float = 0.0  # nats
    warmup: float = 0.0  # optimiser steps in which the target entropy falls to that
    whiten: bool = False


def settings_of(model: Any, plan: Any) -> Settings:
    """The settings of a fit: what the model was given, and its recipe's values for the rest."""
    recipe, summary, stream = RECIPES[model.recipe], plan.summary, plan.stream
    usual = recipe.neighbours if plan.searchable and model.views != "random+adversarial" else 0
    neighbours = int(_or(model.neighbours, usual))
    unit, epsilon = 1.0, recipe.epsilon(summary)
    if plan.projected is not None:
        unit = plan.projected.projection.unit
        epsilon = recipe.dense_ratio * USUAL_NORM / unit
    epsilon = float(_or(model.epsilon, epsilon))
    xi = epsilon if recipe.xi is None else recipe.xi
    if recipe.xi is not None and not summary.spreads:
        xi *= float(input_scale(summary))  # type: ignore[arg-type]
    warmup: float = STREAM_WARMUP
    if model.warmup != "auto" or not stream:
        share = plan.epochs * WARMUP_SHARE if recipe.warmup is None else recipe.warmup
        warmup = float(_or(model.warmup, share)) * plan.batches
    width = recipe.width if plan.n < MANY_ROWS else 2 * recipe.width
    return Settings(
        width=int(_or(model.width, width)),
        neighbours=stream.neighbours(neighbours) if stream and neighbours else neighbours,
        contrast=float(_or(model.contrast, recipe.contrast if neighbours else 0.0)),
        adversarial_share=float(_or(model.adversarial_share, recipe.adversarial_share)),
        epsilon=epsilon,
        xi=float(_or(model.xi, xi)),
        unit=unit,
        target_entropy=float(_or(model.target_entropy, math.log(model.n_prototypes) / 2)),
        warmup=warmup,
        whiten=_or(model.axes, recipe.axes) == "principal",
    )


def _or(given: Any, auto: Any) -> Any:
    return auto if isinstance(given, str) and given == "auto" else given
