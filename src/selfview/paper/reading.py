"""What the records say of the paper's claims, in sentences that are made from the numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from selfview.paper.datasets import KNOWN
from selfview.paper.figures import crossing, panels
from selfview.paper.metrics import METRICS
from selfview.paper.plan import Choice
from selfview.paper.printed import Printed
from selfview.paper.records import Shelf
from selfview.paper.results import Cell, Table

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
    ("table5", "Views", ("NP", "RP", "VAT")),
    ("table5", "Views", ("NP", "RP+VAT")),
    ("table6", "Batch norm", ("No-BN", "EN-CL BN")),
    ("table6", "Batch norm", ("CL-BN", "EN-CL BN")),
    ("table6", "Batch norm", ("CL-BN", "No-BN")),
)


@dataclass(frozen=True)
class Finding:
    """A sentence, and whether it agrees with the paper; None where the paper says nothing.

    `clear` is False where the difference it rests on is within the noise of the seeds; `count` is
    how many statements the sentence joins.
    """

    agrees: bool | None
    text: str
    clear: bool = True
    count: int = 1


def findings(tables: Mapping[str, Table], choice: Choice, shelf: Shelf) -> list[Finding]:
    """All that can be said from what is on record."""
    found: list[Finding] = []
    for name, metric, title in PLACED:
        if name in tables:
            found += _first_places(tables[name], metric, title)
            found += _default_places(tables[name], metric, title)
    if "table2" in tables:
        found += _reached(tables["table2"], choice)
        found += _beside_raw(tables["table2"])
    for name, title, rows in ORDERED:
        if name in tables:
            found += _order(tables[name], rows, title, choice)
    return found + list(_temperature(choice, shelf))


def _number(cell: Cell) -> str:
    deviation = "" if cell.deviation is None else f" ± {cell.deviation:.1f}"
    seeds = "" if cell.complete else f" ({cell.n} of {cell.expected} seeds)"
    return f"{cell.mean:.1f}{deviation}{seeds}"


def _first_places(table: Table, metric: str, title: str) -> list[Finding]:
    """The place of ours among the paper's methods, here and there, in a sentence for each outcome.

    It agrees if it is the same, or the next one without a clear difference.
    """
    said: dict[tuple[bool, bool], list[str]] = {}
    for j, column in enumerate(table.columns):
        cell = table.cell("Ours", column.dataset, column.metric)
        rivals = sum(c.rank is not None for c in table.column(j))
        if column.metric != metric or cell is None or cell.rank is None or rivals < 3:
            continue
        off = abs(cell.rank - (cell.printed_rank or 0))
        key = (off == 0 or (off == 1 and not cell.disagrees), off == 0 or cell.disagrees)
        where = f"{cell.rank} of {rivals} on {KNOWN[column.dataset].title}"
        said.setdefault(key, []).append(f"{where} (in the paper {cell.printed_rank})")
    text = f"{title}: the paper's recipe is number"
    return [
        Finding(agrees, f"{text} {', '.join(places)}.", clear, len(places))
        for (agrees, clear), places in sorted(said.items())
    ]


def _default_places(table: Table, metric: str, title: str) -> list[Finding]:
    """The place of our default in the place of the paper's recipe, where all methods are there."""
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
    text = (
        f"{title}: our default is number {', '.join(places)} (the paper's other methods and UMAP)."
    )
    return [Finding(None, text)] if places else []


def _reached(table: Table, choice: Choice) -> Iterator[Finding]:
    """Does ours reach the paper's linear accuracy, less its deviation?"""
    for column in table.columns:
        recipe = table.cell(RECIPE, column.dataset, "linear")
        if column.metric != "linear" or recipe is None or recipe.printed is None:
            continue
        printed, epochs = recipe.printed, choice.budget.epochs(column.dataset, "selfview")
        for row in (RECIPE, DEFAULT):
            cell = table.cell(row, column.dataset, "linear")
            if cell is not None and cell.mean is not None:
                reached = cell.mean >= printed.mean - (printed.deviation or 0.0)
                yield Finding(
                    reached if row == RECIPE else None,  # of our default the paper says nothing
                    f"{row} on {KNOWN[column.dataset].title}: {_number(cell)} in the linear probe "
                    f"after {epochs:,} epochs; the paper prints {printed.mean:.1f} ± "
                    f"{printed.deviation:.1f} after 5,000.",
                )


def _beside_raw(table: Table) -> Iterator[Finding]:
    """Raw features are no method of the paper: where they win, that is said."""
    for column in table.columns:
        raw, ours = (table.cell(row, column.dataset, "linear") for row in (RAW, DEFAULT))
        if column.metric != "linear" or raw is None or ours is None:
            continue
        if raw.mean is not None and ours.mean is not None:
            better = "beat" if raw.mean > ours.mean else "don't beat"
            yield Finding(
                None,
                f"Raw features {better} our ten numbers in the linear probe on "
                f"{KNOWN[column.dataset].title}: {_number(raw)} against {_number(ours)}.",
            )


def _order(table: Table, rows: tuple[str, ...], title: str, choice: Choice) -> Iterator[Finding]:
    """Do rows stand in the order of the paper, where the paper's differences are clear?"""
    for column in table.columns:
        cells = [table.cell(row, column.dataset, column.metric) for row in rows]
        known = [c for c in cells if c is not None and c.mean is not None and c.printed is not None]
        pairs = [(a, b) for a, b in pairwise(known) if _apart(a.printed, b.printed)]
        if len(known) < len(rows) or not pairs:
            continue
        numbers = ", ".join(f"{row} {_number(c)}" for row, c in zip(rows, known, strict=True))
        theirs = ", ".join(f"{c.printed.mean:.1f}" for c in known if c.printed is not None)
        epochs = choice.fits(table.piece, table.rows[0], column.dataset)[0][0].epochs
        where = f"{KNOWN[column.dataset].title}, {epochs:,} epochs"
        yield Finding(
            all(_same_order(a, b) for a, b in pairs),
            f"{title} on {where}: {numbers} (the paper: {theirs}).",
            all(_apart(a, b) for a, b in pairs),
        )


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


def _temperature(choice: Choice, shelf: Shelf) -> Iterator[Finding]:
    """Figure 3: entropy rises with the temperature and passes that of the predictions near 1."""
    for dataset, _, arrays in panels("fig3", choice, shelf):
        if arrays is None:
            continue
        x, y = arrays["temperatures"], arrays["target_entropies"]
        where = crossing(x, y, float(arrays["prediction_entropy"]))
        monotone = bool(np.all(np.diff(y) > 0))
        at = "nowhere" if where is None else f"at temperature {where:.2f}"
        rises = "rises" if monotone else "doesn't always rise"
        yield Finding(
            monotone and where is not None and abs(where - 1) < 0.25,
            f"Entropy of the targets on {KNOWN[dataset].title} {rises} with the temperature "
            f"and passes that of the predictions {at} (the paper: about 1).",
        )
