"""The page of a comparison: its table, and a map of every embedding side by side."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.report import payload
from selfview.report.columns import Column, label_column
from selfview.report.comparison import Table
from selfview.report.page import filled
from selfview.report.plane import lay_out, principal

MOST_ROWS = 2_000  # drawn at random, the same for all: a t-SNE of each embedding takes seconds
RAW_DIMS = 50  # principal components of raw features that t-SNE gets
SCRIPTS = ("payload.js", "theme.js", "tables.js", "compare.js")


def comparison_page(
    name: str,
    table: Table,
    embeddings: Mapping[str, Any],
    labels: Any = None,
    classes: tuple[str, ...] = (),
    ids: Any = None,
    *,
    seed: int = 0,
) -> str:
    """One HTML text that needs nothing beside it.

    `embeddings` are (n, dim) by the title of their method; an embedding of two dimensions is shown
    as it is, others by t-SNE, or by PCA where openTSNE isn't installed. Rows are coloured by
    `labels`, class codes or measurements, and named by `ids`.
    """
    n = next(int(Z.shape[0]) for Z in embeddings.values())
    rows = np.sort(np.random.default_rng(seed).permutation(n)[:MOST_ROWS])
    arrays: dict[str, NDArray[Any]] = {}
    methods: list[str] = []
    for number, Z in enumerate(embeddings.values()):
        points, method = _plane(Z[rows], seed)
        low, high = points.min(axis=0), points.max(axis=0)
        span = float((high - low).max()) or 1.0
        centred = (points - (low + high) / 2) / span + 0.5  # one scale for both axes
        arrays[f"points{number}"] = np.rint(centred * 65535).clip(0, 65535).astype(np.uint16)
        methods.append(method)
    colour = Column("", values=None) if labels is None else label_column(labels[rows], classes)
    if colour.codes is not None:
        arrays["codes"] = colour.codes
    elif colour.values is not None:
        arrays["values"] = colour.values.astype(np.float32)
    facts = {
        "n": len(rows),
        "titles": list(embeddings),
        "names": list(colour.names),
        "ids": [f"row {row}" if ids is None else str(ids[row]) for row in rows],
    }
    return filled(
        "compare.html",
        SCRIPTS,
        name=name,
        table=table,
        maps=list(zip(embeddings, methods, strict=True)),
        rows=n,
        shown=len(rows),
        payload=payload.pack(facts, arrays),
    )


def _plane(Z: Any, seed: int) -> tuple[NDArray[np.float64], str]:
    dense = np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64)
    dense = dense.reshape(Z.shape[0], -1)
    if dense.shape[1] == 2:
        return dense, "as it is"
    if dense.shape[1] > RAW_DIMS:
        dense = _components(dense)
    plane = lay_out(dense, "auto", seed)
    return plane.points, plane.method


def _components(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first principal components, by the smaller of the two matrices of products."""
    if rows.shape[1] <= rows.shape[0]:
        return principal(rows, RAW_DIMS)[0]
    centred = rows - rows.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred @ centred.T)
    return np.asarray(left[:, :RAW_DIMS] * np.sqrt(sizes[:RAW_DIMS]))
