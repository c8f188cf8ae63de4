"""What the paper says, statement by statement, and what the records say of each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from selfview.paper.datasets import KNOWN
from selfview.paper.metrics import METRICS
from selfview.paper.plan import Choice
from selfview.paper.printed import Printed
from selfview.paper.records import Shelf
from selfview.paper.results import Cell, Table, crossing, panels

RECIPE, DEFAULT, RAW = "Ours (paper's recipe)", "Ours (our default)", "raw features"
PLACED = (
    ("table2", "linear", "linear accuracy"),
    ("table2", "graph", "graph accuracy"),
    ("table3", "mine", "MINE"),
    ("table4", "acc", "k-means accuracy"),
    ("table4", "rss", "residuals (RSS)"),
)
# Rows that stand in this order in the paper.
ORDERED = (
    ("table5", "views", ("NP", "RP", "VAT")),
    ("table5", "views", ("NP", "RP+VAT")),
    ("table6", "batch norm", ("No-BN", "EN-CL BN")),
    ("table6", "batch norm", ("CL-BN", "EN-CL BN")),
    ("table6", "batch norm", ("CL-BN", "No-BN")),
)


@dataclass(frozen=True)
class Statement:
    """Something that the paper says, and what the records say of it."""

    piece: str
    claim: str
    found: str = "not run yet"
    holds: bool | None = None  # None: not all of it is on record
    clear: bool = True  # is it beyond the deviations over seeds?

    def __str__(self) -> str:
        unclear = self.holds is not None and not self.clear
        return f"{self.claim}. Here: {self.found}." + " *Not a clear difference.*" * unclear


def statements(tables: Mapping[str, Table], choice: Choice, shelf: Shelf) -> list[Statement]:
    """All statements of the paper that the tables and figures of a choice can check."""
    found: list[Statement] = []
    for name, metric, title in PLACED:
        if name in tables:
            found += _places(tables[name], metric, title)
    if "table2" in tables:
        found += _reached(tables["table2"])
    for name, title, rows in ORDERED:
        if name in tables:
            found += _orders(tables[name], rows, title)
    return found + list(_temperature(choice, shelf))


def number(cell: Cell | Printed, decimals: int = 1) -> str:
    """A mean with its deviation, and how many seeds it is of where some are missing."""
    deviation = "" if cell.deviation is None else f" ± {cell.deviation:.{decimals}f}"
    seeds = ""
    if isinstance(cell, Cell) and not cell.complete:
        seeds = f" ({cell.n} of {cell.expected} seeds)"
    return f"{cell.mean:.{decimals}f}{deviation}{seeds}"


def _places(table: Table, metric: str, title: str) -> Iterator[Statement]:
    """Is ours in the paper's place among the paper's methods, or next to it within the noise?"""
    for j, column in enumerate(table.columns):
        ours = table.cell("Ours", column.dataset, column.metric)
        if column.metric != metric or ours is None or ours.printed is None:
            continue
        theirs = {
            row.title: cell
            for row, cell in zip(table.rows, table.column(j), strict=True)
            if cell.printed is not None
        }
        more = METRICS[metric].more_is_better
        means = sorted((c.printed.mean for c in theirs.values() if c.printed), reverse=more)
        place = means.index(ours.printed.mean) + 1
        claim = f"{KNOWN[column.dataset].title}, {title}: ours is number {place} of {len(means)}"
        missing = [row for row, cell in theirs.items() if cell.mean is None]
        if ours.rank is None:
            yield Statement(table.piece.name, claim)
            continue
        found = f"number {ours.rank} of {len(means) - len(missing)}"
        if missing:
            yield Statement(
                table.piece.name, claim, f"{found} so far; not run yet: {', '.join(missing)}"
            )
            continue
        off = abs(ours.rank - place)
        holds = off == 0 or (off == 1 and not ours.disagrees)
        yield Statement(table.piece.name, claim, found, holds, off == 0 or ours.disagrees)


def _reached(table: Table) -> Iterator[Statement]:
    """Is our linear accuracy the paper's or above, within the deviations of both?"""
    for column in table.columns:
        ours = table.cell("Ours", column.dataset, "linear")
        if column.metric != "linear" or ours is None or ours.printed is None:
            continue
        claim = f"{KNOWN[column.dataset].title}: a linear accuracy of {number(ours.printed)}"
        if ours.mean is None:
            yield Statement(table.piece.name, claim)
            continue
        gap = ours.mean - ours.printed.mean
        apart = _apart(ours, ours.printed)
        yield Statement(
            table.piece.name,
            claim,
            f"{number(ours)}, {gap:+.1f} points",
            gap >= 0 or not apart,
            gap >= 0 or apart,
        )


