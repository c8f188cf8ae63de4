"""The paper's figures out of records and the arrays beside them, by matplotlib.

Colours are Paul Tol's, which colour-blind readers can distinguish. In grey, markers, line styles
and numbers beside the points do the same.
"""

import io
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

from selfview.errors import MissingDependencyError
from selfview.paper.datasets import KNOWN
from selfview.paper.metrics import METRICS
from selfview.paper.plan import Choice
from selfview.paper.printed import PRINTED
from selfview.paper.records import Arrays, Shelf
from selfview.paper.results import Table, crossing, panels, tabulate

COLOURS = (
    *("#332288", "#CC6677", "#117733", "#88CCEE", "#882255"),
    *("#DDCC77", "#44AA99", "#AA4499", "#999933", "#000000"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
LINES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
POINTS = (5.0, 24.0)  # smallest and largest area of a point of a scatter
PROTOTYPES_SHOWN = 20  # of figure 2
TICKS = (50, 100, 200, 500, 1000)  # of figure 5

Figure = Any


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that belongs to no window."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise MissingDependencyError(
            "figures need matplotlib: pip install 'selfview[plots]'"
        ) from error
    return matplotlib.figure.Figure(figsize=(width, height), dpi=130, layout="constrained")


def picture(figure: Any, kind: str) -> bytes:
    """A figure's file; the same bytes for the same records."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "selfview"}):
        figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def draw(name: str, choice: Choice, shelf: Shelf) -> Figure | None:
    """A figure, or None if nothing of it is on record."""
    figure = FIGURES[name](name, choice, shelf)
    if figure is not None:
        effort = textwrap.fill(choice.effort(choice.piece(name)), int(15 * figure.get_figwidth()))
        figure.suptitle(effort, fontsize=7, color="#444444")
    return figure


def _prediction(name: str, choice: Choice, shelf: Shelf) -> Figure | None:
    """Figure 2: the largest probabilities of one prediction, and its targets."""
    drawn = [(d, a) for d, _, a in panels(name, choice, shelf) if a is not None]
    if not drawn:
        return None
    figure = new_figure(9.0, 3.8 * len(drawn))
    for number, (dataset, arrays) in enumerate(drawn):
        axes = figure.add_subplot(len(drawn), 1, number + 1)
        order = np.argsort(arrays["prediction"])[::-1][:PROTOTYPES_SHOWN]
        places = np.arange(1, len(order) + 1)
        p = arrays["prediction"][order]
        axes.bar(places, p, color="#EEEEEE", edgecolor="black", label="prediction p")
        for i, (value, target) in enumerate(zip(arrays["shown"], arrays["targets"], strict=True)):
            style = {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": LINES[i % len(LINES)]}
            label = f"target q, temperature {value:g}"
            axes.plot(places, target[order], label=label, markersize=5, **style)
        axes.set(
            title=f"One prediction of {KNOWN[dataset].title} and its targets",
            xlabel="prototype, by probability",
            ylabel="probability",
            xticks=places[::2],
        )
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _entropies(name: str, choice: Choice, shelf: Shelf) -> Figure | None:
    """Figure 3: the targets' entropy over the temperature, and that of the predictions."""
    drawn = [(d, a) for d, _, a in panels(name, choice, shelf) if a is not None]
    if not drawn:
        return None
    figure = new_figure(6.0, 4.0)
    axes = figure.add_subplot()
    for i, (dataset, arrays) in enumerate(drawn):
        title, colour = KNOWN[dataset].title, COLOURS[2 * i % 10]
        x, y, h = (arrays[n] for n in ("temperatures", "target_entropies", "prediction_entropy"))
        axes.plot(x, y, color=colour, label=f"H(Q), {title}")
        axes.axhline(
            float(h), color=COLOURS[(2 * i + 1) % 10], linestyle="--", label=f"H(P), {title}"
        )
        where = crossing(x, y, float(h))
        if where is not None:
            axes.plot([where], [float(h)], "o", color="black")
            axes.annotate(
                f"crossing at {where:.2f}",
                (where, float(h)),
                xytext=(8, -14),
                textcoords="offset points",
            )
    axes.set(xlabel="temperature", ylabel="entropy, nats", title="Entropy of the targets")
    axes.legend(frameon=False)
    return figure


def _by_digit_and_speaker(name: str, choice: Choice, shelf: Shelf) -> Figure | None:
    """Figure 4: a column a method; above by label, below by the dataset's further label."""
    drawn = panels(name, choice, shelf)
    if all(arrays is None for *_, arrays in drawn):
        return None
    figure = new_figure(5.2 * len(drawn), 10.0)
    axes = figure.subplots(2, len(drawn), squeeze=False)
    for column, (dataset, title, arrays) in enumerate(drawn):
        titles, kind = f"{KNOWN[dataset].title}, {title}", KNOWN[dataset].label
        if arrays is None:
            for row in range(2):
                _absent(axes[row, column], titles)
            continue
        points, (codes, classes) = arrays["points"], _labels(arrays)
        if "further.speaker" not in arrays:
            scatter(axes[0, column], points, codes, classes, f"{titles}: by {kind}")
            _absent(axes[1, column], f"{titles}: no speakers")
            continue
        names, speakers = np.unique(arrays["further.speaker"], return_inverse=True)
        # A digit of a speaker is a group of its own, and gets its number.
        scatter(axes[0, column], points, codes, classes, f"{titles}: by {kind}", speakers)
        scatter(axes[1, column], points, speakers, names, f"{titles}: by speaker", codes)
    style = {"ncols": 5, "fontsize": 7, "frameon": False, "markerscale": 2.0}
    for first in axes[:, 0]:
        if first.get_legend_handles_labels()[0]:
            first.legend(loc="upper left", bbox_to_anchor=(0.0, -0.01), **style)
    return figure


def _by_temperature(name: str, choice: Choice, shelf: Shelf) -> Figure | None:
    """Figure 7: a panel a temperature."""
    drawn = panels(name, choice, shelf)
    if all(arrays is None for *_, arrays in drawn):
        return None
    rows = (len(drawn) + 1) // 2
    figure = new_figure(10.4, 4.8 * rows + 1.0)
    axes = figure.subplots(rows, 2, squeeze=False)
    for place, (dataset, title, arrays) in zip(axes.flat, drawn, strict=False):
        titles = f"{KNOWN[dataset].title}, {title}"
        if arrays is None:
            _absent(place, titles)
        else:
            scatter(place, arrays["points"], *_labels(arrays), titles)
    for place in axes.flat[len(drawn) :]:
        place.set_axis_off()
    handles: tuple[Any, Any] = next(
        (h for p in axes.flat if (h := p.get_legend_handles_labels())[0]), ([], [])
    )
    place = {"loc": "outside lower center", "ncols": 4}
    figure.legend(*handles, **place, fontsize=7, frameon=False, markerscale=2.5)
    return figure


def _labels(arrays: Arrays) -> tuple[Any, Any]:
    codes, classes = arrays["labels"], arrays["classes"]
    if codes.ndim != 1 or codes.dtype.kind not in "iu" or codes.max() >= len(classes):
        classes, codes = np.unique(codes.astype(str), return_inverse=True)
    return codes, classes


def scatter(axes: Any, points: Any, codes: Any, names: Any, title: str, within: Any = None) -> None:
    """Points by class: a colour and a marker each, and its number in the middle of its points.

    With `within`, other classes, in the middle of its points of each of these.
    """
    size = float(np.clip(9000 / max(1, len(points)), *POINTS))
    for code in range(len(names)):
        group = points[codes == code]
        if not len(group):
            continue
        colour = COLOURS[code % len(COLOURS)]
        marker = MARKERS[(code + code // len(COLOURS)) % len(MARKERS)]
        label = f"{code} {names[code]}" if str(code) != str(names[code]) else str(code)
        axes.scatter(
            *group.T,
            s=size,
            color=colour,
            marker=marker,
            linewidths=0,
            label=label,
            rasterized=True,
        )
        parts = [group]
        if within is not None:
            others = within[codes == code]
            parts = [group[others == other] for other in np.unique(others)]
        box = {"boxstyle": "circle,pad=0.12", "facecolor": "white", "edgecolor": colour}
        for part in parts:
            middle = np.median(part, axis=0)
            nearest = part[np.argmin(((part - middle) ** 2).sum(1))]
            style = {"fontsize": 8 if within is None else 6, "bbox": {**box, "alpha": 0.85}}
            axes.annotate(str(code), nearest, ha="center", va="center", **style)
    axes.set(title=title, xticks=[], yticks=[])
    axes.set_box_aspect(1)


def _absent(axes: Any, title: str) -> None:
    axes.set(title=title, xticks=[], yticks=[])
    axes.set_box_aspect(1)
    axes.text(0.5, 0.5, "not on record", ha="center", va="center", transform=axes.transAxes)


def _sweep(name: str, choice: Choice, shelf: Shelf) -> Figure | None:
    """Figures 5 and 6: a line a dataset, with text and MSI on axes of their own."""
    table = tabulate(name, choice, shelf)
    groups: dict[tuple[str, bool], list[int]] = {}
    for j, column in enumerate(table.columns):
        if any(cell.mean is not None for cell in table.column(j)):
            text = name == "fig6" and column.dataset in ("reuters", "20news")
            groups.setdefault((column.metric, text), []).append(j)
    if not groups:
        return None
    figure = new_figure(5.2 * len(groups), 4.0)
    for number, ((metric, text), columns) in enumerate(groups.items()):
        axes = figure.add_subplot(1, len(groups), number + 1)
        for j in columns:
            _sweep_line(axes, table, j, name)
        what = "number of prototypes k" if name == "fig5" else "epsilon, length of the perturbation"
        axes.set(xlabel=what + (" (text)" if text else ""), ylabel=METRICS[metric].title)
        if name == "fig5":
            axes.set_xscale("log")
            axes.set_xticks(TICKS, [str(tick) for tick in TICKS], minor=False)
            axes.minorticks_off()
        axes.margins(y=0.25)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
    return figure


def _sweep_line(axes: Any, table: Table, j: int, name: str) -> None:
    cells = table.column(j)
    points = []
    for row, cell in zip(table.rows, cells, strict=True):
        x = float(row.title) if name == "fig5" else cell.epsilon
        if cell.mean is not None and x is not None:
            points.append((x, cell.mean, cell.deviation or 0.0))
    if not points:
        return
    x, y, std = np.array(sorted(points)).T
    style = {"color": COLOURS[j % 10], "marker": MARKERS[j], "linestyle": LINES[j % len(LINES)]}
    title = KNOWN[table.columns[j].dataset].title
    axes.errorbar(x, y, yerr=std if std.any() else None, capsize=3, label=title, **style)


def _curve(name: str, choice: Choice, shelf: Shelf) -> Figure | None:
    """The linear probe over the epochs: a panel a dataset, with the paper's number as a line."""
    piece, theirs = choice.piece(name), PRINTED["table6" if name == "curve-norms" else "table2"]
    lines: dict[str, dict[str, Any]] = {}
    for dataset in choice.datasets_of(piece):
        for row in choice.rows(piece):
            record = shelf.find(choice.fits(piece, row, dataset)[0][0])
            if record is not None and (line := record.curve()):
                lines.setdefault(dataset, {})[row.title] = line
    if not lines:
        return None
    figure = new_figure(5.2 * len(lines), 4.0)
    for number, (dataset, drawn) in enumerate(lines.items()):
        axes = figure.add_subplot(1, len(lines), number + 1)
        for i, (title, line) in enumerate(drawn.items()):
            style = {"color": COLOURS[i], "linestyle": LINES[i]}
            axes.plot(*zip(*line, strict=True), marker=MARKERS[i], label=title, **style)
            printed = theirs.get((title, KNOWN[dataset].paper or "", "linear"))
            if printed is not None:
                label = f"{title}, in the paper after 5,000"
                axes.axhline(printed.mean, alpha=0.5, linewidth=0.8, label=label, **style)
        axes.set(xlabel="epochs", ylabel="linear probe, %", title=KNOWN[dataset].title)
        axes.legend(frameon=False, fontsize=8)
    return figure


FIGURES: dict[str, Callable[[str, Choice, Shelf], Figure | None]] = {
    "fig2": _prediction,
    "fig3": _entropies,
    "fig4": _by_digit_and_speaker,
    "fig5": _sweep,
    "fig6": _sweep,
    "fig7": _by_temperature,
    "curve": _curve,
    "curve-norms": _curve,
}
