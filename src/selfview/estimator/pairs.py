"""The two views of every row of a batch: perturbations of it, or the row and a neighbour."""

from functools import partial

import torch
from torch import Tensor

from selfview.estimator.recipes import Settings
from selfview.neighbours.precomputed import LinkedNeighbours
from selfview.neighbours.search import Neighbours
from selfview.networks.encoders import EncoderHead, scale_of
from selfview.networks.forward import without_weight_grad
from selfview.training.loop import Step
from selfview.views import (
    VIEWS,
    adversarial_perturbation,
    frozen_batch_norm_stats,
    moved,
    random_perturbation,
)


def two_views(
    step: Step,
    network: EncoderHead,
    views: str,
    settings: Settings,
    neighbours: Neighbours | LinkedNeighbours | None,
) -> Tensor:
    """(2 * batch, *shape): the two views of every row, one after the other.

    Parameters
    ----------
    step : Step
    network : EncoderHead
        Whose prediction an adversarial view changes most.
    views : one of `VIEWS`
    settings : Settings
        Lengths of perturbations.
    neighbours : Neighbours, LinkedNeighbours or None
        Where the second view comes from, if there are any.
    """
    x = step.batch
    kinds = VIEWS[views][: 1 if neighbours else 2]
    found = [x.unsqueeze(1)] * kinds.count("none")
    xi, epsilon = settings.unit * settings.xi, settings.unit * float(network.epsilon)
    scale = scale_of(network.encoder)
    unit = scale if scale.ndim else None  # of the columns, if lengths are counted in them
    for _ in range(kinds.count("random")):
        found.append(moved(x, random_perturbation(x, xi, step.generator, step.shard), unit))
    if count := kinds.count("adversarial"):
        with frozen_batch_norm_stats(network), without_weight_grad(network.layers):
            with torch.no_grad():
                p = torch.softmax(network(x).float(), dim=1)
            perturbations = adversarial_perturbation(
                partial(network, parts=count),
                x,
                p,
                epsilon=epsilon,
                xi=xi,
                generator=step.generator,
                shard=step.shard,
                count=count,
                unit=unit,
            )
        found.append(moved(x, perturbations))
    if neighbours:
        # The first draw searches all rows, whose distances need more digits than bfloat16 has.
        with torch.autocast(x.device.type, enabled=False):
            found.append(neighbours.draw(step).unsqueeze(1))
    return torch.cat(found, 1).flatten(0, 1)
