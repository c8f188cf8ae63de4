"""What several commands share: which options were given, and how embeddings are written."""

from pathlib import Path
from typing import Any

from selfview.errors import InputError, MissingDependencyError

OUTPUTS = (".npy", ".csv", ".parquet")


def given(**options: Any) -> dict[str, Any]:
    """The options that were given; the others keep the default of the function they go to."""
    return {name: value for name, value in options.items() if value is not None}


def number_or_word(value: str | None) -> str | int | float | None:
    """A number if the text is one ("auto" and the like stay words)."""
    if value is None:
        return None
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def check_output(path: Path) -> Path:
    """`path` if its extension is one that embeddings can be written to."""
    if path.suffix.lower() not in OUTPUTS:
        raise InputError(f"{path}: the output must end in {', '.join(OUTPUTS)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file")
    return path


def write_embedding(path: Path, Z: Any, ids: Any = None) -> None:
    """Write an embedding by its path's extension; tables also get the rows' names, if any."""
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    names = [f"selfview{i}" for i in range(Z.shape[1])]
    kind = path.suffix.lower()
    if kind == ".npy":
        with path.open("wb") as raw:  # by its handle, or .NPY would become .NPY.npy
            np.save(raw, Z)
    elif kind == ".csv":
        header = ",".join(names if ids is None else ["id", *names])
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.write(header + "\n")
            for i, row in enumerate(Z):
                cells = [format(value, ".9g") for value in row]
                file.write(",".join(cells if ids is None else [_quoted(ids[i]), *cells]) + "\n")
    else:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise MissingDependencyError(
                "writing .parquet needs pyarrow: pip install 'selfview[data]'"
            ) from error
        columns = {} if ids is None else {"id": [str(i) for i in ids]}
        pq.write_table(pa.table(columns | dict(zip(names, Z.T, strict=True))), path)


def _quoted(value: Any) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n\r') else text
