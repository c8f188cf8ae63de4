"""A table as text, Markdown, CSV and LaTeX. Our number first, then the paper's."""

import csv
import io
from collections.abc import Callable, Sequence

from selfview.paper.datasets import KNOWN
from selfview.paper.metrics import METRICS
from selfview.paper.printed import PRINTED, Printed
from selfview.paper.results import Cell, Table

PLACES = {1: "①", 2: "②", 3: "③"}
COLOURS = {1: "yellow", 2: "silver", 3: "brown"}  # the paper's own
DISAGREES = "≠"
NOTHING, NOT_RUN = "–", "not run"
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

Mark = Callable[[str, int | None], str]


def ours(cell: Cell, decimals: int, mark: Mark) -> str:
    """Our number, with how many seeds where some are missing."""
    if cell.mean is None:
        return "failed" if cell.errors else NOT_RUN
    text = _number(cell.mean, cell.deviation, cell.ratio, decimals)
    text += "" if cell.complete else f" [{cell.n}/{cell.expected}]"
    return mark(text, cell.place) + (DISAGREES if cell.disagrees else "")


def theirs(cell: Cell, decimals: int, mark: Mark) -> str:
    """The paper's number."""
    printed = cell.printed
    if printed is None:
        return "N/A" if cell.not_applicable else NOTHING
    text = _number(printed.mean, printed.deviation, cell.printed_ratio, decimals)
    return mark(text, printed.place)


def _number(mean: float, deviation: float | None, ratio: float | None, decimals: int) -> str:
    text = f"{mean:.{decimals}f}"
    text += "" if deviation is None else f"±{deviation:.{decimals}f}"
    return text + ("" if ratio is None else f" (×{ratio:.1f})")


def lines_of(table: Table, mark: Mark, pair: str = "{} | {}") -> list[list[str]]:
    """The heading and the rows of a table: both numbers of every cell, joined as `pair` says."""
    heads = [f"{KNOWN[c.dataset].title} {METRICS[c.metric].title}" for c in table.columns]
    lines = [["", *heads]]
    for row, cells in zip(table.rows, table.cells, strict=True):
        line = [row.title]
        for cell, column in zip(cells, table.columns, strict=True):
            mine = ours(cell, decimals := METRICS[column.metric].decimals, mark)
            # The paper draws its sweeps, and prints no numbers of them.
            both = pair.format(mine, theirs(cell, decimals, mark))
            line.append(both if table.piece.name in PRINTED else mine)
        lines.append(line)
    return lines


def signed(text: str, place: int | None) -> str:
    """A number with the sign of its place."""
    return text + PLACES.get(place or 0, "")


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Cells in columns, the first to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (
        [cell.rjust(width) if j else cell.ljust(width) for j, (cell, width) in enumerate(pairs)]
        for pairs in (zip(line, widths, strict=True) for line in lines)
    )
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def pipes(lines: Sequence[Sequence[str]]) -> str:
    """Cells as a Markdown table."""
    rule = ["---", *("---:" for _ in lines[0][1:])]
    return "".join(f"| {' | '.join(line)} |\n" for line in (lines[0], rule, *lines[1:]))


def markdown(table: Table) -> str:
    """A Markdown table."""
    return pipes(lines_of(table, lambda t, p: f"**{t}**{PLACES[p]}" if p else t, "{} \\| {}"))


def latex(table: Table) -> str:
    """A tabular with the paper's colours; needs xcolor and a silver: \\definecolor."""

    def coloured(text: str, place: int | None) -> str:
        plain = text.replace("±", "$\\pm$").replace("×", "$\\times$")
        box = COLOURS.get(place or 0)
        return f"\\colorbox{{{box}}}{{{plain}}}" if box else plain

    def escaped(text: str) -> str:
        return "".join("\\" + c if c in "%&_#$" else c for c in text)

    heads, *rows = lines_of(table, coloured, "{} ({})")
    lines = [
        "% needs \\usepackage{xcolor} and \\definecolor{silver}{gray}{0.8}; ours (the paper's)",
        f"\\begin{{tabular}}{{l|{'c' * len(table.columns)}}}",
        "\\hline",
        " & ".join(map(escaped, heads)) + " \\\\ \\hline",
    ]
    for title, *cells in rows:
        shown = [c.replace(DISAGREES, "$^{\\neq}$").replace(NOTHING, "--") for c in cells]
        lines.append(" & ".join([escaped(title), *shown]) + " \\\\")
    return "\n".join([*lines, "\\hline", "\\end{tabular}", ""])


def comma_separated(table: Table) -> str:
    """One line a cell, with everything that is known of it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)

    def digits(value: float | None) -> str | None:
        return None if value is None else f"{value:.6g}"

    for row, cells in zip(table.rows, table.cells, strict=True):
        for column, cell in zip(table.columns, cells, strict=True):
            p = cell.printed or Printed(float("nan"))
            values = (
                *(table.piece.name, row.title, column.dataset, column.metric),
                *(digits(cell.mean), digits(cell.deviation), cell.n, cell.expected),
                *(cell.variant, digits(cell.epsilon), digits(cell.ratio), cell.place, cell.rank),
                *(p.mean if cell.printed else None, p.deviation, digits(cell.printed_ratio)),
                *(p.place, cell.printed_rank, int(cell.disagrees), "; ".join(cell.errors)),
            )
            writer.writerow("" if value is None else value for value in values)
    return out.getvalue()


def printed(title: str, table: Table | None, lines: Sequence[str]) -> str:
    """A title, a table, each dataset's columns apart so that they fit a screen, and lines."""
    parts = [title]
    if table is not None:
        whole = lines_of(table, signed)
        for dataset in dict.fromkeys(column.dataset for column in table.columns):
            at = [0, *(j + 1 for j, c in enumerate(table.columns) if c.dataset == dataset)]
            parts.append(aligned([[line[j] for j in at] for line in whole]))
    return "\n".join([*parts, *lines, ""])


def notes(table: Table) -> list[str]:
    """Lines below a table: failures, ranks that differ, numbers that are out of date."""
    lines = []
    if any(column.metric == "seconds" for column in table.columns):
        lines.append("seconds are of other rows and another machine than the paper's: compare ×")
    for row, cells in zip(table.rows, table.cells, strict=True):
        errors = dict.fromkeys(e for cell in cells for e in cell.errors)
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
    return lines


def _ordinal(number: int | None) -> str:
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number or 0, 'th') }"
