"""Texts: tf-idf of the most frequent words, as in the paper; new texts use the same vocabulary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from selfview.data.dataset import Dataset, Options
from selfview.data.preparation import Preparation
from selfview.data.text_files import read_texts
from selfview.errors import InputError

_QUOTE = re.compile(r"(writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>)")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*:|[ \t]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class TextPreparation(Preparation):
    """Sublinear tf-idf of a fixed vocabulary, l2 rows times sqrt(number of words).

    ``text`` is the field of a .jsonl file or the column of a table that holds the text, ``id`` that
    of the row's name ("id" of a .jsonl file if None), which a new file may have or not. A .txt file
    holds a text a line, or is one text if the fit was on a folder of ``files``. With ``posts``, a
    text that starts with a news header is stripped of header, quotes and signature first, as 20news
    is. ``sheet`` is that of a workbook, if one was named.
    """

    vocabulary: tuple[str, ...]
    idf: NDArray[np.float64]
    text: str = "text"
    posts: bool = False
    id: str | None = None
    files: bool = False
    sheet: str | None = None

    kind: ClassVar[str] = "text"
    suffixes: ClassVar[str] = ".txt files or a folder of them, .jsonl, or a table"

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
        whole = self.files or self.posts
        chosen = replace(options, text=self.text, sheet=options.sheet or self.sheet)
        texts = read_texts(path, chosen, id=self.id, whole=whole)
        own = [strip_post(t) if self.posts and looks_like_post(t) else t for t in texts.values]
        X = self.rows(own)
        blank, total = int((np.diff(X.indptr) == 0).sum()), len(own)
        note = f"{blank:,} of {total:,} texts hold no known word, their rows are zero"
        return texts.dataset(path, X, self, note * bool(blank))


def fit_text(path: Path, options: Options) -> Dataset:
    """Rows of texts, with a vocabulary of their most frequent words."""
    texts = read_texts(path, options)
    if path.suffix.lower() == ".txt":
        _check_is_text(path, "\n".join(texts.values[:1000]))
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
    how = replace(preparation, id=options.id, files=path.is_dir(), sheet=options.sheet)
    return texts.dataset(path, X[keep], how, note * (keep.size < n), keep)


def _check_is_text(path: Path, text: str) -> None:
    """Raise InputError for a text of numbers: most often a table under a wrong name."""
    words = text[:100_000].replace(",", " ").replace(";", " ").split()
    if len(words) >= 4 and all(_NUMBER.fullmatch(word) for word in words[:-1]):
        raise InputError(f"{path} holds numbers, not a text: save them as .csv or .npy")


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
