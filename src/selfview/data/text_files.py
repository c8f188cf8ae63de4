"""Texts in files: .txt, a folder of them, .jsonl, and a column of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from selfview.data import json_lines
from selfview.data.dataset import Array, Dataset, Options
from selfview.data.folders import find_files, kind_of, read_each
from selfview.data.guard import notify, reading, regular_file, report_bad_rows
from selfview.data.json_lines import records, row_name
from selfview.data.labels import read_labels
from selfview.data.preparation import Preparation
from selfview.data.table_rows import SIDES
from selfview.data.tables import TABLES, existing_column, open_table
from selfview.errors import FileFormatError, InputError
from selfview.tables.parsing import as_texts

SUFFIXES = (".txt",)
_FILE_LIMIT = 256 * 2**20
_SNIPPET = 200  # characters of a text that are kept to show, at least
_WHOLE = 4_000  # and at most
_SNIPPETS = 10_000_000  # characters of all
_SCALARS = (str, int, float, bool)


def snippets_of(texts: Sequence[str]) -> Array:
    """Each text on one line; its beginning, if all would be too much to keep."""
    length = max(_SNIPPET, min(_WHOLE, _SNIPPETS // max(1, len(texts))))
    return np.array([" ".join(text[: 5 * length].split())[:length] for text in texts])


@dataclass(frozen=True)
class Texts:
    """Texts, and what is known of each."""

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


def read_texts(
    path: Path, options: Options, *, id: str | None = None, whole: bool = False
) -> Texts:
    """The texts of a .jsonl file, of a table's column, of a .txt file's lines, or of a folder.

    `id` is the field or column of their names, if the options name none; it may be missing. With
    `whole`, a .txt file is one text.
    """
    kind = kind_of(path)
    if kind in json_lines.SUFFIXES:
        return _read_json(regular_file(path), options, id or "id")
    if kind in TABLES:
        return _read_table(path, options, id)
    if not whole and path.is_file():
        return _read_lines(path, options)
    values: list[str] = []
    files = find_files(path, SUFFIXES)
    found = read_each(path, files, lambda _, file: values.append(_read_text_file(file)), options)
    y, classes = found["y"], found["classes"]
    labels = None if y is None else [classes[i] for i in y]
    groups = None if found["groups"] is None else found["groups"].tolist()
    return Texts(values, found["ids"].tolist(), labels, groups, found["skipped"], found["messages"])


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


def _read_json(path: Path, options: Options, usual_id: str) -> Texts:
    """One text per object; a label may be missing or null, but not from all."""
    unit = row_name(path)
    bad: list[str] = []
    rows: list[tuple[int, str, str | None, str]] = []  # its number, text, id and label
    groups: list[str] = []
    fields: list[str] = []
    for number, record in records(path):
        try:
            if isinstance(record, str):
                raise ValueError(record)
            text = _field(record, options.text or "text", (str,), "--text")
            name = record.get(usual_id) if options.id is None else _field(record, options.id)
            label = options.label and record.get(options.label)
            label = "" if label in (None, "") else str(_field(record, str(options.label)))
            group = "" if options.groups is None else str(_field(record, options.groups))
        except ValueError as error:
            bad.append(f"{path} {unit} {number}: {error}")
            continue
        fields = fields or [str(key)[:40] for key in list(record)[:8]]
        rows.append((number, text, str(name) if isinstance(name, _SCALARS) else None, label))
        groups.append(group)
    if not rows and not bad:
        raise FileFormatError(f"{path} holds no {unit}s")
    messages = report_bad_rows(path, bad, len(rows) + len(bad), options.skip_bad)
    labels = [label for *_, label in rows] if options.label is not None else None
    if labels is not None and not any(labels):
        known = ", ".join(map(repr, fields))
        raise InputError(
            f"{path}: no {unit} has a label in the field {options.label!r}; fields are {known}"
        )
    # A row without an id gets its number, which can't be mistaken for another row's id.
    word = f"{unit} " if any(name is not None for _, _, name, _ in rows) else ""
    ids = [f"{word}{number}" if name is None else name for number, _, name, _ in rows]
    texts = [text for _, text, *_ in rows]
    return Texts(texts, ids, labels, groups if options.groups else None, tuple(bad), messages)


def _field(
    record: dict[str, Any], name: str, types: tuple[type, ...] = _SCALARS, option: str = ""
) -> Any:
    if name not in record:
        others = ", ".join(repr(str(key)[:40]) for key in list(record)[:8]) or "none"
        lists = [str(key)[:40] for key, value in record.items() if isinstance(value, list)]
        say = f"; name one with {option}" if option and record else ""
        say += f", or a list of numbers with --vector {lists[0]}" if say and lists else ""
        raise ValueError(f"has no field {name!r}, but {others}{say}")
    if not isinstance(record[name], types):
        raise ValueError(f"field {name!r} is a {type(record[name]).__name__}, not text")
    return record[name]


def _read_lines(path: Path, options: Options) -> Texts:
    """A text a line; empty lines are none."""
    for name in ("labels_from_name", "groups_from_name"):
        if getattr(options, name) is not None:
            raise InputError(f"{path}: {name} is for folders, this file holds a text a line")
    lines = [(i, line.strip()) for i, line in enumerate(_read_text_file(path).splitlines(), 1)]
    texts = [(i, line) for i, line in lines if line]
    if not texts:
        raise FileFormatError(f"{path} holds no text")
    return Texts([line for _, line in texts], [f"line {i}" for i, _ in texts], None, None, (), ())


def _read_table(path: Path, options: Options, id: str | None) -> Texts:
    """The texts in a column of a table."""
    text = options.text or "text"
    named = {side: getattr(options, side) for side in SIDES}
    file = open_table(path, options.header, [text, *filter(None, named.values())], options.sheet)
    existing_column(file, text, "text")
    for side, column in named.items():
        if column is not None:
            existing_column(file, column, side)
    usual = id or next(iter(file.index), None)
    named["id"] = named["id"] or (usual if usual in file.columns else None)
    columns = {"text": text} | {side: c for side, c in named.items() if c is not None}
    values: dict[str, list[str]] = {what: [] for what in columns}
    bad: list[str] = []
    total = 0
    for block in file.blocks(list(dict.fromkeys(columns.values()))):
        read = {what: as_texts(block.values[column]) for what, column in columns.items()}
        there = np.array([t is not None for t in read["text"]], bool)
        bad += [f"{block.places[i]}: {text!r} is empty" for i in np.flatnonzero(~there)]
        bad += block.bad
        total += len(block) + len(block.bad)
        for what, found in read.items():
            values[what] += ["" if t is None else t for t in found[there]]
    if not total:
        raise FileFormatError(f"{path} holds no rows")
    messages = report_bad_rows(path, bad, total, options.skip_bad)
    ids = values.get("id") or [f"row {i}" for i in range(len(values["text"]))]
    return Texts(
        values["text"], ids, values.get("label"), values.get("groups"), tuple(bad), messages
    )
