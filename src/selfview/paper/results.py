"""From records to what tables and figures show: means, deviations, places, arrays."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from selfview.paper.grid import Column, Fit, Piece, Row
from selfview.paper.metrics import METRICS, Metric
from selfview.paper.plan import Choice
from selfview.paper.printed import PRINTED, Printed
from selfview.paper.records import Arrays, Shelf, read_arrays

MARKED = ("table2", "table3", "table4")  # tables whose best three cells the paper marks


@dataclass(frozen=True)
class Cell:
    """A place of a table: our number, the paper's, and how they stand."""

    mean: float | None = None  # in the metric's unit of display
    deviation: float | None = None  # sample standard deviation over seeds; None for one seed
    n: int = 0
    expected: int = 0
    variant: str = ""  # which of the row's variants is shown, if it has several
    errors: tuple[str, ...] = ()
    epsilon: float | None = None
    printed: Printed | None = None
    not_applicable: bool = False  # the paper has the cell, and says N/A in it
    ratio: float | None = None  # to the first row, where the table shows it
    printed_ratio: float | None = None
    place: int | None = None  # 1 to 3 of its column
    rank: int | None = None  # among the rows on record that the paper has too
    printed_rank: int | None = None
    disagrees: bool = False  # with the paper's ranking, by more than the deviations

    @property
    def complete(self) -> bool:
        return self.n == self.expected


@dataclass(frozen=True)
class Table:
    """A table or sweep with its cells: cells[i][j] is row i, column j."""

    piece: Piece
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    cells: tuple[tuple[Cell, ...], ...]

    def column(self, number: int) -> list[Cell]:
        """The cells of a column from top to bottom."""
        return [row[number] for row in self.cells]

    def cell(self, row: str, dataset: str, metric: str) -> Cell | None:
        """The cell of a row of that title or printed name."""
        for i, each in enumerate(self.rows):
            for j, column in enumerate(self.columns):
                at = (column.dataset, column.metric)
                if row in (each.title, each.printed) and at == (dataset, metric):
                    return self.cells[i][j]
        return None


def tabulate(name: str, choice: Choice, shelf: Shelf) -> Table:
    """A table or sweep from what is on record."""
    piece = choice.piece(name)
    rows, columns = choice.rows(piece), choice.columns(piece)
    cells = [[_cell(piece, row, c, choice, shelf) for c in columns] for row in rows]
    # Raw features are what embeddings are held against, not one of them.
    contest = [cells[i] for i, row in enumerate(rows) if row.variants[0].method != "raw"]
    for j, column in enumerate(columns):
        in_column = [row[j] for row in contest]
        # Costs are no contest: table 1 has ratios instead of places.
        ranked = (
            _with_ratios(in_column)
            if name == "table1"
            else _ranked(in_column, METRICS[column.metric], name in MARKED)
        )
        for row_cells, cell in zip(contest, ranked, strict=True):
            row_cells[j] = cell
    return Table(piece, tuple(rows), tuple(columns), tuple(map(tuple, cells)))


def _cell(piece: Piece, row: Row, column: Column, choice: Choice, shelf: Shelf) -> Cell:
    metric = METRICS[column.metric]
    variants = []
    for fits in choice.fits(piece, row, column.dataset):
        name = _variant(fits[0]) if len(row.variants) > 1 else ""
        variants.append(_summary(fits, metric, shelf, name))
    sign = 1 if metric.more_is_better else -1
    # The better variant, as the paper reports it; one with all its seeds before one without.
    best = max(
        variants,
        key=lambda c: (c.mean is not None, c.complete, sign * (c.mean or 0.0)),
    )
    errors = tuple(dict.fromkeys(e for variant in variants for e in variant.errors))
    numbers = PRINTED.get(piece.name, {})
    at = (row.printed or "", column.printed or "", column.metric)
    absent = at not in numbers and any(at[1:] == other[1:] for other in numbers)
    return replace(
        best,
        printed=numbers.get(at),
        not_applicable=absent and row.printed is not None,
        errors=errors,
    )


def _variant(fit: Fit) -> str:
    return ", ".join(
        {"batch_norm": "BN" if value else "no BN"}.get(name, f"{name}={value}")
        for name, value in fit.settings
    )


