"""The last stage: tables and figures rendered from records, and the page of all of them."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selfview.paper import figures, formats
from selfview.paper.datasets import KNOWN, PaperDataset
from selfview.paper.grid import TITLES
from selfview.paper.metrics import METRICS
from selfview.paper.overview import efforts, exceptions, label
from selfview.paper.plan import Choice, jobs_of, missing, plural
from selfview.paper.reading import Statement, beyond, number, statements
from selfview.paper.records import Shelf, home_of, read_shelf
from selfview.paper.results import Table, tabulate
from selfview.saving.files import write_bytes
from selfview.training.progress import duration

PAGE, OWN_WORDS, NARROWED = "README.md", "reading.md", "narrowed"
WRITERS = {
    "md": formats.markdown,
    "csv": formats.comma_separated,
    "tex": formats.latex,
}
PICTURES = ("png", "svg")
# Our row beside the paper's, in the answer.
GAPS = (
    *(("table2", "linear"), ("table2", "graph"), ("table3", "mine")),
    *(("table4", "acc"), ("table4", "nmi"), ("table4", "ari")),
)
OURS_GAP = "The paper's recipe here, and in brackets how far it is from the printed number:"
CALIBRATION = (
    "PCA and NMF don't learn. Where they are off, the rows or the measure are not quite the "
    "paper's, and other cells of that column may be shifted too:"
)
PROTOCOL = (
    "The paper's recipe follows the paper's schedule, cut off after the epochs below: the target "
    "entropy falls for 100 epochs, and the learning rate is 5e-4 until epoch 1,000.",
    "Rows, probe, t-SNE and k-means are read as docs/readings.md says, by which PCA and NMF come "
    "near the printed figures. Images are judged on their test part, all else on all rows (the "
    "linear probe on a fixed fifth). In the graph a point is one of its own 21 nearest. k-means is "
    "the best of the last ten epochs, as in the paper; the last epoch has a table of its own.",
    "*Our default* is another recipe (docs/method.md); its rivals were not tuned, and UMAP has its "
    "default of 15 neighbours.",
)
OWN_RATE = (
    "Autoencoders and CPC learn at the rate of our default, 2e-3 along a cosine, which suits few "
    "epochs; the paper's recipe at its own, 5e-4."
)


@dataclass
class Page:
    """What was rendered: tables and lines for the terminal, and files, not yet written."""

    folder: Path  # of the files
    shown: list[tuple[str, Table | None, list[str]]] = field(default_factory=list)
    files: dict[str, bytes | None] = field(default_factory=dict)  # None: is no longer, if it was
    problems: tuple[str, ...] = ()

    def write(self) -> int:
        """Write the files; how many."""
        for name, content in self.files.items():
            if content is None:
                (self.folder / name).unlink(missing_ok=True)
            else:
                write_bytes(self.folder / name, content)
        return sum(content is not None for content in self.files.values())


def render(
    names: Sequence[str], choice: Choice, folder: Path, kinds: Sequence[str], whole: bool = False
) -> Page:
    """Tables and figures from the records of a folder; less than all of them go to files apart."""
    shelf = read_shelf(folder)
    page = Page(folder / NARROWED if choice.narrowed else folder, problems=shelf.problems)
    tables = {}
    for name in names:
        piece = choice.piece(name)
        lines, table = gaps(name, choice, shelf), None
        if piece.drawn is None:
            table = tables[name] = tabulate(name, choice, shelf)
            lines = [choice.effort(piece), *formats.notes(table), *lines]
            for kind in kinds:
                if kind in WRITERS:
                    page.files[f"tables/{name}.{kind}"] = WRITERS[kind](table).encode()
        page.shown.append((f"{name}: {piece.title} (budget {choice.budget.name})", table, lines))
        pictures = [] if piece.is_table else [kind for kind in kinds if kind in PICTURES]
        figure = figures.draw(name, choice, shelf) if pictures else None
        for kind in pictures:
            content = None if figure is None else figures.picture(figure, kind)
            page.files[f"figures/{name}.{kind}"] = content
    if whole:
        page.files[PAGE] = document(names, choice, shelf, tables, page).encode()
    return page


def gaps(name: str, choice: Choice, shelf: Shelf) -> list[str]:
    """What failed or is missing of a table or figure, and the command that fills it."""
    lacking: Counter[str] = Counter()
    lines = []
    for job in jobs_of([name], choice):
        if not (lacks := missing(job, shelf)):
            continue
        reasons = []
        if (record := shelf.find(job.fit)) is not None:
            scores = [record.scores.get(measure, {}) for measure in lacks]
            reasons = [record.error, *(str(score.get("error", "")) for score in scores)]
        reason = next(filter(None, reasons), "")
        if not reason:
            lacking[job.fit.dataset] += 1
        elif choice.piece(name).drawn is not None:  # a table says it in its notes
            lines.append(f"failed: {job.fit.describe()}: {reason}")
    command = f"selfview paper run {name}{choice.options()} --budget {choice.budget.name}"
    if shelf.folder != home_of(choice.budget.name):
        command += f" --out {shlex.quote(str(shelf.folder))}"
    return lines + [
        f"missing: {plural(count, 'run')} on {dataset}; {command} --datasets {dataset}"
        for dataset, count in lacking.items()
    ]


def document(
    names: Sequence[str], choice: Choice, shelf: Shelf, tables: dict[str, Table], page: Page
) -> str:
    """The page of all tables and figures: the answer first, then what it rests on."""
    said = statements(tables, choice, shelf)
    words = shelf.folder / OWN_WORDS
    own = words.read_text(encoding="utf-8", errors="replace").strip() if words.is_file() else ""
    extra = beyond(tables)
    parts = [
        "# The paper, reproduced",
        "Made by `selfview paper show all` from the records in this folder; not edited by hand.",
        *_answer(said, tables),
        "## Figures",
        *_pieces([name for name in names if not name.startswith("table")], tables, page, names),
        "## Tables",
        formats.LEGEND,
        *_pieces([name for name in names if name.startswith("table")], tables, page, names),
        "## What doesn't hold, and why",
        _list([str(s) for s in said if s.holds is False]) or "Nothing so far.",
        own,
        "## What holds",
        _list([str(s) for s in said if s.holds]) or "Nothing so far.",
        "## Not run yet" if any(s.holds is None for s in said) else "",
        _list([f"{s.claim}: {s.found}." for s in said if s.holds is None]),
        "## Beyond the paper" if extra else "",
        _list(extra),
        "## How it was run",
        *_effort(choice),
        *_origin(names, choice, shelf),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _answer(said: Sequence[Statement], tables: dict[str, Table]) -> list[str]:
    """How many statements hold, by table; and our row beside the paper's."""
    count = Counter(s.holds for s in said)
    sure = sum(s.holds is True and s.clear for s in said)
    checked = count[True] + count[False]
    answer = (
        f"**{count[True]} of {checked} statements of the paper hold** ({sure} of them clearly), "
        f"{count[False]} don't; {count[None]} of {len(said)} are not run yet."
    )
    if not checked:
        answer = f"None of {len(said)} statements of the paper can be checked yet."
    lines = [["", "statements", "hold", "don't hold", "not run yet"]]
    for piece in dict.fromkeys(s.piece for s in said):
        held = Counter(s.holds for s in said if s.piece == piece)
        numbers = (held.total(), held[True], held[False], held[None])
        lines.append([f"{label(piece)}. {TITLES[piece]}", *map(str, numbers)])
    parts = [answer, formats.pipes(lines).rstrip()] if said else []
    heads = ["here (less the paper's)", *(METRICS[metric].title for _, metric in GAPS)]
    for rows, about in ((("Ours",), OURS_GAP), (("PCA", "NMF"), CALIBRATION)):
        found = [_gaps(row, each, tables) for each in KNOWN.values() for row in rows]
        if any(found):
            parts += [about, formats.pipes([heads, *filter(None, found)]).rstrip()]
    return parts


