"""Tables of mixed columns in files: what each column is, and rows of floats, block by block."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from selfview.data.table_files import TableBlock, TableFile, TableRows, as_text, text_array
from selfview.errors import InputError
from selfview.tables.columns import Boolean, Column, Date, Table
from selfview.tables.encoding import Notes, TableEncoder
from selfview.tables.frames import Values
from selfview.tables.learning import Choice, learn, plain_columns
from selfview.tables.parsing import as_numbers, as_texts

NO_NUMBER = " is not a number"
LARGEST = float(np.finfo(np.float32).max)
SAMPLE_ROWS, SAMPLE_CELLS = 50_000, 2_000_000  # that columns are learned from, at most


def looks_plain(table: TableFile, columns: Sequence[str], choice: Choice) -> Table | None:
    """The table as its first rows tell it, if they hold nothing but numbers; else None."""
    first = next(iter(table.blocks(columns)), None)
    if first is None or not len(first) or first.bad:
        return None
    found = plain_columns(first.values, choice)
    if found is None or not any(column.features for column in found):
        return None
    return Table(tuple(found), as_is=True)


def learn_table(table: TableFile, columns: Sequence[str], choice: Choice) -> Table:
    """What the columns of a table are, from all its rows or a random sample of them."""
    rows = max(1, min(SAMPLE_ROWS, SAMPLE_CELLS // len(columns)))
    values, numbers = _sample(table, columns, rows)
    if not len(numbers):
        raise InputError(f"{table.path} holds no rows that can be read")
    try:
        return learn(values, choice, numbers)
    except InputError as error:
        raise InputError(f"{table.path}: {error}") from error


def _sample(
    table: TableFile, columns: Sequence[str], rows: int
) -> tuple[dict[str, Values], Values]:
    """Up to so many rows, drawn at random but in their order, and their numbers."""
    rng = np.random.default_rng(0)
    share, total = 1.0, 0
    kept: list[tuple[Values, Values, TableBlock]] = []  # draws, row numbers, rows
    for block in table.blocks(columns):
        draws = rng.random(len(block))
        kept.append((draws, np.arange(total, total + len(block)), block))
        total += len(block)
        while sum(int((d < share).sum()) for d, *_ in kept) > rows:
            share /= 2
        kept = [(d[d < share], n[d < share], b.take(np.flatnonzero(d < share))) for d, n, b in kept]
    values = {c: _joined([b.values[c] for *_, b in kept]) for c in columns}
    return values, np.concatenate([np.empty(0, np.intp), *(n for _, n, _ in kept)])


def _joined(parts: list[Values]) -> Values:
    """One column; as texts, if only some parts are."""
    kinds = {part.dtype.kind for part in parts}
    if len(kinds) > 1 and not kinds <= {*"iuf"}:
        parts = [as_texts(part) for part in parts]
    return np.concatenate(parts) if parts else np.empty(0)


def encoded_chunks(
    table: TableFile, encoder: TableEncoder, aside: Sequence[str], notes: Notes
) -> Iterator[TableRows]:
    """The features of good rows, texts of other columns beside them, reasons for the bad."""
    kinds = {column.name: column for column in encoder.table.used}
    there = [c.name for c in encoder.table.used if c.name in table.columns]
    for block in table.blocks(list(dict.fromkeys((*there, *aside)))):
        read = encoder.read(block.values, len(block))
        good, reasons = _sorted_out(block, encoder.bad(read), kinds)
        texts = {c: text_array(as_texts(block.values[c][good])) for c in aside}
        X = np.empty((0, len(encoder.table.features)), np.float32)
        if good.any():  # scikit-learn takes no empty rows
            X = encoder.rows({name: values[good] for name, values in read.items()}, notes)
        yield TableRows(X, texts, reasons)


def number_chunks(
    table: TableFile, columns: Sequence[str], aside: Sequence[str]
) -> Iterator[TableRows]:
    """The numbers of rows without a gap, texts of other columns beside them, reasons for the bad.

    True and False are 1 and 0.
    """
    for block in table.blocks(list(dict.fromkeys((*columns, *aside)))):
        read = {name: as_numbers(block.values[name]) for name in columns}
        bad = {name: ~(np.abs(values) <= LARGEST) for name, values in read.items()}
        good, reasons = _sorted_out(block, bad, {})
        X = np.empty((int(good.sum()), len(columns)), np.float32)
        for i, values in enumerate(read.values()):
            X[:, i] = values[good]
        texts = {c: _as_written(block.values[c][good]) for c in aside}
        yield TableRows(X, texts, reasons)


def _as_written(values: Values) -> Values:
    return text_array(values if values.dtype.kind == "O" else as_texts(values))


def _sorted_out(
    block: TableBlock, bad: Mapping[str, Values], kinds: Mapping[str, Column]
) -> tuple[Values, list[str]]:
    """Which rows can be read, and why each of the others can't; `bad` marks them by column."""
    good = ~np.any([np.zeros(len(block), bool), *bad.values()], axis=0)
    reasons = list(block.bad)
    for i in np.flatnonzero(~good):
        name = next(name for name, rows in bad.items() if rows[i])
        wrong = _wrong(kinds.get(name), as_text(block.values[name][i]))
        reasons.append(f"{block.places[i]}: column {name!r}{wrong}")
    return good, reasons


def _wrong(column: Column | None, text: str) -> str:
    """What is wrong with a value that can't be read."""
    if not text.strip():
        return " is empty"
    shown = ": " + repr(text if len(text) <= 30 else text[:30] + "...")
    if isinstance(column, Date):
        return f"{shown} is not a date as the others are"
    if isinstance(column, Boolean):
        return f"{shown} is not true or false"
    try:
        finite = math.isfinite(float(text))
    except ValueError:
        return shown + NO_NUMBER
    return f"{shown} is {'too large for float32' if finite else 'not finite'}"
