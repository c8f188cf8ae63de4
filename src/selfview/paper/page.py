"""The last stage: tables and figures rendered from records, and the page of all of them."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selfview.paper import figures, formats
from selfview.paper.datasets import KNOWN
from selfview.paper.grid import TITLES
from selfview.paper.overview import efforts, exceptions, label
from selfview.paper.plan import Choice, jobs_of, missing, plural
from selfview.paper.reading import Finding, findings
from selfview.paper.records import Shelf, home_of, read_shelf
from selfview.paper.results import Table, tabulate
from selfview.saving.files import write_bytes
from selfview.training.progress import duration

PAGE, OWN_WORDS, NARROWED = "README.md", "reading.md", "narrowed"
WRITERS = {
    "txt": formats.text,
    "md": formats.markdown,
    "csv": formats.comma_separated,
    "tex": formats.latex,
}
PICTURES = ("png", "svg")
PROTOCOL = (
    "The paper's recipe follows the paper's schedule, cut off after the epochs above: the target "
    "entropy falls for 100 epochs, and the learning rate is 5e-4 until epoch 1,000.",
    "*Our default* is another recipe (docs/method.md): a neighbour as second view, InfoNCE between "
    "the two, a smaller epsilon, a higher learning rate, principal axes. It was settled on FSDD, "
    "Reuters and 20news; its rivals were not tuned, and UMAP has its default of 15 neighbours.",
    "On 20news and the images, graph and k-means are of the test rows of the official split. The "
    "paper's k-means is the best of its last ten epochs, ours that of the last.",
)
OWN_RATE = (
    "Autoencoders and CPC learn at the rate of our default, 2e-3 along a cosine, which suits few "
    "epochs; the paper's recipe at its own, 5e-4. So the row to hold against theirs at equal rates "
    "is our default's."
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
    """The page of all tables and figures."""
    budget = choice.budget
    spent = ["| dataset | epochs | rows | seeds | note |", "|---|---:|---:|---:|---|"]
    for name, epochs, rows, seeds in efforts(choice):
        about = KNOWN[name]
        spent.append(f"| {about.title} | {epochs:,} | {rows} | {seeds} | {about.note} |")
    parts = [
        "# Results",
        "Made by `selfview paper show all` from the records in this folder; not edited by hand. "
        "Ours stands beside the paper's number in every cell. "
        f"Budget `{budget.name}`: {budget.about}. "
        "The paper trains 5,000 epochs with five seeds on a GPU.",
        "\n".join(spent),
        *PROTOCOL,
        OWN_RATE if budget.baselines != "paper" else "",
        *exceptions(choice),
        "## Reading",
        *_reading(tables, choice, shelf),
    ]
    words = shelf.folder / OWN_WORDS
    if words.is_file():
        parts.append(words.read_text(encoding="utf-8", errors="replace").strip())
    parts += ["## Tables and figures", formats.LEGEND]
    shown = {name: lines for name, (_, _, lines) in zip(names, page.shown, strict=True)}
    for name in names:
        parts.append(f"### {label(name)}. {TITLES[name]}")
        picture = f"figures/{name}.png"
        if page.files[picture] if picture in page.files else (page.folder / picture).is_file():
            parts.append(f"![{TITLES[name]}]({picture})")
        if name in tables:
            parts.append(formats.markdown(tables[name]).rstrip())
        parts.append("\n".join(f"- {line}" for line in shown[name]))
    parts += ["## Where the numbers come from", *_origin(names, choice, shelf)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _reading(tables: dict[str, Table], choice: Choice, shelf: Shelf) -> list[str]:
    found = findings(tables, choice, shelf)
    if not found:
        return ["Nothing can be said yet: too little is on record."]
    parts = [_verdict(found)]
    titles = {
        True: "What reproduces",
        False: "What does not",
        None: "Beyond the paper: our default, UMAP, raw features",
    }
    for agrees, title in titles.items():
        lines = [
            f"- {finding.text}" + " *Not a clear difference.*" * (not finding.clear)
            for finding in found
            if finding.agrees is agrees
        ]
        parts += [f"**{title}**", "\n".join(lines)] if lines else []
    return parts


def _verdict(found: Sequence[Finding]) -> str:
    count: Counter[tuple[bool, bool]] = Counter()
    for finding in found:
        if finding.agrees is not None:
            count[finding.agrees, finding.clear] += finding.count
    return (
        f"Of {count.total()} statements of the paper that can be checked with these records, "
        f"{count[True, True]} hold clearly and {count[True, False]} without a clear difference; "
        f"{count[False, True]} clearly don't hold, and {count[False, False]} don't without a clear "
        "difference."
    )


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
