"""`report_of`: the page of a run, from its records, its rows and their embedding."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.clusters import Clusters, find_clusters
from selfview.data import Dataset
from selfview.errors import InputError, SelfViewError
from selfview.report import facts, payload
from selfview.report.cluster_cards import Explain, describe_clusters
from selfview.report.cluster_tree import ClusterTree, cluster_tree
from selfview.report.columns import Column, columns_of, table_columns
from selfview.report.contents import content_of
from selfview.report.features import Features, features_of
from selfview.report.page import render
from selfview.report.plane import Plane, lay_out, principal
from selfview.report.scores import Scores, mixing_table, score_table
from selfview.report.tissue import Tissue, scatter, tissue_of

MOST_ROWS = 100_000
NEIGHBOUR_DIMS = 32  # more are reduced, so that a page can look for neighbours itself


def report_of(
    dataset: Dataset,
    Z: NDArray[Any],
    prototypes: NDArray[Any],
    *,
    records: facts.Records,
    unit: NDArray[Any] | None = None,
    layout: str = "auto",
    clusters: int | Clusters | None = None,
    explain: Explain | None = None,
    scores: Scores | None = None,
    mixing: Scores | None = None,
    seed: int = 0,
) -> str:
    """The page of a run as one HTML text that needs nothing beside it.

    `Z` is the embedding of the dataset's rows, and `prototypes` the likeliest prototype of each.
    `records` tell of the fit. `unit` is what the model divides each column by, if columns are of
    different scale. `layout` is "auto", "tsne" or "pca". `clusters` are those of the model, their
    number, or None for as many as are found. `explain` tells their leading features. `scores`,
    and `mixing` of the groups, are those that are known already.
    """
    n = len(dataset)
    if not (len(Z) == len(prototypes) == n):
        raise InputError(f"{n} rows need as many embeddings and prototypes, got {len(Z)} and "
                         f"{len(prototypes)}")  # fmt: skip
    if isinstance(clusters, int) and not 1 <= clusters <= n:
        raise InputError(f"clusters must be between 1 and the {n} rows, got {clusters}")
    if not np.isfinite(Z).all():
        raise InputError("the embedding is not finite, there is no map of it")
    notes: list[str] = []
    if n > MOST_ROWS:
        rows = np.sort(np.random.default_rng(seed).choice(n, MOST_ROWS, replace=False))
        dataset, Z, prototypes = dataset.take(rows), Z[rows], prototypes[rows]
        notes.append(f"{MOST_ROWS:,} of the {n:,} rows are shown, drawn at random.")
        explain = None if explain is None else _of_rows(explain, rows)
    found = clusters if isinstance(clusters, Clusters) else find_clusters(Z, clusters, seed)
    tree = cluster_tree(found, Z, seed, scatter(dataset))
    cluster = _column(tree)
    own, left_out = table_columns(dataset)
    columns = [*columns_of(dataset, cluster, prototypes), *own]
    plane = lay_out(Z, layout, seed)
    content = content_of(dataset)
    features = None if own else features_of(dataset, np.asarray(cluster.codes))
    tissue = tissue_of(dataset, Z, columns, tree)
    notes += [plane.note, *content.notes, *left_out, *(features.notes if features else ())]
    drawn, arrays = _drawn(dataset, Z, columns, plane, features, tissue, notes)
    cards, cluster_arrays = describe_clusters(dataset, Z, tree, explain, seed)
    known = [(n_, *facts.CURVES[n_]) for n_ in facts.CURVES if n_ in records.history]
    shown: dict[str, Any] = {
        "n": len(dataset),
        "content": {"kinds": content.kinds, **content.facts},
        "history": records.history,
        "curves": known,
        "clusters": cards,
        **drawn,
    }
    return render(
        name=dataset.name,
        rows=n,
        shape=" × ".join(map(str, dataset.shape)),
        records=records,
        health=facts.mapping(records.metrics.get("health")),
        health_lines=facts.health_lines(records),
        parameters=facts.parameter_lines(records, tree.found),
        options=[
            facts.Line("data", str(records.config.get("data", "unknown"))),
            *facts.lines_of(records.config, "options", "environment"),
        ],
        command=str(records.config.get("command", "")) or "unknown",
        curves=known,
        scores=scores or score_table(dataset, Z, unit, seed),
        mixing=mixing or _mixing(dataset, Z, unit, seed),
        dataset=dataset,
        columns=columns,
        dim=Z.shape[1],
        tissue=tissue,
        method=plane.method,
        notes=notes,
        has=content.kinds,
        number=facts.number,
        duration=facts.time_spent,
        found=tree.found,
        shown=tree.shown,
        explained=explain is not None,
        pictured="clusterPictures" in cluster_arrays,
        most=len(tree.levels),
        payload=payload.pack(shown, arrays | content.arrays | cluster_arrays),
    )


def _column(tree: ClusterTree) -> Column:
    names = tuple(tree.parts[part].name for part in tree.levels[tree.shown - 1])
    return Column("cluster", tree.codes(tree.shown).astype(np.uint16), names)


def _of_rows(explain: Explain, rows: NDArray[np.int64]) -> Explain:
    """What explains these rows only, by their numbers among themselves."""
    return lambda index, labels: explain(rows[index], labels)


def _mixing(
    dataset: Dataset, Z: NDArray[Any], unit: NDArray[Any] | None, seed: int
) -> Scores | None:
    """How groups mix; None if there are none, or it can't be measured."""
    try:
        return mixing_table(dataset, Z, unit, seed)
    except SelfViewError:  # a row without a group, or no openTSNE: the page does without
        return None