def _gaps(row: str, about: PaperDataset, tables: dict[str, Table]) -> list[str]:
    """A row on a dataset, each number with its distance from the paper's; empty if not run."""
    cells = []
    for name, metric in GAPS:
        cell = tables[name].cell(row, about.name, metric) if name in tables else None
        text = formats.NOTHING
        if cell is not None and cell.mean is not None and cell.printed is not None:
            decimals = METRICS[metric].decimals
            gap = cell.mean - cell.printed.mean
            text = f"{number(cell, decimals)} ({gap:+.{decimals}f})"
        cells.append(text)
    return [] if set(cells) == {formats.NOTHING} else [f"{about.title}, {row}", *cells]


def _pieces(
    wanted: Sequence[str], tables: dict[str, Table], page: Page, names: Sequence[str]
) -> Iterator[str]:
    """Headings, pictures, tables and notes of tables and figures."""
    shown = {name: lines for name, (_, _, lines) in zip(names, page.shown, strict=True)}
    for name in wanted:
        yield f"### {label(name)}. {TITLES[name]}"
        picture = f"figures/{name}.png"
        if page.files[picture] if picture in page.files else (page.folder / picture).is_file():
            yield f"![{TITLES[name]}]({picture})"
        if name in tables:
            yield formats.markdown(tables[name]).rstrip()
        yield _list(shown[name])


def _effort(choice: Choice) -> list[str]:
    """What was spent, and how."""
    budget = choice.budget
    spent = [["dataset", "epochs", "rows", "seeds", "note"]]
    for name, epochs, rows, seeds in efforts(choice):
        spent.append([KNOWN[name].title, f"{epochs:,}", rows, str(seeds), KNOWN[name].note])
    return [
        f"Budget `{budget.name}`: {budget.about}. The paper trains 5,000 epochs with five seeds on "
        "a GPU.",
        formats.pipes(spent).rstrip(),
        *PROTOCOL,
        OWN_RATE if budget.baselines != "paper" else "",
        *exceptions(choice),
    ]


def _origin(names: Sequence[str], choice: Choice, shelf: Shelf) -> list[str]:
    """Commits, machines, time spent and failures of the records that are shown."""
    jobs = jobs_of(names, choice)
    records = [record for job in jobs if (record := shelf.find(job.fit)) is not None]
    commits = Counter(str(r.provenance.get("commit", "unknown")) for r in records)
    machines = Counter(_machine(r.provenance.get("machine", {})) for r in records)
    spent = sum(float(r.seconds or 0.0) for r in records)
    failed = sum(bool(r.error) for r in records)
    lines = [
        f"{len(records)} of {len(jobs)} runs are on record, {failed} of them failed; training took "
        f"{duration(spent)} of single processes in all, without their scores.",
        "Commits: " + ", ".join(f"{name} ({count})" for name, count in commits.items()) + ".",
        "Machines: " + "; ".join(f"{name} ({count})" for name, count in machines.items()) + ".",
        "Every record in `records.jsonl` holds the parameters, seed, epochs, scores, history "
        "(thinned to 24 epochs), health, seconds, commit, versions and machine of its run.",
    ]
    return lines if records else lines[:1]


def _machine(about: Any) -> str:
    if not isinstance(about, dict):
        return "unknown"
    flags = about.get("flags")
    flags = " ".join(map(str, flags)) if isinstance(flags, list) else ""
    return f"{about.get('cpu', 'unknown')}, {about.get('threads')} threads, {flags}".rstrip(", ")
