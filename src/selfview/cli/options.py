"""What several commands share: options, which of them were given, how embeddings are written."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, get_args

import typer

from selfview.cli import complete
from selfview.errors import InputError, MissingDependencyError

Run = Annotated[
    Path,
    typer.Argument(
        help="Run folder of `selfview fit`, or of `SelfView.save`.", autocompletion=complete.paths
    ),
]
Data = Annotated[
    str,
    typer.Argument(
        help="A dataset's name or a path; see `selfview data`.", autocompletion=complete.data
    ),
]
Id = Annotated[str | None, typer.Option(help="Column of row names, not a feature.")]
LabelsFromName = Annotated[
    str | None, typer.Option(help="Regular expression; group 1 of a file's name is its label.")
]
Groups = Annotated[
    str | None, typer.Option(help="Column of groups (speaker, donor, day), not a feature.")
]
GroupsFromName = Annotated[
    str | None, typer.Option(help="Regular expression; group 1 of a file's name is its group.")
]
Array = Annotated[
    str | None, typer.Option(help="Array of an .npz, .h5, .zarr, .pt or .safetensors file.")
]
Sheet = Annotated[str | None, typer.Option(help="Sheet of an .xlsx file.")]
SkipBad = Annotated[bool, typer.Option(help="Leave out rows that can't be read.")]
Target = Annotated[str, typer.Option(help="What labels are: classes, continuous, or auto.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")]


def image_size(text: str) -> tuple[int, int]:
    """Width and height, written as ``24``, ``32x24`` or ``32,24``."""
    sides = re.fullmatch(r"\s*([1-9]\d{0,5})(?:\s*[x×,]\s*([1-9]\d{0,5}))?\s*", text.lower())
    if sides is None:
        raise typer.BadParameter(f"24, or a width and a height as 32x24, not {text}")
    return int(sides[1]), int(sides[2] or sides[1])


FILES = "How files are read"
# Options of `read`, whose defaults are its own: type, help text, and more for typer.
READING: dict[str, tuple[Any, ...]] = {
    "label": (str, "Column of labels (of obs in AnnData), for scores only."),
    "id": (str, "Column of row names."),
    "groups": (str, "Column of groups (speaker, donor, day): their differences aren't learned."),
    "labels_from_name": (str, "Regular expression; group 1 of a file's name is its label."),
    "groups_from_name": (str, "Likewise, for the file's group."),
    "columns": (str, "Columns of a table to use, with commas between them."),
    "drop": (str, "Columns of a table to leave out."),
    "categorical": (str, "Columns of a table to take for categories."),
    "numeric": (str, "Columns of a table to take for numbers; anything else in them is a gap."),
    "header": (bool, "Whether a table starts with column names; by default the file tells."),
    "sheet": (str, "Sheet of an .xlsx file; by default the first that holds a table."),
    "array": (str, "Array of an .npz, .h5, .zarr, .pt or .safetensors file."),
    "layer": (str, "AnnData: layer with the rows."),
    "use_rep": (str, "AnnData: array of obsm with the rows."),
    "text": (str, "Column of a table or field of a .json file with the text."),
    "vector": (str, "Column of a .parquet, or field of a .json, file with lists of numbers."),
    "vocabulary": (int, "Texts: words to keep, the most frequent.", {"min": 1}),
    "min_words": (int, "Texts: leave out those with fewer known words.", {"min": 0}),
    "image_size": (
        str,
        "Resize images to this: 24, or width and height as 32x24.",
        {"parser": image_size, "metavar": "SIZE"},
    ),
    "mz_range": (tuple[float, float], "imzML: lowest and highest m/z."),
    "bins": (int, "imzML: number of m/z bins.", {"min": 1}),
    "skip_bad": (bool, "Leave out rows that can't be read."),
}

OUTPUTS = (".npy", ".csv", ".parquet")
TargetKind = Literal["auto", "classes", "continuous"]
TARGETS: tuple[TargetKind, ...] = get_args(TargetKind)


def add_options(
    command: Callable[..., Any],
    panel: str,
    options: Mapping[str, tuple[Any, ...]],
    choices: Mapping[str, Sequence[str]] = {},
) -> None:
    """Give a command that takes ``**more`` these options, each None if it isn't given.

    An option is its type, its help, and perhaps further arguments of `typer.Option`. One of
    `choices` also says what it may be.
    """
    own = inspect.signature(command)
    known = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    for name, (kind, help, *rest) in options.items():
        more = dict(rest[0]) if rest else {}
        if name in choices:
            *first, last = choices[name]
            help = f"{help}: {', '.join(first)} or {last}."
            more["autocompletion"] = complete.words(*choices[name])
        option = typer.Option(help=help, rich_help_panel=panel, **more)
        kind = Annotated[(str if kind is float else kind) | None, option]
        known.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        )
    command.__signature__ = own.replace(parameters=known)  # type: ignore[attr-defined]


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
    for target in TARGETS:
        if word == target:
            return target
    raise typer.BadParameter(f"one of {', '.join(TARGETS)}, not {word}", param_hint="--target")


def check_output(path: Path) -> Path:
    """`path` if its extension is one that embeddings can be written to."""
    if path.suffix.lower() not in OUTPUTS:
        raise InputError(f"{path}: the output must end in {', '.join(OUTPUTS)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file")
    return path


def write_embedding(
    path: Path, Z: Any, ids: Any = None, beside: Mapping[str, Any] | None = None
) -> None:
    """Write an embedding by its path's extension.

    Tables also get the rows' names, if any, and the columns `beside` the embedding.
    """
    from selfview.saving.files import atomic_write

    write = {".npy": _write_npy, ".csv": _write_csv, ".parquet": _write_parquet}
    with atomic_write(path.resolve()) as file:  # through a link, to where it leads
        write[path.suffix.lower()](file, Z, ids, beside or {})


def _names(Z: Any) -> list[str]:
    return [f"selfview{i}" for i in range(Z.shape[1])]


def _write_npy(file: BinaryIO, Z: Any, ids: Any, beside: Mapping[str, Any]) -> None:  # noqa: ARG001
    import numpy as np

    Z = np.ascontiguousarray(Z)
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(Z))
    file.write(Z.data)  # np.save would not say why it failed


def _write_csv(file: BinaryIO, Z: Any, ids: Any, beside: Mapping[str, Any]) -> None:
    import csv
    import io

    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*([] if ids is None else ["id"]), *_names(Z), *beside])
    for i, row in enumerate(Z):
        cells = [format(value, ".9g") for value in (*row, *(c[i] for c in beside.values()))]
        writer.writerow(cells if ids is None else [ids[i], *cells])
    text.detach()  # flushes, and leaves the file open


def _write_parquet(file: BinaryIO, Z: Any, ids: Any, beside: Mapping[str, Any]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependencyError(
            "writing .parquet needs pyarrow: pip install 'selfview[data]'"
        ) from error
    columns = {} if ids is None else {"id": [str(i) for i in ids]}
    embedding = dict(zip(_names(Z), Z.T, strict=True))
    pq.write_table(pa.table({**columns, **embedding, **beside}), file)
