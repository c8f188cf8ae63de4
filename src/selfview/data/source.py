"""`read`: a dataset's name or any path, to one `Dataset`."""

from __future__ import annotations

import os

from selfview.data.dataset import Dataset
from selfview.data.folders import existing
from selfview.data.kinds import read_path
from selfview.data.named import DATASETS, load_dataset
from selfview.data.preparation import Options
from selfview.errors import InputError


def read(
    source: str | os.PathLike[str],
    *,
    array: str | None = None,
    label: str | int | None = None,
    id: str | int | None = None,
    labels_from_name: str | None = None,
    header: bool | None = None,
    text: str = "text",
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
        A dataset's name (unless a file of that name exists), or a path: .npy, .npz, .mtx, .csv,
        .tsv, .parquet, .jsonl, .txt, .wav, .flac, .ogg, .mp3, .png, .jpg, .imzML, IDX (.gz), or a
        folder of recordings, images or .txt files. Of a folder the kind that most of its files are
        of is read, and a message names the others.
    array : str, optional
        Which array of an .npz file holds the rows; ``X`` or the only one by default.
    label, id : str or int, optional
        Column of a table, field of a .jsonl file or array of an .npz that holds labels or row
        names. Columns of a table without a header are called 1, 2, 3 ... The names of a .jsonl
        file's rows are in the field ``id`` by default; lines without one are counted.
    labels_from_name : str, optional
        A regular expression searched in each file's name, whose group 1 is the label:
        ``"^([0-9])_"`` for ``7_ann_3.wav``. By default sub-folders, if any, are the labels.
    header : bool, optional
        Whether a .csv or .tsv starts with column names; told from the file by default.
    text : str
        Field of a .jsonl file that holds the text.
    vocabulary : int
        Texts: how many words to keep, the most frequent ones.
    min_words : int
        Texts with fewer different words of the vocabulary are left out.
    image_size : int or (width, height), optional
        Images: resize to this; by default to the size that most have.
    mz_range, bins :
        imzML: the range and number of equal m/z bins.
    skip_bad : bool
        Leave out rows that can't be read, and say how many, instead of an error that names them.

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
        array=array, label=_text(label), id=_text(id), labels_from_name=labels_from_name,
        header=header, text=text, vocabulary=vocabulary, min_words=min_words, image_size=size,
        mz_range=mz_range, bins=bins, skip_bad=skip_bad,
    )  # fmt: skip
    if str(source) in DATASETS and not os.path.exists(source):
        given = options.given()
        if given:
            raise InputError(f"{', '.join(given)} can't be given with the dataset {source}")
        return load_dataset(str(source))
    return read_path(existing(source), options)


def _text(name: str | int | None) -> str | None:
    return None if name is None else str(name)