def _named(dataset: Dataset, tissue: Tissue) -> bool:
    """Whether every point of a spectrum is a feature with a name of its own, as a gene is."""
    each = len(tissue.axis) == len(dataset.feature_names)
    return each and tissue.axis_title != "m/z" and dataset.preparation is not None


def _drawn(
    dataset: Dataset,
    Z: NDArray[Any],
    columns: list[Column],
    plane: Plane,
    features: Features | None,
    tissue: Tissue | None,
    notes: list[str],
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What the scripts draw: facts, and arrays of few bytes."""
    arrays: dict[str, NDArray[Any]] = {}
    centred = plane.points - plane.points.min(axis=0)
    side = float(centred.max()) or 1.0  # one scale for both axes
    arrays["points"] = np.rint(centred / side * 65535).astype(np.uint16)
    near = np.asarray(Z, dtype=np.float64)
    if near.shape[1] > NEIGHBOUR_DIMS:
        near, share = principal(near, NEIGHBOUR_DIMS)
        notes.append(f"Neighbours are those in the first {NEIGHBOUR_DIMS} principal components "
                     f"of the embedding, which hold {share:.1%} of it.")  # fmt: skip
    arrays["embedding"] = near.astype(np.float32)
    described = []
    for i, column in enumerate(columns):
        about: dict[str, Any] = {"name": column.name, "group": column.group}
        if column.codes is not None:
            arrays[f"column{i}"] = column.codes
            about["names"] = column.names
        else:
            assert column.values is not None
            arrays[f"column{i}"] = column.values.astype(np.float32)
            about["date"] = column.date
        described.append(about)
    ids = None if dataset.ids is None else [str(value) for value in dataset.ids]
    drawn: dict[str, Any] = {"columns": described, "ids": ids, "method": plane.method}
    if features is not None:
        arrays |= {
            "features": features.codes,
            "featureLow": features.low,
            "featureHigh": features.high,
            "featurePositions": features.positions,
        }
        drawn["features"] = features.names
    if tissue is not None:
        arrays |= {"places": tissue.places, "rgb": tissue.rgb, "tissueAxis": tissue.axis}
        arrays |= {"tissueMean": tissue.mean}
        arrays |= {f"region {name}": spectra for name, spectra in tissue.regions.items()}
        drawn["tissue"] = {
            "width": tissue.width,
            "height": tissue.height,
            "origin": tissue.origin,
            "axis": tissue.axis_title,
            "regions": list(tissue.regions),
            "names": dataset.feature_names if _named(dataset, tissue) else (),
        }
    return drawn, arrays
