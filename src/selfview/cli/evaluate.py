"""`selfview evaluate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def evaluate(
    z: Annotated[Path, typer.Argument(metavar="Z", help="Embedding: .npy .npz .csv .parquet")],
    labels: Annotated[
        Path | None,
        typer.Argument(help="Labels: the same kinds, or a text file with one label a line."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of LABELS, or of Z without it.")
    ] = None,
    measures: Annotated[
        str, typer.Option(help="'all', 'paper', or names with commas between.")
    ] = "all",
    split: Annotated[
        Path | None, typer.Option(help="File with 'train' or 'test' for each row.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed of every stochastic measure.")
    ] = 0,
    json_out: Annotated[
        Path | None, typer.Option("--json", help="Also write the numbers to this file.")
    ] = None,
) -> None:
    """Measure how good an embedding is against labels or a continuous target.

    Example: selfview evaluate embedding.npy labels.npy --measures linear,clustering
    """
    import warnings

    from selfview.errors import SelfViewWarning
    from selfview.evaluation import evaluate as measure

    if labels is None and label is None:
        raise typer.BadParameter("give a LABELS file, or --label COLUMN of the embedding's table")
    embedding, y = _embedding_and_labels(z, labels, label)
    parts = None if split is None else _vector(split)
    names = [name.strip() for name in measures.split(",") if name.strip()]
    chosen: Any = names[0] if len(names) == 1 else names
    with warnings.catch_warnings(record=True) as caught, _Bar() as bar:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", SelfViewWarning)
        scores = measure(
            embedding, y, split=parts, measures=chosen, random_state=seed, progress=bar.show
        )
    for warning in caught:
        typer.echo(f"selfview: note: {warning.message}", err=True)
    _print_table(scores)
    if json_out is not None:
        _write_json(json_out, scores)


class _Bar:
    """A rich progress bar on a terminal, a plain line for each measure otherwise."""

    def __enter__(self) -> "_Bar":
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        self._bar = Progress(console=console, transient=True) if console.is_terminal else None
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("reading", total=None)
        return self

    def show(self, name: str, number: int, total: int) -> None:
        if self._bar is None:
            typer.echo(f"{number + 1}/{total} {name}", err=True)
        else:
            self._bar.update(self._task, description=name, completed=number, total=total)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _print_table(scores: dict[str, float]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("measure", "value")
    table.columns[1].justify = "right"
    for name, value in scores.items():
        table.add_row(name, str(value) if isinstance(value, int) else f"{value:.4f}")
    Console().print(table)


def _write_json(path: Path, scores: dict[str, float]) -> None:
    import json
    import math

    from selfview.errors import SelfViewError

    # JSON knows no NaN; a measure that could not be taken is null.
    known = {name: value if math.isfinite(value) else None for name, value in scores.items()}
    try:
        path.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise SelfViewError(f"can't write {path}: {error.strerror}") from error


def _embedding_and_labels(
    z: Path, labels: Path | None, label: str | None
) -> "tuple[npt.NDArray[Any], npt.NDArray[Any]]":
    import numpy as np

    from selfview.errors import InputError

    if labels is not None and label is None:
        return _matrix(_read(z), z), _vector(labels)
    path = labels or z
    table = _read(path)
    if not isinstance(table, dict):
        raise InputError(f"--label needs a table with named columns, and {path} has none")
    if label not in table:
        raise InputError(f"{path} has no column {label!r}; it has {', '.join(table)}")
    y = np.asarray(table.pop(str(label)))
    if labels is not None:
        return _matrix(_read(z), z), y
    if not table:
        raise InputError(f"{z} has no column beside {label!r}")
    return _matrix(table, z, "take it out"), y


def _matrix(data: "Any", path: Path, cure: str = "") -> "npt.NDArray[np.float64]":
    """Columns side by side, or the array itself, as numbers."""
    import numpy as np

    from selfview.errors import InputError

    if not isinstance(data, dict):
        return np.asarray(data)
    if "selfview0" in data:  # written by `embed`: row names, if there are any, are no feature
        data = {name: column for name, column in data.items() if name != "id"}
    for name, column in data.items():
        if column.dtype.kind not in "biuf":
            cure = cure or f"if it holds the labels, name it with --label {name}"
            raise InputError(f"column {name!r} of {path} is not numeric; {cure}")
    return np.column_stack([column.astype(np.float64) for column in data.values()])


def _vector(path: Path) -> "npt.NDArray[Any]":
    """One value for each row; a table of several numeric columns stays a matrix."""
    data = _read(path)
    if isinstance(data, dict):
        data = next(iter(data.values())) if len(data) == 1 else _matrix(data, path)
    return data


def _read(path: Path) -> "npt.NDArray[Any] | dict[str, npt.NDArray[Any]]":
    """An array, or the named columns of a table; nothing of the file is ever run."""
    from selfview.errors import FileFormatError, InputError

    readers = {".npy": _npy, ".npz": _npz, ".csv": _csv, ".tsv": _csv, ".parquet": _parquet}
    if not path.is_file():
        raise InputError(f"{path} is not a file")
    try:
        return readers.get(path.suffix.lower(), _lines)(path)
    except (OSError, ValueError, EOFError, UnicodeDecodeError, KeyError) as error:
        if isinstance(error, FileFormatError):
            raise
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise FileFormatError(f"can't read {path}: {reason}") from error


def _npy(path: Path) -> "npt.NDArray[Any]":
    import numpy as np

    with path.open("rb") as file:
        array = np.load(file, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError("it is not a .npy file")
    return array


def _npz(path: Path) -> "npt.NDArray[Any]":
    import zipfile

    import numpy as np

    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if len(archive.files) != 1:
                names = ", ".join(archive.files) or "none"
                raise ValueError(f"it must hold one array, it holds {names}; save one as .npy")
            return np.asarray(archive[archive.files[0]])
    except (zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise ValueError("it is not a .npz archive") from error


def _csv(path: Path) -> "npt.NDArray[Any] | dict[str, npt.NDArray[Any]]":
    """A table with a header line, or bare numbers without one."""
    import csv

    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file, delimiter=separator) if row]
    except csv.Error as error:
        raise ValueError(str(error)) from error
    if not rows:
        raise ValueError("it is empty")
    header = rows[0]
    wrong = next((i for i, row in enumerate(rows) if len(row) != len(header)), None)
    if wrong is not None:
        raise ValueError(f"row {wrong + 1} has {len(rows[wrong])} fields, not {len(header)}")
    if any(_is_number(field) for field in header) or len(rows) == 1:
        columns = [_typed(column) for column in zip(*rows, strict=True)]
        return {str(number): column for number, column in enumerate(columns)}
    if len(set(header)) != len(header):
        raise ValueError("two columns have the same name")
    columns = [_typed(column) for column in zip(*rows[1:], strict=True)]
    return dict(zip(header, columns, strict=True))


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _typed(fields: "Any") -> "npt.NDArray[Any]":
    """Integers if all are, else floats (empty is NaN), else the words themselves."""
    import numpy as np

    for kind in (np.int64, np.float64):
        try:
            return np.array([field.strip() or "nan" for field in fields]).astype(kind)
        except (ValueError, OverflowError):
            continue
    return np.array([field.strip() for field in fields])


def _parquet(path: Path) -> "dict[str, npt.NDArray[Any]]":
    from selfview.errors import MissingDependencyError

    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingDependencyError("reading .parquet: pip install 'selfview[data]'") from error
    table = parquet.read_table(path)
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _lines(path: Path) -> "npt.NDArray[Any]":
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    if any("\0" in line for line in lines):
        raise ValueError("it is neither .npy, .npz, .csv, .tsv, .parquet nor text")
    return _typed(lines)
