"""Texts: tf-idf of the most frequent words, as in the paper; new texts use the same vocabulary."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from selfview.data.dataset import Array, Dataset, Options
from selfview.data.folders import find_files, labels_of, left_out, names_of
from selfview.data.guard import notify, reading, regular_file, report_bad_rows
from selfview.data.labels import read_labels
from selfview.data.preparation import Preparation
from selfview.errors import FileFormatError, InputError

SUFFIXES = (".txt",)
_FILE_LIMIT = 256 * 2**20
_SNIPPET = 200  # characters
_SCALARS = (str, int, float, bool)
_QUOTE = re.compile(r"(writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>)")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*:|[ \t]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class TextPreparation(Preparation):
    """Sublinear tf-idf of a fixed vocabulary, l2 rows times sqrt(number of words).

    ``text`` is the field of a .jsonl file that holds the text, ``id`` that of the row's name ("id"
    if None), which a new file may have or not. With ``posts``, a text that starts
    with a news header is stripped of header, quotes and signature first, as 20news is.
    """

    vocabulary: tuple[str, ...]
    idf: NDArray[np.float64]
    text: str = "text"
    posts: bool = False
    id: str | None = None

    kind: ClassVar[str] = "text"
    suffixes: ClassVar[str] = ".txt files or a folder of them, or .jsonl"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.vocabulary),)

    def consistent(self) -> bool:
        words = self.vocabulary
        return len(set(words)) == len(words) == self.idf.size

    def rows(self, texts: Sequence[str]) -> csr_matrix:
        """One float32 CSR row a text."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        vectorizer = TfidfVectorizer(
            vocabulary=list(self.vocabulary), sublinear_tf=True, dtype=np.float64
        )
        vectorizer.idf_ = self.idf
        return self.scaled(vectorizer.transform(texts))

    def scaled(self, unit_rows: csr_matrix) -> csr_matrix:
        """Rows of length 1 brought to length sqrt(number of words)."""
        return csr_matrix(unit_rows * np.sqrt(len(self.vocabulary)), dtype=np.float32)

    def read_files(self, path: Path, options: Options) -> Dataset:
        texts = _read_texts(path, replace(options, text=self.text), self.id)
        own = [strip_post(t) if self.posts and looks_like_post(t) else t for t in texts.values]
        X = self.rows(own)
        blank = int((np.diff(X.indptr) == 0).sum())
        messages = texts.messages
        if blank:
            total = len(texts.values)
            note = f"{path}: {blank:,} of {total:,} texts hold no known word, their rows are zero"
            messages += (notify(note),)
        return texts.dataset(path, X, self, messages)


