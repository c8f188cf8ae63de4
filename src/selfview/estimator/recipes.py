"""Recipes: the values that parameters take when they are left at "auto", also by the rows."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from selfview.neighbours.search import COMPONENTS
from selfview.networks.encoders import WIDTH
from selfview.rows.base import Summary
from selfview.training.schedules import cosine_rate, dropping_rate

ORDINARY_NORMS = (2.0, 128.0)  # mean norms of rows that are taken as they are: all the paper's are
MANY_COLUMNS = 100  # from which on rows are compared by their angle
MANY_ROWS = 40_000
SEARCHED_ENTRIES = 1 << 26  # of rows that are compared as they are: 256 MiB
FEW_ROWS = 1000
WIDTHS = ((FEW_ROWS, 128), (MANY_ROWS, 256), (math.inf, 512))  # for fewer rows than so many
# Optimiser steps: of few rows one for every four, of more one for every 25, and from `STEPS_ROWS`
# rows on by their square root; twice as many for the wider network of many rows.
FEW_STEPS, SOME_STEPS, STEPS, STEPS_ROWS = 40, 300, 500, 5000
MAP_DIMS, MAP_STEPS = 3, 2.5  # up to so many dimensions it takes so many times as many steps
WARMUP_SHARE = 1 / 50  # of the epochs, for the target entropy to fall
STREAM_WARMUP = 5  # optimiser steps, for the same in a stream
USUAL_NORM = 16.0  # to which others are is_precomputed, near enough
SCHEDULES: dict[str, Callable[[float, int], Callable[[float], float]]] = {
    "drop": lambda start, _: dropping_rate(start),
    "cosine": cosine_rate,
}


@dataclass(frozen=True)
class Kind:
    """Values that hang on the kind of rows: dense ones, or tf-idf-like."""

    components: int = 0  # principal components that a perceptron sees; 0 for the rows themselves
    whitening: float = 0.0  # of those components, as a power
    neighbours: int = 0  # nearest rows that the second view is drawn from; 0 for a perturbation
    walk: float = 0.0  # chance to go on from there to one of its neighbours, at first
    search_components: int = COMPONENTS  # in which they are compared
    search_rows: bool = False  # compare the rows themselves, if they take little memory
    power: float = 1.0  # of InfoNCE's kernel
    attraction: float = 1.0  # of its views, at the end


@dataclass(frozen=True)
class Recipe:
    """A set of values that belong together."""

    learning_rate: float
    schedule: str  # of the learning rate
    warmup: float | None  # epochs until the target entropy is reached; None is a fiftieth of all
    dense: Kind
    few: Kind  # dense rows, below 1,000 of them; those of groups and streams too
    text: Kind
    dense_ratio: float  # epsilon over the mean row norm
    text_ratio: float  # the same for tf-idf-like rows
    xi: float | None  # length of a random perturbation, for ordinary norms; None is epsilon
    contrast: float  # weight of InfoNCE, if there are neighbours
    images: str  # the encoder for images
    small_image: int  # numbers, up to which many images have the perceptron
    axes: str  # principal (local whitening) or learned
    adversarial_share: float  # of the steps
    start: str  # of the last layer: random, principal, or locality (with many rows) and principal

    def kind(self, summary: Summary, n: int, *, alone: bool) -> Kind:
        """The kind of `n` rows; `alone` if they are one set, neither grouped nor a stream."""
        if summary.text_like:
            return self.text
        return self.dense if alone and n >= FEW_ROWS else self.few

    def encoder(self, shape: tuple[int, ...], n: int | None) -> str:
        """The encoder for `n` rows of `shape`, or for a stream of them."""
        few = n is None or n <= FEW_ROWS
        image = len(shape) in (2, 3) and (few or math.prod(shape) > self.small_image)
        return self.images if image else "mlp"

    def width(self, n: int) -> int:
        """Width of a perceptron's hidden layers for `n` rows: few rows fill no wide ones."""
        if not self.dense.components:
            return WIDTH
        return next(width for most, width in WIDTHS if n < most)

    def steps(self, n: int, dim: int) -> int:
        """Optimiser steps of an "auto" fit of a perceptron on principal components.

        In a map of two or three dimensions rows are in each other's way, and need more of them.
        """
        steps = FEW_STEPS + n / 4 if n < FEW_ROWS else SOME_STEPS + n / 25
        if n >= STEPS_ROWS:
            steps = STEPS * math.sqrt(n / STEPS_ROWS) * (1 if n < MANY_ROWS else 2)
        return round(steps * (MAP_STEPS if dim <= MAP_DIMS else 1))

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
        """Length of an adversarial perturbation: a share of the mean row norm."""
        if summary.column_stds:  # in whose units a row is about so long
            return self.dense_ratio * math.sqrt(len(summary.column_stds))
        ratio = self.text_ratio if summary.text_like else self.dense_ratio
        # Rows that are all zero have no scale: any length is as good.
        return ratio * summary.mean_norm or 1.0


_DENSE: dict[str, Any] = dict(components=100, whitening=0.25, power=1.25, attraction=2.0)

