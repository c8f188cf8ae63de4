"""Texts: tf-idf of the most frequent words, as in the paper; new texts use the same vocabulary."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from selfview.data.dataset import Array, Dataset, Options
from selfview.data.folders import find_files, read_each
from selfview.data.guard import notify, reading, regular_file, report_bad_rows
from selfview.data.labels import read_labels
from selfview.data.preparation import Preparation
from selfview.errors import FileFormatError, InputError

SUFFIXES = (".txt",)
_FILE_LIMIT = 256 * 2**20
_SNIPPET = 200  # characters of a text that are kept to show, at least
_WHOLE = 4_000  # and at most
_SNIPPETS = 10_000_000  # characters of all
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

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.vocabulary

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
        """Rows of unit norm scaled to norm sqrt(number of words)."""
        return csr_matrix(unit_rows * np.sqrt(len(self.vocabulary)), dtype=np.float32)

    def read_files(self, path: Path, options: Options) -> Dataset:
        texts = _read_texts(path, replace(options, text=self.text), self.id or "id")
        own = [strip_post(t) if self.posts and looks_like_post(t) else t for t in texts.values]
        X = self.rows(own)
        blank, total = int((np.diff(X.indptr) == 0).sum()), len(own)
        note = f"{blank:,} of {total:,} texts hold no known word, their rows are zero"
        return texts.dataset(path, X, self, note * bool(blank))


def fit_text(path: Path, options: Options) -> Dataset:
    """Rows of texts, with a vocabulary of their most frequent words."""
    texts = _read_texts(path, options)
    if len(texts.values) == 1:
        _check_is_text(path, texts.values[0])
    try:
        preparation, X = fit_vocabulary(
            texts.values, options.vocabulary, text=options.text or "text"
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    n, least = X.shape[0], options.min_words
    keep = np.flatnonzero(np.diff(X.indptr) >= least)
    if keep.size == 0:
        raise InputError(f"{path}: no text holds {least} words of the vocabulary")
    note = (
        f"left out {n - keep.size:,} of {n:,} texts with fewer than {least} words of the vocabulary"
    )
    how = replace(preparation, id=options.id)
    return texts.dataset(path, X[keep], how, note * (keep.size < n), keep)


def _check_is_text(path: Path, text: str) -> None:
    """Raise InputError for a text of numbers: most often a table under a wrong name."""
    words = text[:100_000].replace(",", " ").replace(";", " ").split()
    if len(words) >= 4 and all(_NUMBER.fullmatch(word) for word in words[:-1]):
        raise InputError(f"{path} holds numbers, not a text: save them as .csv or .npy")


def snippets_of(texts: Sequence[str]) -> Array:
    """Each text on one line; its beginning, if all would be too much to keep."""
    length = max(_SNIPPET, min(_WHOLE, _SNIPPETS // max(1, len(texts))))
    return np.array([" ".join(text[: 5 * length].split())[:length] for text in texts])


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
    groups: list[str] | None
    skipped: tuple[str, ...]
    messages: tuple[str, ...]

    def dataset(
        self, path: Path, X: csr_matrix, how: Preparation, note: str = "", keep: Any = None
    ) -> Dataset:
        """A `Dataset` of these texts, or of those to `keep`, whose rows are X."""
        rows = range(len(self.values)) if keep is None else keep
        labels = None if self.labels is None else [self.labels[i] for i in rows]
        y, classes = (None, ()) if labels is None else read_labels(labels)
        return Dataset(
            name=path.name, X=X, y=y, classes=classes, ids=np.array([self.ids[i] for i in rows]),
            groups=None if self.groups is None else np.array([self.groups[i] for i in rows]),
            snippets=snippets_of([self.values[i] for i in rows]), source=f"path {path}",
            preparation=how, skipped=self.skipped,
            messages=self.messages + ((notify(f"{path}: {note}"),) if note else ()),
        )  # fmt: skip


def _read_texts(path: Path, options: Options, usual_id: str = "id") -> _Texts:
    if path.suffix.lower() == ".jsonl":
        return _read_jsonl(regular_file(path), options, usual_id)
    values: list[str] = []
    files = find_files(path, SUFFIXES)
    found = read_each(path, files, lambda _, file: values.append(_read_text_file(file)), options)
    y, classes = found["y"], found["classes"]
    labels = None if y is None else [classes[i] for i in y]
    groups = None if found["groups"] is None else found["groups"].tolist()
    return _Texts(
        values, found["ids"].tolist(), labels, groups, found["skipped"], found["messages"]
    )


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


def _read_jsonl(path: Path, options: Options, usual_id: str) -> _Texts:
    """One text per line; a label may be missing or null, but not from all lines."""
    bad: list[str] = []
    rows: list[tuple[int, str, str | None, str]] = []  # line number, text, id and label
    groups: list[str] = []
    fields: list[str] = []
    with reading(path, "JSON lines"), path.open(encoding="utf-8-sig", errors="replace") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                text = _field(record, options.text or "text", (str,), "--text")
                name = record.get(usual_id) if options.id is None else _field(record, options.id)
                label = options.label and record.get(options.label)
                label = "" if label in (None, "") else str(_field(record, str(options.label)))
                group = "" if options.groups is None else str(_field(record, options.groups))
            except (ValueError, RecursionError) as error:
                bad.append(f"{path} line {number}: {error if str(error) else 'nested too deep'}")
                continue
            fields = fields or [str(key)[:40] for key in list(record)[:8]]
            rows.append((number, text, str(name) if isinstance(name, _SCALARS) else None, label))
            groups.append(group)
    if not rows and not bad:
        raise FileFormatError(f"{path} holds no lines")
    messages = report_bad_rows(path, bad, len(rows) + len(bad), options.skip_bad)
    labels = [label for *_, label in rows] if options.label is not None else None
    if labels is not None and not any(labels):
        known = ", ".join(map(repr, fields))
        raise InputError(
            f"{path}: no line has a label in the field {options.label!r}; fields are {known}"
        )
    # A line without an id gets its number, which can't be mistaken for another line's id.
    word = "line " if any(name is not None for _, _, name, _ in rows) else ""
    ids = [f"{word}{number}" if name is None else name for number, _, name, _ in rows]
    texts = [text for _, text, *_ in rows]
    return _Texts(texts, ids, labels, groups if options.groups else None, tuple(bad), messages)


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
