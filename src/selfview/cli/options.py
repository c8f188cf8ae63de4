"""What several commands share: which options were given, and how embeddings are written."""

from pathlib import Path
from typing import Any, BinaryIO, Literal

import typer

from selfview.errors import InputError, MissingDependencyError

OUTPUTS = (".npy", ".csv", ".parquet")
TargetKind = Literal["auto", "classes", "continuous"]
TARGETS: dict[str, TargetKind] = {
    "auto": "auto",
    "classes": "classes",
    "continuous": "continuous",
}


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


def known_target(word: str) -> TargetKind:
    """`word` if it says what labels are."""
    if word not in TARGETS:
        known = ", ".join(TARGETS)
        raise typer.BadParameter(f"one of {known}, not {word}", param_hint="--target")
    return TARGETS[word]


def check_output(path: Path) -> Path:
    """`path` if its extension is one that embeddings can be written to."""
    if path.suffix.lower() not in OUTPUTS:
        raise InputError(f"{path}: the output must end in {', '.join(OUTPUTS)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file")
    return path


def write_embedding(path: Path, Z: Any, ids: Any = None) -> None:
    """Write an embedding by its path's extension; tables also get the rows' names, if any."""
    from selfview.saving.files import whole

    write = {".npy": _write_npy, ".csv": _write_csv, ".parquet": _write_parquet}
    with whole(path.resolve()) as file:  # through a link, to where it leads
        write[path.suffix.lower()](file, Z, ids)


def _names(Z: Any) -> list[str]:
    return [f"selfview{i}" for i in range(Z.shape[1])]


def _write_npy(file: BinaryIO, Z: Any, ids: Any) -> None:  # noqa: ARG001
    import numpy as np

    Z = np.ascontiguousarray(Z)
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(Z))
    file.write(Z.data)  # np.save would not say why it failed


def _write_csv(file: BinaryIO, Z: Any, ids: Any) -> None:
    header = _names(Z) if ids is None else ["id", *_names(Z)]
    file.write((",".join(header) + "\n").encode())
    for i, row in enumerate(Z):
        cells = [format(value, ".9g") for value in row]
        line = ",".join(cells if ids is None else [_quoted(ids[i]), *cells])
        file.write((line + "\n").encode())


def _write_parquet(file: BinaryIO, Z: Any, ids: Any) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependencyError(
            "writing .parquet needs pyarrow: pip install 'selfview[data]'"
        ) from error
    columns = {} if ids is None else {"id": [str(i) for i in ids]}
    pq.write_table(pa.table(columns | dict(zip(_names(Z), Z.T, strict=True))), file)


def _quoted(value: Any) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n\r') else text
