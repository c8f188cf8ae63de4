"""Neighbours that users pass: an array of row numbers, or a sparse graph between the rows."""

import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from selfview.errors import InputError, SelfViewWarning
from selfview.training.loop import Step


@dataclass(frozen=True, eq=False)
class LinkedRows:
    """The neighbours of every row: those of row i are ``rows[starts[i] : starts[i + 1]]``.

    Examples
    --------
    >>> links = linked_rows(np.array([[0, 2], [1, 0], [1, -1]]), n=3)
    >>> [links.of(row).tolist() for row in range(3)]
    [[2], [0], [1]]
    """

    starts: NDArray[np.int64]  # (n + 1,)
    rows: NDArray[np.int64]
    ranked: bool  # nearest first

    def of(self, row: int) -> NDArray[np.int64]:
        return self.rows[self.starts[row] : self.starts[row + 1]]

    def pairs(self, most: int, seed: int) -> NDArray[np.intp]:
        """Numbers of linked rows, two by two, at most so many pairs; no row is in two of them."""
        random, used, found = np.random.default_rng(seed), set[int](), list[int]()
        for row in random.permutation(len(self.starts) - 1).tolist():
            free = [j for j in self.of(row).tolist() if j not in used]
            if row in used or not free or len(found) >= 2 * most:
                continue
            pair = (row, free[0] if self.ranked else int(random.choice(free)))
            used.update(pair)
            found.extend(pair)
        return np.array(found, np.intp)

    @property
    def checksum(self) -> int:
        return zlib.crc32(self.rows.tobytes(), zlib.crc32(self.starts.tobytes()))


class LinkedNeighbours:
    """Draws neighbours that users passed.

    Parameters
    ----------
    links : LinkedRows
    take : callable
        From row numbers to rows as a network takes them.
    """

    def __init__(self, links: LinkedRows, take: Callable[[NDArray[np.intp]], Tensor]) -> None:
        self.links, self.take = links, take

    def draw(self, step: Step) -> Tensor:
        """One neighbour of every row of the batch, or the row itself if it has none.

        Of k that are ranked it takes the one of rank ``floor(k * u ** 2)``, u uniform in [0, 1); of
        others any, with equal chance.
        """
        starts = self.links.starts[step.rows]
        counts = self.links.starts[np.asarray(step.rows) + 1] - starts
        options = dict(generator=step.generator, device=step.generator.device)
        chance = step.shard.draw(torch.rand, counts.shape, **options).cpu().numpy()
        place = (chance ** (2 if self.links.ranked else 1) * counts).astype(np.intp)
        chosen = np.where(counts > 0, 0, step.rows)
        linked = counts > 0
        chosen[linked] = self.links.rows[(starts + place)[linked]]
        return self.take(chosen.astype(np.intp))


def is_precomputed(neighbours: Any) -> bool:
    """Are these neighbours themselves, and not their number?"""
    return hasattr(neighbours, "shape") and len(neighbours.shape) == 2


def linked_rows(neighbours: Any, n: int) -> LinkedRows:
    """The links between `n` rows that an array or a graph holds; a row is never its own neighbour.

    Parameters
    ----------
    neighbours : array (n, k) of int, or sparse matrix (n, n)
        Numbers of each row's neighbours, nearest first, -1 where there are fewer; or a graph, of
        which every stored entry is a link, as `kneighbors_graph` and scanpy's connectivities are.
    n : int
    """
    if sparse.issparse(neighbours):
        i, j, ranked = *_links_of_graph(neighbours, n), False
    else:
        i, j, ranked = *_links_of_table(neighbours, n), True
    other = (i != j) & (j >= 0)
    i, j = i[other], j[other]
    counts = np.bincount(i, minlength=n)
    if alone := int((counts == 0).sum()):
        warnings.warn(
            f"{alone:,} of {n:,} rows have no neighbour in neighbours=: their second view is the "
            "row itself",
            SelfViewWarning,
            stacklevel=2,
        )
    return LinkedRows(np.concatenate([[0], np.cumsum(counts)]), j, ranked)


def _links_of_graph(graph: Any, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if graph.shape != (n, n):
        raise InputError(
            f"neighbours must be a graph between the {n:,} rows, ({n}, {n}), got {graph.shape}"
        )
    entries = sparse.csr_array(graph).tocoo()  # in the order of rows
    return entries.coords[0].astype(np.int64), entries.coords[1].astype(np.int64)


def _links_of_table(table: Any, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    numbers = np.asarray(table)
    if numbers.dtype.kind not in "iu":
        raise InputError(
            "neighbours must hold row numbers, integers, got an array of "
            f"{numbers.dtype}; pass a matrix of distances or weights as a sparse graph"
        )
    if len(numbers) != n:
        raise InputError(
            f"neighbours must have a row for each of the {n:,} rows, got {len(numbers):,}"
        )
    if numbers.size and (numbers.min() < -1 or numbers.max() >= n):
        wrong = numbers.max() if numbers.max() >= n else numbers.min()
        raise InputError(f"neighbours must hold row numbers from 0 to {n - 1}, got {wrong}")
    of = np.repeat(np.arange(n), numbers.shape[1])
    return of, numbers.ravel().astype(np.int64)
