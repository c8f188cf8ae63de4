"""Recipes: the values that parameters take when they are left at "auto"."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from selfview.training import cosine_rate, dropping_rate

SCHEDULES = {"drop": dropping_rate, "cosine": cosine_rate}


@dataclass(frozen=True)
class Recipe:
    """A set of values that belong together."""

    learning_rate: float
    schedule: str  # of the learning rate
    neighbours: int  # nearest rows that the second view is drawn from; 0 for a step like the first
    dense_ratio: float  # epsilon over the mean row norm
    text_ratio: float  # the same for tf-idf-like rows
    xi: float | None  # length of the probe; None is epsilon
    contrast: float  # weight of telling neighbours from other rows
    images: str  # the encoder for images

    def rate(
        self, learning_rate: str | float, schedule: str, epochs: int
    ) -> Callable[[float], float]:
        """Learning rate as a function of the epoch; what isn't "auto" wins over the recipe."""
        shape = SCHEDULES[self.schedule if schedule == "auto" else schedule]
        highest = self.learning_rate if learning_rate == "auto" else float(learning_rate)
        return shape(highest, epochs)


RECIPES = {
    "paper": Recipe(
        learning_rate=5e-4,
        schedule="drop",
        neighbours=0,
        dense_ratio=1 / 5,
        text_ratio=20 / math.sqrt(2000),
        xi=10.0,
        contrast=0.0,
        images="cnn",
    ),
    # Neighbours differ from a row as rows do, steps where the model is weakest; to tell neighbours
    # from other rows gives distances in the embedding a meaning; a higher rate, shorter steps and
    # fewer filters suit budgets of minutes. Measured by benchmarks/quality.py.
    "selfview": Recipe(
        learning_rate=2e-3,
        schedule="cosine",
        neighbours=10,
        dense_ratio=1 / 10,
        text_ratio=1 / 10,
        xi=None,
        contrast=1.0,
        images="small-cnn",
    ),
}
