"""`read`: the rows of a dataset's name or of any path."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from selfview.data import audio, images, text_files, texts, vectors
from selfview.data.anndata_files import fit_anndata
from selfview.data.dataset import Dataset, Options
from selfview.data.folders import existing, files_under, kind_of
from selfview.data.guard import notify
from selfview.data.json_lines import holds_text
from selfview.data.named import DATASETS, load_dataset
from selfview.data.parts import join_parts, parts_of
from selfview.data.preparation import ROW_OPTIONS, Preparation
from selfview.data.spectra import fit_imzml
from selfview.data.stores import is_anndata
from selfview.data.tables import TABLES, fit_table
from selfview.errors import InputError


def _fit_zarr(path: Path, options: Options) -> Dataset:
    asked = options.layer is not None or options.use_rep is not None
    return (fit_anndata if asked or is_anndata(path) else images.fit_array)(path, options)


def _fit_table(path: Path, options: Options, parts: Sequence[Path] = ()) -> Dataset:
    """A table by its columns, which may be in parts, or by one column of texts or of vectors."""
    kind = kind_of(path)
    named = options.choice.named
    if options.text is not None and options.vector is not None:
        raise InputError(f"{path}: text and vector can't both be given")
    if (options.text or options.vector) and named:
        raise InputError(f"{path}: with text or vector no other column is used, got {named[0]!r}")
    if options.vector is not None and kind in vectors.SUFFIXES:
        return vectors.fit_vectors(path, options)
    if options.vector is not None:
        raise InputError(f"{path}: vectors are read from {', '.join(vectors.SUFFIXES)} files")
    if options.text is not None or (kind in (".jsonl", ".json") and not named and holds_text(path)):
        return texts.fit_text(path, options)
    words = [name for name in ("vocabulary", "min_words") if name in options.given()]
    if words:
        raise InputError(f"{path}: {words[0]} is for texts: name their column with --text")
    return fit_table(path, options, parts)


_TABLE = (
    "categorical",
    "columns",
    "drop",
    "groups",
    "id",
    "label",
    "numeric",
    "min_words",
    "text",
    "vector",
    "vocabulary",
)
_FROM_NAME = ("groups_from_name", "labels_from_name")
# How the files of each suffix are read, and the options that mean something for them.
READERS: dict[str, tuple[Callable[[Path, Options], Dataset], tuple[str, ...]]] = {
    ".npy": (images.fit_array, ()),
    ".npz": (images.fit_array, ("array", "groups", "id", "label")),
    ".mtx": (images.fit_array, ()),
    **dict.fromkeys(
        (".h5", ".hdf5", ".pt", ".safetensors"),
        (images.fit_array, ("array", "groups", "id", "label")),
    ),
    ".zarr": (_fit_zarr, ("array", "groups", "id", "label", "layer", "use_rep")),
    ".h5ad": (fit_anndata, ("groups", "id", "label", "layer", "use_rep")),
    **dict.fromkeys((".csv", ".csv.gz", ".tsv", ".tsv.gz"), (_fit_table, (*_TABLE, "header"))),
    ".xlsx": (_fit_table, (*_TABLE, "header", "sheet")),
    **dict.fromkeys((".parquet", ".feather", ".jsonl", ".json"), (_fit_table, _TABLE)),
    ".txt": (texts.fit_text, (*_FROM_NAME, "min_words", "vocabulary")),
    **dict.fromkeys(audio.SUFFIXES, (audio.fit_audio, _FROM_NAME)),
    **dict.fromkeys(images.SUFFIXES, (images.fit_images, (*_FROM_NAME, "image_size"))),
    ".imzml": (fit_imzml, ("bins", "mz_range")),
    ".gz": (images.fit_idx, ()),
}
# What a folder may hold, and the suffix that stands for it. Texts come last: among as many notes
# or captions as pictures, the pictures are meant.
_FOLDER_KINDS = {".wav": audio.SUFFIXES, ".png": images.SUFFIXES, ".txt": text_files.SUFFIXES}


def read(
    source: str | os.PathLike[str],
    *,
    preparation: Preparation | None = None,
    array: str | None = None,
    layer: str | None = None,
    use_rep: str | None = None,
    label: str | int | None = None,
    id: str | int | None = None,
    groups: str | int | None = None,
    labels_from_name: str | None = None,
    groups_from_name: str | None = None,
    header: bool | None = None,
    sheet: str | int | None = None,
    columns: str | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] | None = None,
    numeric: str | Sequence[str] | None = None,
    text: str | None = None,
    vector: str | None = None,
    vocabulary: int = 2000,
    min_words: int = 1,
    image_size: int | tuple[int, int] | None = None,
    mz_range: tuple[float, float] = (50.0, 1000.0),
    bins: int = 1024,
    skip_bad: bool = False,
) -> Dataset:
    """The rows of a named dataset or of files, with the preparation that made them.

    Parameters
    ----------
    source : str or path
        A dataset's name (unless a file of that name exists), or a path: .npy, .npz, .mtx, .h5,
        .zarr, .pt, .safetensors, .h5ad, .csv, .tsv (also packed: .csv.gz), .parquet, .feather,
        .xlsx, .jsonl, .json (a list of records), .txt, .wav, .flac, .ogg, .mp3, .png, .jpg, .webp,
        .bmp, .imzML, IDX (.gz), or a folder of recordings, images or .txt files. In a folder, files
        of the most frequent kind are read, and a message names the others. A folder, or a glob such
        as ``"part-*.parquet"``, of .parquet, .npy, .npz or .h5ad parts is one set of rows, in the
        order of the names. Columns of .parquet parts are learned from all of them; of other parts,
        the first decides how rows are made.
    preparation : Preparation or None, default None
        That of a fitted model: rows are made as they were for its fit, and of the options below
        only ``array``, ``label``, ``id``, ``groups``, ``labels_from_name``, ``groups_from_name``,
        ``sheet`` and ``skip_bad`` are allowed.
    array : str or None, default None
        The array of an .npz, .h5, .zarr, .pt or .safetensors file that holds the rows; None: ``X``,
        or the only one.
    layer, use_rep : str or None, default None
        AnnData: the layer, or the array of ``obsm``, that holds the rows; None: the matrix ``X``.
    label, id : str, int or None, default None
        Column of a table or of AnnData's ``obs``, field of a .jsonl file, or array of an .npz, .h5
        or .zarr, that holds labels or row names. Columns of a table without a header are called 1,
        2, 3 ... The names of a .jsonl file's rows are in the field ``id`` if None; lines without
        one are counted. Those of AnnData are ``obs_names`` if None.
    groups : str, int or None, default None
        Where the group of each row (speaker, donor, day) is, likewise; of a named dataset, one of
        its ``further`` labels. ``fit`` takes ``Dataset.groups``, which are neither features nor
        labels.
    labels_from_name : str or None, default None
        A regular expression searched in each file's name, whose group 1 is the label:
        ``"^([0-9])_"`` for ``7_ann_3.wav``. None: sub-folders, if any, are the labels.
    groups_from_name : str or None, default None
        Likewise, for the group of each file: ``"_([a-z]+)_"`` for ``7_ann_3.wav``.
    header : bool or None, default None
        Whether a .csv or .tsv starts with column names; None: the first lines decide.
    sheet : str, int or None, default None
        The name of an .xlsx file's sheet; None: that of the fit, or the first with two rows.
    columns, drop, categorical, numeric : list of str, str or None, default None
        Tables: columns to use, to leave out, to take for categories, to take for numbers; see
        `TablePreparation`. A str names one column, or several with commas between them.
    text : str or None, default None
        Column of a table, or field of a .jsonl file, whose texts are the rows. None: the field
        ``text`` of a .jsonl file that has one. A single .txt file holds a text a line.
    vector : str or None, default None
        Field of a .jsonl file, or column of a .parquet file, that holds a list of numbers, such as
        a sentence embedding.
    vocabulary : int, default 2000
        Texts: how many of the most frequent words to keep.
    min_words : int, default 1
        Texts with fewer different words of the vocabulary are left out.
    image_size : int, (width, height) or None, default None
        Images: resize to this; None: to the size that at least half of them have, else to one near
        their median, with at most 128 pixels on the longer side.
    mz_range : (float, float), default (50.0, 1000.0)
        imzML: the range of the m/z bins.
    bins : int, default 1024
        imzML: the number of equal m/z bins.
    skip_bad : bool, default False
        Leave out rows that can't be read, with a message, instead of raising an error.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib
    >>> from selfview.data import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(pathlib.Path(folder, "rows.npy"), np.ones((5, 3), np.float32))
    ...     read(pathlib.Path(folder, "rows.npy")).X.shape
    (5, 3)
    """
    size = (image_size, image_size) if isinstance(image_size, int) else image_size
    options = Options(
        array=array, layer=layer, use_rep=use_rep, labels_from_name=labels_from_name,
        groups_from_name=groups_from_name,
        header=header, text=text, vector=vector, vocabulary=vocabulary,
        min_words=min_words, image_size=size,
        mz_range=mz_range, bins=bins, skip_bad=skip_bad,
        sheet=_name(sheet), label=_name(label), id=_name(id), groups=_name(groups),
        columns=_names(columns), drop=_names(drop), categorical=_names(categorical),
        numeric=_names(numeric),
    )  # fmt: skip
    _check_groups(options)
    given = options.given()
    is_name = str(source) in DATASETS and not os.path.exists(source)
    if not is_name and (parts := parts_of(source)):
        return _read_parts(source, parts, options, preparation)
    if preparation is not None:
        if is_name:
            dataset = load_dataset(str(source))
            preparation.check(dataset)
            return _grouped(dataset, options.groups)
        return preparation.read(
            source, skip_bad=skip_bad, **{name: getattr(options, name) for name in given}
        )
    if is_name:
        wrong = [name for name in given if name != "groups"]
        if wrong:
            raise InputError(f"{', '.join(wrong)} can't be given with the dataset {source}")
        return _grouped(load_dataset(str(source)), options.groups)
    return _read_file(existing(source), options)


def _read_parts(
    source: str | os.PathLike[str], parts: list[Path], options: Options, how: Preparation | None
) -> Dataset:
    """Files that hold one set of rows; of tables, the columns are learned from all of them."""
    columns = options.text is None and options.vector is None
    if how is None and columns and parts[0].suffix.lower() in TABLES:
        return _read_file(Path(source), options, parts)
    dataset = join_parts(source, parts, options, how, partial(_read_part, options))
    if how is not None or options.text is None or len(parts) == 1:
        return dataset
    note = notify(f"{source}: words are those of {parts[0].name}, the other parts add none")
    return replace(dataset, messages=(*dataset.messages, note))


def _read_part(options: Options, path: Path, how: Preparation | None) -> Dataset:
    """One of several files that hold one set of rows."""
    if how is None:
        return _read_file(path, options)
    names = [name for name in options.given() if name in ROW_OPTIONS]
    chosen = {name: getattr(options, name) for name in names}
    return how.read(path, **chosen | {"skip_bad": options.skip_bad})


def _read_file(path: Path, options: Options, parts: Sequence[Path] = ()) -> Dataset:
    kind = _kind_of(parts[0] if parts else path)
    reader, meant = READERS[kind]
    wrong = [name for name in options.given() if name not in meant]
    if wrong:
        possible = f"; possible are {', '.join(sorted(meant))}" if meant else ""
        raise InputError(f"{path}: {', '.join(wrong)} means nothing for {kind} files{possible}")
    return _fit_table(path, options, parts) if parts else reader(path, options)


def _name(given: str | int | None) -> str | None:
    return None if given is None else str(given)


def _names(given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Columns that are named in a list, or in a text with commas between them."""
    if isinstance(given, str):
        return tuple(name.strip() for name in given.split(","))
    return None if given is None else tuple(given)


