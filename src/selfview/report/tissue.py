"""Rows that are pixels of a larger image: their places, colours and mean spectra."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from selfview.data import Dataset
from selfview.report.cluster_tree import ClusterTree
from selfview.report.columns import Column
from selfview.report.contents import axis_of, scale_of
from selfview.report.plane import principal

MOST_REGIONS = 24  # of a column that can be clicked
MOST_POINTS = 4096  # of a mean spectrum
_EMPTY = 40  # pixels a row, above which an image is mostly gaps
_ROUNDED = 4  # pixels a row of an image whose rows follow no grid


@dataclass(frozen=True)
class Tissue:
    """Pixel places, the embedding as red, green and blue, and the mean spectra of regions."""

    width: int
    height: int
    origin: tuple[int, int] | None  # coordinates of the first column and line, if none is left out
    places: NDArray[np.uint16]  # (n, 2): column, line
    rgb: NDArray[np.uint8]  # (n, 3)
    axis: NDArray[np.float32]
    axis_title: str
    mean: NDArray[np.float32]
    regions: dict[str, NDArray[np.float32]]  # column's name: (categories or parts, points)


def tissue_of(
    dataset: Dataset, Z: NDArray[Any], columns: list[Column], tree: ClusterTree
) -> Tissue | None:
    """The image that the rows make, or None if they have no coordinates."""
    if dataset.coordinates is None:
        return None
    places, origin = _places(np.asarray(dataset.coordinates))
    width, height = (int(side) + 1 for side in places.max(axis=0))
    axis, title = axis_of(dataset)
    X = dataset.X if issparse(dataset.X) else np.asarray(dataset.X).reshape(len(dataset), -1)
    order = np.argsort(axis, kind="stable")
    points = min(len(axis), MOST_POINTS)
    starts = np.arange(points) * len(axis) // points
    scale = scale_of(dataset)

    def spectrum(rows: Any) -> NDArray[np.float32]:
        group: Any = X[rows]
        if group.shape[0] == 0:
            return np.zeros(points, np.float32)
        mean = np.asarray(group.mean(axis=0, dtype=np.float64)).ravel() * scale
        return np.maximum.reduceat(mean[order], starts).astype(np.float32)

    regions = {}
    for column in columns:
        if column.name == "cluster":  # of every part: readers change the number of clusters
            members = [tree.rows(part) for part in range(len(tree.parts))]
        elif column.codes is not None and len(column.names) <= MOST_REGIONS:
            members = [np.flatnonzero(column.codes == i) for i in range(len(column.names))]
        else:
            continue
        regions[column.name] = np.stack([spectrum(rows) for rows in members])
    return Tissue(
        width, height, origin, places.astype(np.uint16), _colours(Z),
        axis[order][starts].astype(np.float32), title, spectrum(slice(None)), regions,
    )  # fmt: skip


def scatter(dataset: Dataset) -> Callable[[NDArray[np.int64]], NDArray[np.float64]] | None:
    """What tells how much regions are scattered among each other; None if rows are no pixels.

    Kinds of cells may well stand among each other, so places that are no pixels don't count.
    It takes the region of every row, numbered from 0, and gives (regions, regions): the number of
    neighbouring pixels of which one is in each of the two, over the number if the pixels of the two
    were in random order.
    """
    if dataset.coordinates is None:
        return None
    places, origin = _places(np.asarray(dataset.coordinates))
    if origin is None:
        return None
    width, height = places.max(axis=0) + 1
    row_at = np.full((width, height), -1)
    row_at[places[:, 0], places[:, 1]] = np.arange(len(places))
    sides = [(row_at[1:], row_at[:-1]), (row_at[:, 1:], row_at[:, :-1])]
    one, other = (np.concatenate([side[i].ravel() for side in sides]) for i in (0, 1))
    there = (one >= 0) & (other >= 0)
    one, other = one[there], other[there]

    def scattered(codes: NDArray[np.int64]) -> NDArray[np.float64]:
        count = int(codes.max()) + 1
        edges = np.zeros((count, count))
        np.add.at(edges, (codes[one], codes[other]), 1)
        own, between = edges.diagonal(), edges + edges.T
        ends = 2 * own[:, None] + between  # of the two regions' edges, those in the first
        total = own[:, None] + own + between
        chance = np.divide(ends * ends.T, 2 * total, out=np.zeros_like(total), where=total > 0)
        return np.divide(between, chance, out=np.zeros_like(chance), where=chance > 0)

    return scattered


def _places(coordinates: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[int, int] | None]:
    """Places from 0 in an image of few gaps.

    Where whole-numbered places leave more gaps than pixels, lines and columns are numbered instead.
    Places that follow no grid, as those of cells, are rounded to one of four pixels a row.
    """
    low = coordinates.min(axis=0)
    places = coordinates - low
    room = max(_EMPTY * len(places), 10_000)
    if np.array_equal(places, np.rint(places)):
        size = places.max(axis=0) + 1
        if size.prod() <= room and size.max() < 2**16:
            return places.astype(np.int64), (int(low[0]), int(low[1]))
    ranks = [np.unique(places[:, i], return_inverse=True)[1] for i in range(2)]
    if np.prod([rank.max() + 1.0 for rank in ranks]) <= room:
        return np.stack(ranks, axis=1).astype(np.int64), None
    side = np.sqrt(np.prod(np.ptp(places, axis=0).astype(np.float64)) / (_ROUNDED * len(places)))
    return np.rint(places / side).astype(np.int64), None


def _colours(Z: NDArray[Any]) -> NDArray[np.uint8]:
    """The first three principal components as red, green and blue, the outer 1% cut."""
    parts, _ = principal(np.asarray(Z, dtype=np.float64), 3)
    low, high = np.percentile(parts, [1, 99], axis=0)
    span = np.where(high > low, high - low, 1)
    return np.asarray(np.rint(255 * np.clip((parts - low) / span, 0, 1)), dtype=np.uint8)
