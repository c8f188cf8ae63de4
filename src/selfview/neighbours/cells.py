"""Approximate nearest neighbours in PyTorch alone: an inverted file, where no engine is installed.

Points are sorted into about sqrt(n) cells, and looked for in the cells around their own. All points
are in memory.
"""

import math
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CELLS_SEARCHED = 24  # around a row's own: of MNIST's nearest 15 rows 96 % are found
CELL_ROUNDS = 6  # of k-means, that finds the cells
CELL_SAMPLE = 20_000  # rows from which it does
BLOCK = 1024  # rows that are looked up at a time


def nearest(points: Tensor, count: int, first: int | None = None) -> NDArray[np.int32]:
    """Numbers of about the `count` nearest points of each: (n, count), or (first, count)."""
    n = len(points)
    asked = n if first is None else first
    found = torch.empty(asked, count, dtype=torch.int32)
    everything = torch.arange(n)
    for own, around in _cells(points):
        own = own[own < asked]
        candidates = around if len(around) > count else everything
        for part in torch.split(own, BLOCK):
            found[part] = among(points, part, candidates, count)
    return found.numpy()


def among(points: Tensor, part: Tensor, candidates: Tensor, count: int) -> Tensor:
    """The `candidates` nearest to each point of `part`, without itself."""
    there = points[candidates]
    # Squared distances, but for the square of the point itself, which orders nothing.
    distances = torch.addmm(there.square().sum(1), points[part], there.T, alpha=-2)
    distances.masked_fill_(candidates == part[:, None], math.inf)
    return candidates[distances.topk(count, largest=False).indices].int()


def _cells(points: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Every cell's points, and those of the cells around it with its own."""
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(points), generator=generator)
    centres, sample = points[order[: math.isqrt(len(points))]], points[order[:CELL_SAMPLE]]
    for _ in range(CELL_ROUNDS):
        cell = _nearest_centre(sample, centres)
        sums = torch.zeros_like(centres).index_add_(0, cell, sample)
        sizes = torch.bincount(cell, minlength=len(centres))[:, None]
        centres = torch.where(sizes > 0, sums / sizes.clamp_min(1), centres)
    cell = torch.cat([_nearest_centre(part, centres) for part in torch.split(points, 8 * BLOCK)])
    by_cell = cell.argsort()
    starts = torch.searchsorted(cell[by_cell], torch.arange(len(centres) + 1)).tolist()
    members = [by_cell[a:b] for a, b in pairwise(starts)]
    around = torch.cdist(centres, centres).topk(min(len(centres), CELLS_SEARCHED), largest=False)
    return [
        (own, torch.cat([members[i] for i in near]))
        for own, near in zip(members, around.indices.tolist(), strict=True)
        if len(own)
    ]


def _nearest_centre(points: Tensor, centres: Tensor) -> Tensor:
    return torch.addmm(centres.square().sum(1), points, centres.T, alpha=-2).argmin(1)
