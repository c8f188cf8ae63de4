"""A table as text, Markdown, CSV and LaTeX. Our number first, the paper's beside it."""

import csv
import io
from collections.abc import Callable

from selfview.paper.metrics import METRICS
from selfview.paper.printed import Printed
from selfview.paper.results import Cell, Table
from selfview.paper.subjects import KNOWN

PLACES = {1: "①", 2: "②", 3: "③"}
COLOURS = {1: "yellow", 2: "silver", 3: "brown"}  # the paper's own, in LaTeX
DISAGREES = "≠"
NOTHING = "–"
CSV_COLUMNS = (
    *("piece", "row", "dataset", "metric", "mean", "deviation", "seeds", "seeds_expected"),
    *("variant", "epsilon", "ratio", "place", "rank", "paper_mean", "paper_deviation"),
    *("paper_ratio", "paper_place", "paper_rank", "disagrees", "error"),
)
LEGEND = (
    "A cell is ours | the paper's: mean ± standard deviation over seeds (none for one seed). "
    "①②③: the best three embeddings of a column, in the paper yellow, grey and bronze; its own "
    "marks stand beside its numbers. ≠: another place than in the paper among the methods that "
    "both have, and clearly on the other side of one of them."
)


def heading(table: Table, number: int) -> str:
    """What stands above a column."""
    column = table.columns[number]
    return f"{KNOWN[column.dataset].title} {METRICS[column.metric].title}"


def ours(cell: Cell, decimals: int, mark: Callable[[str, int | None], str]) -> str:
    """Our number, with how many seeds where some are missing."""
    if cell.mean is None:
        return "failed" if cell.errors else NOTHING
    text = f"{cell.mean:.{decimals}f}"
    text += "" if cell.deviation is None else f"±{cell.deviation:.{decimals}f}"
    text += "" if cell.ratio is None else f" (×{cell.ratio:.1f})"
    text += "" if cell.complete else f" [{cell.n}/{cell.expected}]"
    return mark(text, cell.place) + (DISAGREES if cell.disagrees else "")


def theirs(cell: Cell, decimals: int, mark: Callable[[str, int | None], str]) -> str:
    """The paper's number."""
    printed, ratio = cell.printed, cell.printed_ratio
    if printed is None:
        return "N/A" if cell.not_applicable else NOTHING
    text = f"{printed.mean:.{decimals}f}"
    text += "" if printed.deviation is None else f"±{printed.deviation:.{decimals}f}"
    text += "" if ratio is None else f" (×{ratio:.1f})"
    return mark(text, printed.place)


def signed(text: str, place: int | None) -> str:
    """A number with the sign of its place."""
    return text + PLACES.get(place or 0, "")


def _bold(text: str, place: int | None) -> str:
    return f"**{text}**{PLACES[place]}" if place else text


def cell_text(table: Table, i: int, j: int, mark: Callable[[str, int | None], str]) -> str:
    """Both numbers of a cell."""
    cell, decimals = table.cells[i][j], METRICS[table.columns[j].metric].decimals
    mine = ours(cell, decimals, mark)
    # The paper draws its sweeps, and prints no numbers of them.
    return f"{mine} | {theirs(cell, decimals, mark)}" if table.piece.is_table else mine


def text(table: Table) -> str:
    """Aligned columns."""
    return _aligned(table) + "\n"


def _aligned(table: Table) -> str:
    lines = [["", *(heading(table, j) for j in range(len(table.columns)))]]
    for i, row in enumerate(table.rows):
        cells = [cell_text(table, i, j, signed) for j in range(len(table.columns))]
        lines.append([row.title, *cells])
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if j == 0 else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown(table: Table) -> str:
    """A Markdown table."""
    heads = ["", *(heading(table, j) for j in range(len(table.columns)))]
    lines = [heads, ["---", *("---:" for _ in table.columns)]]
    for i, row in enumerate(table.rows):
        cells = [cell_text(table, i, j, _bold) for j in range(len(table.columns))]
        lines.append([row.title, *(cell.replace("|", "\\|") for cell in cells)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def comma_separated(table: Table) -> str:
    """One line a cell, with everything that is known of it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row, cells in zip(table.rows, table.cells, strict=True):
        for column, cell in zip(table.columns, cells, strict=True):
            p = cell.printed or Printed(float("nan"))
            values = (
                *(table.piece.name, row.title, column.dataset, column.metric),
                *(_digits(cell.mean), _digits(cell.deviation), cell.n, cell.expected),
                *(cell.variant, _digits(cell.epsilon), _digits(cell.ratio), cell.place, cell.rank),
                *(p.mean if cell.printed else None, p.deviation, _digits(cell.printed_ratio)),
                *(p.place, cell.printed_rank, int(cell.disagrees), "; ".join(cell.errors)),
            )
            writer.writerow("" if value is None else value for value in values)
    return out.getvalue()


def _digits(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"


def latex(table: Table) -> str:
    """A tabular with the paper's colours; needs xcolor and a silver: \\definecolor."""

    def coloured(text: str, place: int | None) -> str:
        plain = text.replace("±", "$\\pm$").replace("×", "$\\times$")
        box = COLOURS.get(place or 0)
        return f"\\colorbox{{{box}}}{{{plain}}}" if box else plain

    lines = [
        "% needs \\usepackage{xcolor} and \\definecolor{silver}{gray}{0.8}; ours (the paper's)",
        f"\\begin{{tabular}}{{l|{'c' * len(table.columns)}}}",
        "\\hline",
        " & ".join(["", *(_escaped(heading(table, j)) for j in range(len(table.columns)))])
        + " \\\\ \\hline",
    ]
    for i, row in enumerate(table.rows):
        cells = []
        for j, column in enumerate(table.columns):
            cell, decimals = table.cells[i][j], METRICS[column.metric].decimals
            mine = ours(cell, decimals, coloured).replace(DISAGREES, "$^{\\neq}$")
            paper = f" ({theirs(cell, decimals, coloured)})" if table.piece.is_table else ""
            cells.append(f"{mine}{paper}".replace(NOTHING, "--"))
        lines.append(" & ".join([_escaped(row.title), *cells]) + " \\\\")
    return "\n".join([*lines, "\\hline", "\\end{tabular}", ""])


def _escaped(text: str) -> str:
    return "".join("\\" + c if c in "%&_#$" else c for c in text)


def notes(table: Table) -> list[str]:
    """Lines below a table: failures, ranks that differ, numbers that are out of date."""
    lines = []
    if any(column.metric == "seconds" for column in table.columns):
        lines.append("seconds are of other rows and another machine than the paper's: compare ×")
    for i, row in enumerate(table.rows):
        errors = dict.fromkeys(e for cell in table.cells[i] for e in cell.errors)
        lines += [f"{row.title}: {error}" for error in errors]
    for j, column in enumerate(table.columns):
        wrong = [
            f"{row.title} {_ordinal(cell.rank)} (paper {_ordinal(cell.printed_rank)})"
            for row, cell in zip(table.rows, table.column(j), strict=True)
            if cell.disagrees
        ]
        if wrong:
            title = f"{KNOWN[column.dataset].title}, {METRICS[column.metric].title}"
            count = sum(cell.rank is not None for cell in table.column(j))
            lines.append(f"≠ {title}, among {count} methods: {', '.join(wrong)}")
    if any(cell.outdated for cells in table.cells for cell in cells):
        lines.append(
            "some numbers are of an earlier version of the method or of the measure: run again"
        )
    return lines


def _ordinal(number: int | None) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number or 0, "th")
    return f"{number}{ending}"
