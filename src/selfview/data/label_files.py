"""Files that hold a value for each row: labels, or the parts of a split."""

from pathlib import Path

import numpy as np

from selfview.data.array_files import npz_array, npz_names
from selfview.data.dataset import Array
from selfview.data.folders import kind_of
from selfview.data.guard import reading, regular_file, report_bad_rows
from selfview.data.labels import as_numbers, read_labels
from selfview.data.table_rows import read_rows
from selfview.data.tables import TABLES, existing_column, open_table
from selfview.errors import FileFormatError, InputError


def side_values(path: Path, column: str | None = None, sheet: str | None = None) -> Array:
    """A value for each row out of a file: numbers, or texts without blanks around them.

    Parameters
    ----------
    path : Path
        An array, a table, or a text file with a value on each line.
    column : str or None, default None
        The column of a table; not needed if it has only one, or if all hold numbers.
    sheet : str or None, default None
        The sheet of an .xlsx file; None: the first that holds a table.
    """
    kind = kind_of(path)
    if kind in TABLES:
        return _of_table(path, column, sheet)
    if column is not None:
        raise InputError(f"{path} has no named columns, and so no {column!r}")
    if kind == ".gz":
        raise InputError(f"{path} is packed: unpack it first")
    path = regular_file(path)
    if kind == ".npz":
        names = npz_names(path)
        if len(names) != 1:
            held = ", ".join(names) or "none"
            raise FileFormatError(f"{path} must hold one array, not {held}; save one as .npy")
        return npz_array(path, names[0], text=True)
    with reading(path, "a list of values"):
        if kind == ".npy":
            with path.open("rb") as stream:
                array = np.load(stream, allow_pickle=False)
            if not isinstance(array, np.ndarray):
                raise ValueError("it is not a .npy file")
            return array
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        if any("\0" in line for line in lines):
            raise ValueError("it is neither .npy, .npz, .csv, .tsv, .parquet nor text")
        return np.array([line.strip() for line in lines])


def labels_of_file(
    path: Path, column: str | None = None, sheet: str | None = None
) -> tuple[Array, tuple[str, ...]]:
    """The labels in a file of labels, and the names of the classes; see `read_labels`."""
    values = side_values(path, column, sheet)
    if values.dtype.kind != "U":
        return values, ()
    labels, names = read_labels(values.tolist())
    if labels is None:
        raise InputError(f"{path} holds no labels")
    return labels, names


def _of_table(path: Path, column: str | None, sheet: str | None) -> Array:
    table = open_table(path, None, () if column is None else (column,), sheet)
    own = [c for c in table.columns if c not in table.index]
    if column is not None:
        own = [existing_column(table, column, "label")]
    found = read_rows(table, (), own)
    report_bad_rows(path, found.bad, found.total, skip_bad=False, remedy="Mend them")
    if len(own) == 1:
        return np.char.strip(found.aside[own[0]])
    numbers = []
    for name in own:
        numbers.append(as_numbers(np.char.strip(found.aside[name]).tolist()))
        if numbers[-1] is None:
            raise InputError(
                f"{path}: column {name!r} holds no numbers; if it holds the labels, name it with "
                "--label"
            )
    return np.column_stack(numbers)  # type: ignore[arg-type]
