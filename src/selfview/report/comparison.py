"""The table of a comparison: one row a method, the best of every column marked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from selfview.paper.formats import aligned, pipes
from selfview.paper.metrics import METRICS, Metric

COLUMNS = tuple(metric for metric in METRICS.values() if metric.measure != "cost")
NOTHING = "-"  # where there is no score


@dataclass(frozen=True)
class Record:
    """The result of one variant of one method."""

    study: str  # of which data and settings
    method: str
    title: str
    variant: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0  # of fit and transform
    parameters: int | None = None
    error: str = ""
    notes: tuple[str, ...] = ()  # warnings that the fit gave


@dataclass(frozen=True)
class Cell:
    """What stands in a place of the table, and whether it is the best of its column."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Table:
    """Headings, rows of as many cells, and lines that stand below."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    footnotes: tuple[str, ...]


def tabulate(records: Sequence[Record]) -> Table:
    """The table of a comparison's records.

    Of a method's variants the one with the better first score is shown, and named. A method that
    failed has no scores, and its reason stands below.
    """
    shown = shown_records(records)
    columns = [c for c in COLUMNS if any(c.value in record.scores for record in shown)]
    scored = [score_cells([r.scores.get(c.value, math.nan) for r in shown], c) for c in columns]
    rows, footnotes = [], []
    for number, record in enumerate(shown):
        title = record.title + (f" ({record.variant})" if record.variant else "")
        scores = [column[number] for column in scored]
        seconds = "failed" if record.error else f"{record.seconds:.1f}"
        size = NOTHING if record.parameters is None else f"{record.parameters:,}"
        rows.append((Cell(title), *scores, Cell(seconds), Cell(size)))
        footnotes += [f"{record.title}: {line}" for line in (record.error, *record.notes) if line]
    headings = ("method", *(column.title for column in columns), "seconds", "parameters")
    return Table(headings, tuple(rows), tuple(footnotes))


def score_cells(values: Sequence[float], metric: Metric) -> list[Cell]:
    """The cells of a column, NaN for no score. All that print as the best value does are marked."""
    known = [value for value in values if math.isfinite(value)]
    texts = [
        f"{value * metric.factor:z.{metric.decimals}f}" if math.isfinite(value) else NOTHING
        for value in values
    ]
    best = (max if metric.more_is_better else min)(known, default=math.nan)
    return [Cell(text, bool(known) and text == texts[values.index(best)]) for text in texts]


def markdown(table: Table) -> str:
    """The table in Markdown, the best of every column in bold."""
    rows = [[f"**{c.text}**" if c.best else c.text for c in row] for row in table.rows]
    return pipes([table.headings, *rows]) + "".join(f"\n{line}\n" for line in table.footnotes)


def plain(table: Table) -> str:
    """The table in aligned text, the best of every column with a star."""
    rows = [[first.text, *(c.text + " *"[c.best] for c in cells)] for first, *cells in table.rows]
    heads = [table.headings[0], *(f"{heading} " for heading in table.headings[1:])]
    return "\n".join([aligned([heads, *rows]), *table.footnotes, "* best of its column"])


def shown_records(records: Sequence[Record]) -> list[Record]:
    """One record for each method: of the variant with the better first score."""
    best: dict[str, Record] = {}
    for record in records:
        other = best.get(record.method)
        if other is None or _merit(record) > _merit(other):
            best[record.method] = record
    return list(best.values())


def _merit(record: Record) -> float:
    """The first of the columns' scores that the record has, turned so that more is better."""
    for metric in COLUMNS:
        value = record.scores.get(metric.value, math.nan)
        if math.isfinite(value):
            return value if metric.more_is_better else -value
    return -math.inf
