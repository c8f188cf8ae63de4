"""What a cluster is: its leading features, its most typical rows, and a picture of its features."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from selfview.data import Dataset
from selfview.data.audio import AudioPreparation
from selfview.errors import SelfViewError
from selfview.report.cluster_tree import ClusterTree
from selfview.report.contents import is_image

if TYPE_CHECKING:
    from selfview.explain import Explanation

EXPLAINED_ROWS = 32  # of each cluster
LEADING = 8  # features
TYPICAL = 6  # rows
MOST_PIXELS = 10_000  # of a picture of features

Explain = Callable[[NDArray[np.int64], NDArray[np.int64]], "Explanation"]
"""Explains the rows of these numbers by these clusters of them."""


@dataclass(frozen=True)
class Card:
    """A cluster for the page."""

    name: str
    slot: int  # its place in the palette
    size: int
    typical: tuple[int, ...]  # numbers of the rows nearest to its mean
    leading: tuple[tuple[str, float, float], ...] = ()  # feature, contribution, difference


def describe_clusters(
    dataset: Dataset, Z: NDArray[Any], tree: ClusterTree, explain: Explain | None, seed: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays for the page: a card for every part of the tree, and who is in it.

    If rows are images, there is a picture of contributions for each; 128 is none.
    """
    members = [tree.rows(part) for part in range(len(tree.parts))]
    explanation = None if explain is None else _explained(explain, members, seed)
    leading = [()] * len(members) if explanation is None else _leading(explanation, dataset)
    cards = [
        Card(part.name, part.slot, len(rows), _typical(Z, rows), tuple(features))
        for part, rows, features in zip(tree.parts, members, leading, strict=True)
    ]
    facts = {
        "found": tree.found,
        "shown": tree.shown,
        "levels": tree.levels,
        "cards": [asdict(c) for c in cards],
    }
    arrays: dict[str, NDArray[Any]] = {
        "clusterLeaf": tree.codes(len(tree.levels)).astype(np.uint16),
        "clusterCodes": tree.table().astype(np.uint16),
    }
    pictures = None if explanation is None else _pictures(explanation, dataset)
    return facts, arrays if pictures is None else arrays | {"clusterPictures": pictures}


def _typical(Z: NDArray[Any], rows: NDArray[np.int64]) -> tuple[int, ...]:
    part = np.asarray(Z[rows], np.float64)
    away = np.square(part - part.mean(axis=0)).sum(axis=1)
    return tuple(int(row) for row in rows[np.argsort(away, kind="stable")[:TYPICAL]])


def _explained(
    explain: Explain, members: list[NDArray[np.int64]], seed: int
) -> "Explanation | None":
    random = np.random.default_rng(seed)
    drawn = [np.sort(random.permutation(rows)[:EXPLAINED_ROWS]) for rows in members]
    labels = np.repeat(np.arange(len(drawn)), [len(rows) for rows in drawn])
    try:
        return explain(np.concatenate(drawn), labels)
    except SelfViewError:  # one row is its own mean, and has nothing to be compared with
        return None


def _leading(explanation: "Explanation", dataset: Dataset) -> list[list[tuple[str, float, float]]]:
    names = dataset.feature_names
    order = np.argsort(-np.abs(explanation.contributions), axis=1, kind="stable")[:, :LEADING]
    return [
        [
            (names[f], float(explanation.contributions[i, f]), float(explanation.differences[i, f]))
            for f in chosen
            if explanation.contributions[i, f]
        ]
        for i, chosen in enumerate(order)
    ]


def _pictures(explanation: "Explanation", dataset: Dataset) -> NDArray[np.uint8] | None:
    """Contributions of pixels in bytes, the largest of each part 1 or 255; channels are summed."""
    if not is_image(dataset) or np.prod(dataset.shape) > MOST_PIXELS:
        return None
    values = explanation.contributions.reshape(-1, *dataset.shape).astype(np.float64)
    if isinstance(dataset.preparation, AudioPreparation):  # as recordings are drawn
        values = values[:, :, ::-1].swapaxes(1, 2)
    if values.ndim == 4:
        values = values.sum(axis=1)
    largest = np.abs(values).max(axis=(1, 2), keepdims=True)
    scaled = np.divide(values, largest, out=np.zeros_like(values), where=largest > 0)
    return np.asarray(np.rint(128 + 127 * scaled), np.uint8)