RECIPES = {
    "paper": Recipe(
        learning_rate=5e-4,
        schedule="drop",
        warmup=100,
        dense=Kind(),
        few=Kind(),
        text=Kind(),
        dense_ratio=1 / 5,
        text_ratio=20 / math.sqrt(2000),
        xi=10.0,
        contrast=0.0,
        images="cnn",
        small_image=0,
        axes="learned",
        adversarial_share=1.0,
        start="random",
    ),
    # Neighbours differ from a row as rows of one kind do, and InfoNCE gives distances between
    # embeddings a meaning; adversarial views and the swapped prediction add to it in some steps.
    "selfview": Recipe(
        learning_rate=2e-3,
        schedule="cosine",
        warmup=None,
        # Most of what distinguishes dense rows lies in few components; of tf-idf rows it doesn't.
        # A walk over few near neighbours stays within a cluster where as many nearest rows would
        # leave it; a cluster of few rows it leaves soon.
        dense=Kind(**_DENSE, neighbours=6, walk=0.8),
        few=Kind(**_DENSE, neighbours=10),
        # A topic has many words: its rows are found by many neighbours, in all columns.
        text=Kind(
            components=400, neighbours=30, search_components=400, search_rows=True, power=2.0
        ),
        dense_ratio=1 / 10,
        text_ratio=1 / 10,
        xi=None,
        contrast=1.0,
        # Of many small images the perceptron learns about as much, sooner.
        images="dense-cnn",
        small_image=64 * 64 * 3,
        axes="principal",
        adversarial_share=0.25,
        start="locality",
    ),
}


def input_scale(summary: Summary) -> float | tuple[float, ...]:
    """What rows are divided by, so that data in any unit learn alike: 1 if they are ordinary.

    Columns of different scale are divided by their standard deviations, other rows by a power of
    two, which changes no rounding: rows times 1024 learn the same bits.
    """
    norm = summary.mean_norm
    if summary.column_stds:
        return summary.column_stds
    if norm == 0 or ORDINARY_NORMS[0] <= norm < ORDINARY_NORMS[1]:
        return 1.0
    return 2.0 ** round(math.log2(norm / USUAL_NORM))


def by_angle(summary: Summary, n_features: int) -> bool:
    """Are rows compared by their angle?"""
    return summary.text_like or n_features > MANY_COLUMNS


@dataclass(frozen=True)
class Settings:
    """What SelfView does, with every "auto" decided."""

    width: int = WIDTH  # of a perceptron's hidden layers
    neighbours: int = 0  # nearest rows that the second view is drawn from
    walk: float = 0.0  # chance to go on to one of theirs, at first
    by_angle: bool = False  # how they are compared
    search_components: int = COMPONENTS  # in which they are; 0 for the rows themselves
    contrast: float = 0.0  # weight of InfoNCE
    power: float = 1.0  # of its kernel
    attraction: float = 1.0  # at its end
    adversarial_every: int = 1  # so many steps one has adversarial views and swapped prediction
    epsilon: float = 1.0  # length of an adversarial perturbation, in the unit of the rows
    xi: float = 1.0  # length of a random one, in the same unit
    unit: float = 1.0  # a length of 1 between rows, as the network sees them
    target_entropy: float = 0.0  # nats
    warmup: float = 0.0  # optimiser steps in which the target entropy falls to that
    whiten: bool = False

    def attraction_at(self, progress: float) -> float:
        """Attraction of the views after a share of the epochs: it rises in the second half."""
        return 1 + (self.attraction - 1) * min(max(0.0, 2 * progress - 1), 1.0)

    def walk_at(self, progress: float) -> float:
        """Chance that a walk goes on, after a share of the epochs: it falls to 0."""
        return self.walk * max(0.0, 1 - progress)


def settings_of(model: Any, plan: Any) -> Settings:
    """The settings of a fit: what the model was given, and its recipe's values for the rest."""
    recipe, summary, stream = RECIPES[model.recipe], plan.summary, plan.stream
    rows = recipe.kind(summary, plan.n, alone=plan.alone)
    usual = rows.neighbours if plan.searchable and model.views != "random+adversarial" else 0
    neighbours = 1 if plan.links else int(_or(model.neighbours, usual))
    unit, epsilon = 1.0, recipe.epsilon(summary)
    if plan.projected is not None:
        unit = plan.projected.projection.unit
        epsilon = recipe.dense_ratio * USUAL_NORM / unit
    epsilon = float(_or(model.epsilon, epsilon))
    xi = epsilon if recipe.xi is None else recipe.xi
    if recipe.xi is not None and not summary.column_stds:
        xi *= float(input_scale(summary))  # type: ignore[arg-type]
    warmup: float = STREAM_WARMUP
    if model.warmup != "auto" or not stream:
        epochs = plan.epochs * WARMUP_SHARE if recipe.warmup is None else recipe.warmup
        warmup = float(_or(model.warmup, epochs)) * plan.batches
    small = plan.n * plan.n_features <= SEARCHED_ENTRIES
    search_components = 0 if stream or (rows.search_rows and small) else rows.search_components
    contrast = float(_or(model.contrast, recipe.contrast if neighbours else 0.0))
    share = float(_or(model.adversarial_share, recipe.adversarial_share))
    return Settings(
        width=int(_or(model.width, WIDTH if stream else recipe.width(plan.n))),
        neighbours=stream.neighbours(neighbours) if stream and neighbours else neighbours,
        walk=rows.walk if isinstance(model.neighbours, str) else 0.0,
        by_angle=by_angle(summary, plan.n_features),
        search_components=search_components,
        contrast=contrast,
        power=rows.power,
        attraction=1.0 if stream else rows.attraction,  # a stream has no known end
        adversarial_every=max(1, round(1 / share)) if contrast else 1,
        epsilon=epsilon,
        xi=float(_or(model.xi, xi)),
        unit=unit,
        target_entropy=float(_or(model.target_entropy, math.log(model.n_prototypes) / 2)),
        warmup=warmup,
        whiten=_or(model.axes, recipe.axes) == "principal",
    )


def _or(given: Any, auto: Any) -> Any:
    return auto if isinstance(given, str) and given == "auto" else given
