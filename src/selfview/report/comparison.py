"""The table of a comparison: one row a method, the best of every column marked."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selfview.cli.comparison import Record

# Score, heading, factor, decimals, and whether more is better; in the order of the columns.
COLUMNS = (
    ("linear_accuracy", "linear %", 100, 1, True),
    ("graph_accuracy", "graph %", 100, 1, True),
    ("mine", "MINE nats", 1, 2, True),
    ("kmeans_acc", "ACC %", 100, 1, True),
    ("kmeans_nmi", "NMI %", 100, 1, True),
    ("kmeans_ari", "ARI %", 100, 1, True),
    ("regression_rss", "RSS", 1, 1, False),
    ("regression_r2", "R2", 1, 3, True),
    ("knn_accuracy", "k-NN %", 100, 1, True),
    ("silhouette", "silhouette", 1, 3, True),
    ("effective_rank", "effective rank", 1, 1, True),
)
NOTHING = "-"  # where there is no score


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


def tabulate(records: Sequence["Record"]) -> Table:
    """The table of a comparison's records.

    Of a method's variants the one with the better first score is shown, and named. A method that
    failed has no scores, and its reason stands below.
    """
    shown = _one_for_each_method(records)
    columns = [c for c in COLUMNS if any(c[0] in record.scores for record in shown)]
    scored = [
        score_cells([r.scores.get(name, math.nan) for r in shown], factor, decimals, more=more)
        for name, _, factor, decimals, more in columns
    ]
    rows, footnotes = [], []
    for number, record in enumerate(shown):
        title = record.title + (f" ({record.variant})" if record.variant else "")
        scores = [column[number] for column in scored]
        seconds = "failed" if record.error else f"{record.seconds:.1f}"
        size = NOTHING if record.parameters is None else f"{record.parameters:,}"
        rows.append((Cell(title), *scores, Cell(seconds), Cell(size)))
        footnotes += [f"{record.title}: {line}" for line in (record.error, *record.notes) if line]
    headings = ("method", *(heading for _, heading, *_ in columns), "seconds", "parameters")
    return Table(headings, tuple(rows), tuple(footnotes))


def score_cells(
    values: Sequence[float], factor: int, decimals: int, *, more: bool = True
) -> list[Cell]:
    """The cells of a column, NaN for no score. All that print as the best value does are marked."""
    known = [value for value in values if math.isfinite(value)]
    texts = [
        f"{value * factor:.{decimals}f}" if math.isfinite(value) else NOTHING for value in values
    ]
    best = texts[values.index((max if more else min)(known))] if known else None
    return [Cell(text, text == best) for text in texts]


def markdown(table: Table) -> str:
    """The table in Markdown, the best of every column in bold."""
    lines = [table.headings, ("---", *("---:" for _ in table.headings[1:]))]
    lines += [tuple(f"**{c.text}**" if c.best else c.text for c in row) for row in table.rows]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return text + "".join(f"\n{line}\n" for line in table.footnotes)


def plain(table: Table) -> str:
    """The table in aligned text, the best of every column with a star."""
    cells = [table.headings]
    cells += [tuple(c.text + "*" if c.best else c.text + " " for c in row) for row in table.rows]
    widths = [max(len(row[i].rstrip()) + 1 for row in cells) for i in range(len(table.headings))]
    lines = []
    for number, row in enumerate(cells):
        padded = [f"{cell.rstrip()} " if number == 0 else cell for cell in row]
        first, *others = zip(padded, widths, strict=True)
        line = first[0].ljust(first[1]) + "".join("  " + cell.rjust(w) for cell, w in others)
        lines.append(line.rstrip())
    return "\n".join([*lines, *table.footnotes, "* best of its column"])


def _one_for_each_method(records: Sequence["Record"]) -> list["Record"]:
    best: dict[str, Record] = {}
    for record in records:
        other = best.get(record.method)
        if other is None or _merit(record) > _merit(other):
            best[record.method] = record
    return list(best.values())


def _merit(record: "Record") -> float:
    """The first of the columns' scores that the record has, turned so that more is better."""
    for name, _, _, _, more in COLUMNS:
        value = record.scores.get(name, math.nan)
        if math.isfinite(value):
            return value if more else -value
    return -math.inf