def _orders(table: Table, rows: Sequence[str], title: str) -> Iterator[Statement]:
    """Do rows stand in the order of the paper, where the paper's differences are clear?"""
    for column in table.columns:
        cells = [table.cell(row, column.dataset, column.metric) for row in rows]
        theirs = [c.printed for c in cells if c is not None and c.printed is not None]
        if len(theirs) < len(rows) or not any(_apart(a, b) for a, b in pairwise(theirs)):
            continue
        ours = [c for c in cells if c is not None and c.mean is not None]
        words = [" ".join(part) for part in zip(rows, map(number, theirs), strict=True)]
        claim = f"{KNOWN[column.dataset].title}, {title}: {', '.join(words)}"
        if len(ours) < len(rows):
            run = f"{len(ours)} of {len(rows)} rows are run yet" if ours else "not run yet"
            yield Statement(table.piece.name, claim, run)
            continue
        pairs = [(a, b) for a, b in pairwise(ours) if _apart(a.printed, b.printed)]
        found = ", ".join(f"{row} {number(c)}" for row, c in zip(rows, ours, strict=True))
        holds = all(_same_order(a, b) for a, b in pairs)
        clear = all(_apart(a, b) for a, b in pairs)
        yield Statement(table.piece.name, claim, found, holds, clear)


def _apart(a: Cell | Printed | None, b: Cell | Printed | None) -> bool:
    """Are two numbers apart by more than their deviations?"""
    if a is None or b is None or a.mean is None or b.mean is None:
        return False
    return abs(a.mean - b.mean) > (a.deviation or 0.0) + (b.deviation or 0.0)


def _same_order(a: Cell, b: Cell) -> bool:
    """Are two cells in the same order here as in the paper?"""
    if a.mean is None or b.mean is None or a.printed is None or b.printed is None:
        return False
    return (b.mean - a.mean) * (b.printed.mean - a.printed.mean) > 0


def _temperature(choice: Choice, shelf: Shelf) -> Iterator[Statement]:
    """Figure 3: entropy rises with the temperature and passes that of the predictions near 1."""
    for dataset, _, arrays in panels("fig3", choice, shelf):
        claim = (
            f"{KNOWN[dataset].title}: the entropy of the targets rises with the temperature, and "
            "passes that of the predictions near 1"
        )
        if arrays is None:
            yield Statement("fig3", claim)
            continue
        x, y = arrays["temperatures"], arrays["target_entropies"]
        where = crossing(x, y, float(arrays["prediction_entropy"]))
        monotone = bool(np.all(np.diff(y) > 0))
        at = "passes it nowhere" if where is None else f"passes it at {where:.2f}"
        found = f"{'rises' if monotone else 'does not always rise'}, and {at}"
        yield Statement(
            "fig3", claim, found, monotone and where is not None and abs(where - 1) < 0.25
        )


def beyond(tables: Mapping[str, Table]) -> list[str]:
    """What the paper says nothing about: our default among its methods, and raw features."""
    lines: list[str] = []
    for name, metric, title in PLACED:
        if name in tables:
            lines += _default_places(tables[name], metric, title)
    if "table2" in tables:
        lines += _beside_raw(tables["table2"])
    return lines


def _default_places(table: Table, metric: str, title: str) -> Iterator[str]:
    """The place of our default among all methods but the paper's recipe, of those on record."""
    places = []
    for j, column in enumerate(table.columns):
        ours = table.cell(DEFAULT, column.dataset, metric)
        if column.metric != metric or ours is None or ours.mean is None:
            continue
        rivals = [
            cell.mean
            for row, cell in zip(table.rows, table.column(j), strict=True)
            if row.title not in (RECIPE, RAW) and cell.mean is not None
        ]
        more = METRICS[metric].more_is_better
        better = sum(m != ours.mean and (m > ours.mean) == more for m in rivals)
        places.append(f"{better + 1} of {len(rivals)} on {KNOWN[column.dataset].title}")
    if places:
        yield f"{title}: our default is number {', '.join(places)}, UMAP included."


def _beside_raw(table: Table) -> Iterator[str]:
    """Raw features are no method of the paper: where they win, that is said."""
    for column in table.columns:
        raw = table.cell(RAW, column.dataset, "linear")
        if column.metric != "linear" or raw is None or raw.mean is None:
            continue
        cells = {row: table.cell(row, column.dataset, "linear") for row in (RECIPE, DEFAULT)}
        known = {row: cell for row, cell in cells.items() if cell is not None and cell.mean}
        beaten = [f"{row} {number(c)}" for row, c in known.items() if (c.mean or 0) < raw.mean]
        kept = [f"{row} {number(c)}" for row, c in known.items() if (c.mean or 0) >= raw.mean]
        about = f"{KNOWN[column.dataset].title}, linear: raw features {number(raw)}"
        parts = (("beat", beaten), ("don't beat", kept))
        said = [f"{verb} {' and '.join(rows)}" for verb, rows in parts if rows]
        if said:
            yield f"{about} {', '.join(said)}."