def _check_groups(options: Options) -> None:
    """Raise InputError if the groups are the labels: what groups name is not learned."""
    pairs = {"label": options.groups, "labels_from_name": options.groups_from_name}
    for name, groups in pairs.items():
        if groups is not None and getattr(options, name) == groups:
            raise InputError(f"groups must differ from {name}, got {groups!r} for both")


def _grouped(dataset: Dataset, groups: str | None) -> Dataset:
    """A named dataset with one of its further labels as groups."""
    if groups is None:
        return dataset
    if groups not in dataset.further:
        held = ", ".join(dataset.further) or "none"
        raise InputError(f"the dataset {dataset.name} has no groups {groups!r}; it has {held}")
    return replace(dataset, groups=np.asarray(dataset.further[groups]).astype(str))


def _kind_of(path: Path) -> str:
    """The suffix of `READERS` that the path is read by."""
    is_folder = path.is_dir() and path.suffix.lower() != ".zarr"
    kind = _kind_of_folder(path) if is_folder else kind_of(path)
    if kind not in READERS and images.is_idx(path):
        kind = ".gz"
    if kind == ".gz" and Path(path.stem).suffix.lower() in READERS:
        raise InputError(
            f"{path} is packed, and only .csv, .tsv and IDX files are read so: unpack it first"
        )
    if kind not in READERS:
        known = ", ".join(sorted(READERS))
        raise InputError(f"{path}: files of this kind can't be read; known are {known}")
    return kind


def _kind_of_folder(path: Path) -> str:
    """The kind that most of the folder's files are of."""
    found = [file.suffix.lower() for file in files_under(path)]
    counts = {
        kind: sum(suffix in suffixes for suffix in found)
        for kind, suffixes in _FOLDER_KINDS.items()
    }
    most = max(counts.values())
    if most == 0:
        known = ", ".join(suffix for kinds in _FOLDER_KINDS.values() for suffix in kinds)
        raise InputError(f"{path} holds no {known} files")
    if counts[".wav"] == counts[".png"] == most:
        raise InputError(
            f"{path} holds as many recordings as pictures ({most} each); give a folder of one kind"
        )
    return next(kind for kind, count in counts.items() if count == most)
