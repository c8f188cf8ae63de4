"""Approximate nearest neighbours by Faiss's inverted file: the engine of the extra `ann`.

Points come in parts, three times: a sample finds the cells by k-means, all go into the index, all
are looked up. What is held is the index: a point in float32, or in a byte for each component where
float32 would take more than `FLOAT_BYTES`. An inverted file is the same for the same number of
threads; `benchmarks/neighbours.py` compares it with graphs (HNSW) and other engines.
"""

import importlib.util
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

CELLS = 4.0  # times sqrt(n)
POINTS_A_CELL = 40  # of the sample that k-means sees
ROUNDS = 8  # of k-means
PROBES = 24  # cells that are looked through
FLOAT_BYTES = 1 << 29  # of points in float32: 512 MiB, 2.7 million rows of 50 components
SEED = 1234

Parts = Callable[[], Iterable[Tensor]]  # all points in order, some at a time: (rows, components)


def installed() -> bool:
    return importlib.util.find_spec("faiss") is not None


def nearest(parts: Parts, n: int, count: int, first: int | None = None) -> NDArray[np.int32]:
    """Numbers of about the `count` nearest points of each: (n, count), or (first, count)."""
    return looked_up(index_of(parts, n), parts, count, range(n if first is None else first))


def index_of(parts: Parts, n: int) -> Any:
    """An index of all `n` points."""
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    cells = max(1, min(n // POINTS_A_CELL, int(CELLS * math.sqrt(n))))
    sample = _sample(parts, n, cells * POINTS_A_CELL)
    dim = sample.shape[1]
    quantiser = faiss.IndexFlatL2(dim)
    index: Any
    if 4 * n * dim <= FLOAT_BYTES:
        index = faiss.IndexIVFFlat(quantiser, dim, cells)
    else:
        kind = faiss.ScalarQuantizer.QT_8bit
        index = faiss.IndexIVFScalarQuantizer(quantiser, dim, cells, kind, faiss.METRIC_L2)
    index.cp.niter, index.cp.seed, index.cp.min_points_per_centroid = ROUNDS, SEED, 1
    index.train(sample)
    for part in parts():
        index.add(_array(part))
    index.nprobe = PROBES
    return index


def looked_up(index: Any, parts: Parts, count: int, asked: range) -> NDArray[np.int32]:
    """Numbers of the points that `index` holds nearest to those `asked` for, without themselves."""
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    found = np.empty((len(asked), count), np.int32)
    for start, part in _placed(parts):
        a, b = max(start, asked.start), min(start + len(part), asked.stop)
        if a < b:
            near = _search(index, _array(part[a - start : b - start]), count + 1)
            found[a - asked.start : b - asked.start] = _others(near, np.arange(a, b), index.ntotal)
    return found


def packed(index: Any) -> NDArray[np.uint8]:
    """The index as bytes, for another process."""
    import faiss

    data: NDArray[np.uint8] = faiss.serialize_index(index)
    return data


def unpacked(data: NDArray[np.uint8]) -> Any:
    import faiss

    return faiss.deserialize_index(data)


def _search(index: Any, points: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Numbers of the nearest to each, nearest first: (points, count).

    Points are looked up in the order of their cells, which then stay in the processor's cache:
    twice as fast.
    """
    order = np.argsort(index.quantizer.search(points, 1)[1][:, 0], kind="stable")
    near = np.empty((len(points), count), np.int64)
    near[order] = index.search(points[order], count)[1]
    return near


def _others(near: NDArray[np.int64], own: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """All but one of the numbers found for each row: its own, or else the farthest, goes."""
    near = near.copy()
    count = near.shape[1] - 1
    # Few points in the cells searched: any others stand for those not found.
    rows, places = np.nonzero(near < 0)
    near[rows, places] = (own[rows] + 1 + places) % n
    itself = near == own[:, None]
    itself[~itself.any(1), count] = True
    itself &= itself.cumsum(1) == 1
    others: NDArray[np.int64] = near[~itself].reshape(-1, count)
    return others


def _sample(parts: Parts, n: int, size: int) -> NDArray[np.float32]:
    """Some of the points, from all over: k-means sees them in the order of their numbers."""
    chosen = np.sort(np.random.default_rng(0).permutation(n)[:size])
    found = []
    for start, part in _placed(parts):
        a, b = np.searchsorted(chosen, [start, start + len(part)])
        found.append(part[torch.from_numpy(chosen[a:b] - start)])
    return _array(torch.cat(found))


def _placed(parts: Parts) -> Iterator[tuple[int, Tensor]]:
    """Each part with its first row's number."""
    start = 0
    for part in parts():
        yield start, part
        start += len(part)


def _array(part: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = np.ascontiguousarray(part.numpy(), np.float32)
    return array