def _summary(fits: Sequence[Fit], metric: Metric, shelf: Shelf, variant: str) -> Cell:
    records = [record for fit in fits if (record := shelf.find(fit)) is not None]
    values = [
        value for r in records if (value := r.value(metric.measure, metric.value)) is not None
    ]
    scaled = [value * metric.factor for value in values]
    errors = (r.error or str(r.scores.get(metric.measure, {}).get("error", "")) for r in records)
    epsilons = (r.resolved.get("epsilon") for r in records)
    return Cell(
        mean=statistics.fmean(scaled) if scaled else None,
        deviation=statistics.stdev(scaled) if len(scaled) > 1 else None,
        n=len(scaled),
        expected=len(fits),
        variant=variant,
        errors=tuple(dict.fromkeys(filter(None, errors))),
        epsilon=next((float(e) for e in epsilons if isinstance(e, int | float)), None),
    )


def _ranked(cells: Sequence[Cell], metric: Metric, marked: bool) -> list[Cell]:
    """The cells of a column with their places, and those that disagree with the paper found."""
    sign = -1 if metric.more_is_better else 1

    def shown(value: float) -> float:
        return sign * round(value, metric.decimals)

    # As in the paper, equal numbers share a place, and the next one takes the next.
    order = sorted({shown(cell.mean) for cell in cells if cell.mean is not None})
    both = [c for c in cells if c.mean is not None and c.printed is not None]
    ours = sorted(shown(c.mean) for c in both if c.mean is not None)
    theirs = sorted(sign * c.printed.mean for c in both if c.printed is not None)
    ranked = []
    for cell in cells:
        if cell.mean is None:
            ranked.append(cell)
            continue
        place = order.index(shown(cell.mean)) + 1
        changes: dict[str, object] = {"place": place if marked and place <= 3 else None}
        if cell.printed is not None:
            changes |= {
                "rank": (rank := ours.index(shown(cell.mean)) + 1),
                "printed_rank": (printed := theirs.index(sign * cell.printed.mean) + 1),
                "disagrees": rank != printed and any(_inverted(cell, other) for other in both),
            }
        ranked.append(replace(cell, **changes))  # type: ignore[arg-type]
    return ranked


def _inverted(one: Cell, other: Cell) -> bool:
    """Do two cells stand in one order here and in the other in the paper, both clearly so?

    Clearly is by more than the sum of the deviations. Three seeds may agree by chance, and one has
    no deviation: here, a cell's is at least the paper's.
    """
    if one.mean is None or other.mean is None or one.printed is None or other.printed is None:
        return False
    here, there = one.mean - other.mean, one.printed.mean - other.printed.mean
    noise = printed_noise = 0.0
    for cell in (one, other):
        printed = cell.printed.deviation if cell.printed is not None else None
        printed_noise += printed or 0.0
        noise += max(cell.deviation or 0.0, printed or 0.0)
    return here * there < 0 and abs(here) > noise and abs(there) > printed_noise


def _with_ratios(cells: Sequence[Cell]) -> list[Cell]:
    """Ratios to the first row: seconds of other machines compare in no other way."""
    first = cells[0] if cells else Cell()

    def ratio(value: float | None, base: float | None) -> float | None:
        return value / base if value is not None and base and math.isfinite(value) else None

    base = None if first.printed is None else first.printed.mean
    return [
        replace(
            cell,
            ratio=ratio(cell.mean, first.mean),
            printed_ratio=ratio(None if cell.printed is None else cell.printed.mean, base),
        )
        for cell in cells
    ]


def panels(name: str, choice: Choice, shelf: Shelf) -> list[tuple[str, str, Arrays | None]]:
    """Dataset, title and arrays of every run that a figure draws; None where they are missing."""
    piece = choice.piece(name)
    found = []
    for dataset in choice.datasets_of(piece):
        for row in choice.rows(piece):
            fit = choice.fits(piece, row, dataset)[0][0]
            arrays, record = None, shelf.find(fit)
            if record is not None and piece.drawn is not None:
                path = shelf.array_path(record.key, piece.drawn)
                arrays = read_arrays(path, piece.drawn)
            found.append((dataset, row.title, arrays))
    return found


def crossing(x: Any, y: Any, level: float) -> float | None:
    """Where a rising curve first passes a level, by linear interpolation.

    >>> crossing([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], 2.5)
    1.5
    """
    for i in range(1, len(x)):
        if y[i - 1] <= level <= y[i] and y[i] > y[i - 1]:
            share = (level - y[i - 1]) / (y[i] - y[i - 1])
            return float(x[i - 1] + share * (x[i] - x[i - 1]))
    return None
