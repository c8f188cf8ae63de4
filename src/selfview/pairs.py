"""The two views of every row of a batch: two steps from it, or a step and one of its neighbours."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from selfview.neighbours import Neighbours
from selfview.networks.encoders import EncoderHead, scale_of
from selfview.networks.forward import constant
from selfview.training.loop import Step
from selfview.views import (
    adversarial_perturbation,
    frozen_batch_norm_stats,
    moved,
    random_perturbation,
)

# How each of the two views is made.
VIEWS = {
    "adversarial": ("adversarial", "adversarial"),
    "random": ("random", "random"),
    "random+adversarial": ("random", "adversarial"),
    "none": ("none", "none"),
}


@dataclass(frozen=True)
class Pairs:
    """How views are made: as one of `VIEWS`, the second from `neighbours` if there are any."""

    views: str
    xi: Callable[[EncoderHead], float]  # length of a random step, in the unit of epsilon
    neighbours: Neighbours | None
    length: float = 1.0  # of the unit of epsilon, in the rows that the network sees
    share: float = 1.0  # of the steps in which views are made; else a view is the row itself

    def of(self, step: Step, network: EncoderHead) -> Tensor:
        """(2 * batch, *shape): the two views of every row, together."""
        x = step.batch
        kinds = VIEWS[self.views][: 1 if self.neighbours else 2]
        if not self._made_in(step.number):
            kinds = ("none",) * len(kinds)
        views = [x.unsqueeze(1)] * kinds.count("none")
        xi, scale = self.length * self.xi(network), scale_of(network.encoder)
        unit = scale if scale.ndim else None  # of the columns, if lengths are counted in them
        for _ in range(kinds.count("random")):
            views.append(moved(x, random_perturbation(x, xi, step.generator, step.share), unit))
        if count := kinds.count("adversarial"):
            with frozen_batch_norm_stats(network), constant(network.layers):
                with torch.no_grad():
                    p = torch.softmax(network(x).float(), dim=1)
                steps = adversarial_perturbation(
                    partial(network, parts=count),
                    x,
                    p,
                    epsilon=self.length * float(network.epsilon),
                    xi=xi,
                    generator=step.generator,
                    share=step.share,
                    count=count,
                    unit=unit,
                )
            views.append(moved(x, steps))
        if self.neighbours:
            views.append(self.neighbours.draw(step).unsqueeze(1))
        return torch.cat(views, 1).flatten(0, 1)

    def _made_in(self, number: int) -> bool:
        return math.floor((number + 1) * self.share) > math.floor(number * self.share)