def fit_text(path: Path, options: Options) -> Dataset:
    """Rows of texts, with a vocabulary of their most frequent words."""
    texts = _read_texts(path, options)
    if len(texts.values) == 1:
        _check_is_text(path, texts.values[0])
    try:
        preparation, X = fit_vocabulary(texts.values, options.vocabulary, text=options.text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    keep = np.flatnonzero(np.diff(X.indptr) >= options.min_words)
    messages = texts.messages
    if keep.size == 0:
        raise InputError(f"{path}: no text holds {options.min_words} words of the vocabulary")
    if keep.size < X.shape[0]:
        messages += (
            notify(
                f"{path}: left out {X.shape[0] - keep.size:,} of {X.shape[0]:,} texts with fewer "
                f"than {options.min_words} words of the vocabulary"
            ),
        )
    preparation = replace(preparation, id=options.id)
    return texts.take(keep).dataset(path, X[keep], preparation, messages)


def _check_is_text(path: Path, text: str) -> None:
    """Raise InputError for a text of numbers: most often a table under a wrong name."""
    words = text[:100_000].replace(",", " ").replace(";", " ").split()
    if len(words) >= 4 and all(_NUMBER.fullmatch(word) for word in words[:-1]):
        raise InputError(f"{path} holds numbers, not a text: save them as .csv or .npy")


def snippets_of(texts: Sequence[str]) -> Array:
    """The beginning of each text, on one line."""
    return np.array([" ".join(text[: 5 * _SNIPPET].split())[:_SNIPPET] for text in texts])


def fit_vocabulary(
    texts: Sequence[str], words: int = 2000, *, text: str = "text", posts: bool = False
) -> tuple[TextPreparation, csr_matrix]:
    """The vocabulary of the most frequent words (no English stop words), and the texts' rows."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    if words < 1:
        raise InputError(f"vocabulary must be at least 1 word, got {words}")
    counter = CountVectorizer(stop_words="english")
    try:
        counts = counter.fit_transform(texts)
    except ValueError as error:
        raise InputError("the texts hold no words (stop words aside)") from error
    # Of equally frequent words the first by the alphabet: the vectorizer's own choice among them
    # depends on the processor.
    frequent = np.argsort(-np.asarray(counts.sum(0)).ravel(), kind="stable")[:words]
    chosen = np.sort(frequent)
    weights = TfidfTransformer(sublinear_tf=True)
    X = weights.fit_transform(counts[:, chosen])
    names = counter.get_feature_names_out()[chosen]
    how = TextPreparation(tuple(map(str, names)), np.asarray(weights.idf_), text, posts)
    return how, how.scaled(X)


@dataclass(frozen=True)
class _Texts:
    values: list[str]
    ids: list[str]
    labels: list[str] | None
    skipped: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()

    def take(self, rows: NDArray[np.intp]) -> _Texts:
        labels = None if self.labels is None else [self.labels[i] for i in rows]
        return replace(
            self,
            values=[self.values[i] for i in rows],
            ids=[self.ids[i] for i in rows],
            labels=labels,
        )

    def dataset(
        self, path: Path, X: csr_matrix, how: Preparation, messages: tuple[str, ...]
    ) -> Dataset:
        y, classes = (None, ()) if self.labels is None else read_labels(self.labels)
        return Dataset(
            name=path.name, X=X, y=y, classes=classes, ids=np.array(self.ids),
            snippets=snippets_of(self.values), source=f"path {path}", preparation=how,
            skipped=self.skipped, messages=messages,
        )  # fmt: skip


def _read_texts(path: Path, options: Options, usual_id: str | None = None) -> _Texts:
    if path.suffix.lower() == ".jsonl":
        return _read_jsonl(regular_file(path), options, usual_id)
    files = find_files(path, SUFFIXES)
    values, kept, bad = [], [], []
    for file in files:
        try:
            values.append(_read_text_file(file))
        except (FileFormatError, InputError) as error:
            bad.append(str(error))
        else:
            kept.append(file)
    messages = report_bad_rows(path, bad, len(files), options.skip_bad) + left_out(path, files)
    names = names_of(path, kept)
    y, classes = labels_of(names, options.labels_from_name)
    labels = None if y is None else [classes[i] for i in y]
    return _Texts(values, names, labels, tuple(bad), messages)


def _read_text_file(file: Path) -> str:
    file = regular_file(file)
    if file.stat().st_size > _FILE_LIMIT:
        raise FileFormatError(f"{file} is over {_FILE_LIMIT >> 20} MiB, too large for one text")
    with reading(file):
        content = file.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        if b"\0" in content:
            raise FileFormatError(f"{file} is not a text file") from None
        return content.decode("latin-1")


def _read_jsonl(path: Path, options: Options, usual_id: str | None) -> _Texts:
    """A text a line; a label may be missing or null, but not from all lines."""
    values, bad = [], []
    numbers: list[int] = []
    own: list[str | None] = []  # the ids that lines give themselves
    labels: list[str] = []
    fields: list[str] = []
    total = 0
    for number, line in _lines(path):
        total += 1
        try:
            record = json.loads(line)
            text = _field(record, options.text, (str,), "--text")
            row_id = _row_id(record, options.id, usual_id or "id")
            given = None
            if options.label is not None and record.get(options.label) is not None:
                given = str(_field(record, options.label))
        except (ValueError, RecursionError) as error:
            bad.append(f"{path} line {number}: {error if str(error) else 'nested too deep'}")
            continue
        fields = fields or [str(key)[:40] for key in list(record)[:8]]
        values.append(text)
        numbers.append(number)
        own.append(row_id)
        labels.append(given or "")
    if total == 0:
        raise FileFormatError(f"{path} holds no lines")
    messages = report_bad_rows(path, bad, total, options.skip_bad)
    if options.label is not None and not any(labels):
        known = ", ".join(map(repr, fields))
        raise InputError(
            f"{path}: no line has a label in the field {options.label!r}; fields are {known}"
        )
    ids = _row_ids(own, numbers)
    return _Texts(values, ids, labels if options.label else None, tuple(bad), messages)


def _row_id(record: Any, asked: str | None, usual: str) -> str | None:
    """The id of a line: of the field that was asked for, or of the usual one if it is there."""
    if asked is not None:
        return str(_field(record, asked))
    found = record.get(usual)
    return str(found) if isinstance(found, _SCALARS) else None


def _row_ids(own: Sequence[str | None], numbers: Sequence[int]) -> list[str]:
    """The lines' own ids; a number stands for a line without one, and can't be taken for an id."""
    word = "line " if any(name is not None for name in own) else ""
    return [f"{word}{i}" if name is None else name for name, i in zip(own, numbers, strict=True)]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with reading(path, "JSON lines"), path.open(encoding="utf-8-sig", errors="replace") as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                yield number, line


def _field(record: Any, name: str, types: tuple[type, ...] = _SCALARS, option: str = "") -> Any:
    if not isinstance(record, dict):
        raise ValueError("is not an object with named fields")
    if name not in record:
        others = ", ".join(repr(str(key)[:40]) for key in list(record)[:8]) or "none"
        say = f"; name one with {option}" if option and record else ""
        raise ValueError(f"has no field {name!r}, but {others}{say}")
    if not isinstance(record[name], types):
        raise ValueError(f"field {name!r} is a {type(record[name]).__name__}, not text")
    return record[name]


def looks_like_post(text: str) -> bool:
    """Whether the text starts with a news header: lines of ``Name: value``, From: among them."""
    header = text.partition("\n\n")[0].splitlines()
    return any(line.startswith("From:") for line in header) and all(map(_HEADER.match, header))


def strip_post(text: str) -> str:
    """The post's own words, as scikit-learn's remove=("headers", "footers", "quotes")."""
    body = text.partition("\n\n")[2]
    lines = body.strip().split("\n")
    blank = [i for i, line in enumerate(lines) if line.strip().strip("-") == ""]
    if blank and blank[-1] > 0:  # the signature begins at the last blank or dashed line
        body = "\n".join(lines[: blank[-1]])
    return "\n".join(line for line in body.split("\n") if not _QUOTE.search(line))
