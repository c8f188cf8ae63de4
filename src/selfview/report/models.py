"""The page of a fitted model: what the command line and `SelfView.report` have in common."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from selfview.data import Dataset
from selfview.data.labels import read_labels
from selfview.data.table_files import as_text
from selfview.data.tables import TableFilePreparation
from selfview.errors import InputError
from selfview.report.contents import scale_of
from selfview.report.facts import Records
from selfview.report.run import report_of

if TYPE_CHECKING:
    from selfview.explain import Explanation
    from selfview.rows.base import Rows

BLOCK = 8192  # rows: all assignments of a million rows would take as much memory as the rows


def page_of(
    model: Any,
    dataset: Dataset,
    rows: "Rows",
    Z: NDArray[Any],
    *,
    records: Records | None = None,
    clusters: int | None = None,
    **options: Any,
) -> str:
    """The page of a fitted `SelfView` as one HTML text.

    `rows` and the embedding `Z` are those of the dataset; `records` tell of the fit, by default as
    the model knows it. `clusters` is their number, if not as many as the model's; `options` are
    those of `report_of`.
    """
    from selfview.rows.conversion import as_rows
    from selfview.rows.in_memory import RowRange

    def explain(index: NDArray[np.int64], labels: NDArray[np.int64]) -> "Explanation":
        found: Explanation = model.explain(as_rows(rows.pick(index)), by="cluster", labels=labels)
        in_units = model.preparation_ is not None  # the model made the rows, and knows their units
        return found if in_units else found.in_units(dataset.feature_names, scale_of(dataset))

    prototypes = np.concatenate(
        [
            model.predict_proba(RowRange(rows, start, min(start + BLOCK, rows.n))).argmax(axis=1)
            for start in range(0, rows.n, BLOCK)
        ]
    )
    return report_of(
        dataset,
        Z,
        prototypes,
        records=records or records_of_model(model),
        unit=columns_unit(model),
        clusters=model.clusters_ if clusters is None else clusters,
        explain=explain,
        **options,
    )


def columns_unit(model: Any) -> Any:
    """What the model divides each column by, or None if columns are of the same scale."""
    return None if isinstance(model.scale_, float) else model.scale_


def records_of_model(model: Any) -> Records:
    """What a model itself knows of its fit."""
    from selfview import __version__
    from selfview.saving.model_file import plain_parameters

    config = {
        "command": f"{' '.join(repr(model).split())}.fit(X)",
        "data": "passed from Python",
        "parameters": plain_parameters(model),
        "selfview": __version__,
    }
    metrics = {
        "epochs": model.epochs_,
        "decided": getattr(model, "decided_", {}),
        "seconds": model.history_[-1]["seconds"],
        "epsilon": model.epsilon_,
        "health": model.health_,
    }
    history = {name: [row[name] for row in model.history_] for name in model.history_[0]}
    return Records(config, metrics, history)


def dataset_of(
    name: str,
    X: Any,
    rows: "Rows",
    preparation: TableFilePreparation | None = None,
    *,
    labels: Any = None,
    groups: Any = None,
    ids: Any = None,
) -> Dataset:
    """A `Dataset` of rows that were passed from Python, with what is known of each."""
    given = {"labels": labels, "groups": groups, "ids": ids}
    known = {key: None if value is None else np.asarray(value) for key, value in given.items()}
    for key, values in known.items():
        if values is not None and values.shape[:1] != (rows.n,):
            raise InputError(
                f"{key} must have a value for each of the {rows.n} rows, got {values.shape}"
            )
    y, classes = _labels(known["labels"])
    return Dataset(
        name,
        _array(X, rows),
        y=y,
        classes=classes,
        groups=known["groups"],
        ids=known["ids"],
        source="Python",
        preparation=preparation,
    )


def preparation_of(model: Any) -> TableFilePreparation | None:
    """How the model makes rows of a data frame, as that of a file would."""
    names = tuple(map(str, getattr(model, "feature_names_in_", ())))
    how = model.preparation_
    table = None if how is None else how.table_.to_json()
    return TableFilePreparation(names, header=True, table=table) if names else None


def _array(X: Any, rows: "Rows") -> Any:
    if isinstance(X, np.ndarray):
        return X
    return csr_matrix(X) if hasattr(X, "tocsr") else rows.take(slice(0, rows.n)).numpy()


def _labels(values: NDArray[Any] | None) -> tuple[NDArray[Any] | None, tuple[str, ...]]:
    """Numbers as they are; of names, codes and the names of the classes."""
    if values is None or values.dtype.kind in "iuf":
        return values, ()
    return read_labels([as_text(value) for value in values.tolist()])
