"""What a run of the grid takes: what is done, and how long the rest will take on one core.

Seconds are estimates, for an AMD EPYC with AVX2 in float32 and batches of 256 rows. By the records
in results/, a step of an autoencoder takes 50 ms for a million parameters of the perceptron in it,
of the adversarial one 130; the 85 ms of our own method, and its seconds with convolutions, are
rougher.
"""

import math
from collections.abc import Sequence

from selfview.paper.datasets import KNOWN
from selfview.paper.grid import Fit
from selfview.paper.methods import METHODS
from selfview.paper.plan import Choice, Job, jobs_of, missing, plural
from selfview.paper.records import Shelf
from selfview.training.progress import duration

BATCH = 256
STEP_PER_MILLION = 0.085  # seconds for a million parameters of a perceptron, in a step of ours
CNN_STEP = {True: 1.6, False: 0.25}  # seconds: the paper's convolutions, our own
CPC_SHARE, CPC_IMAGES = 6.5, 4.0  # of a step of ours with a perceptron; seconds with images
VIEW_SHARE = {"none": 0.4, "random": 0.4, "random+adversarial": 0.7}
# Seconds for a thousand rows, and for a thousand times a thousand of those fitted.
CLASSICAL = {"nmf": (3.0, 0.0), "umap": (4.0, 0.0), "lle": (1.0, 0.4), "isomap": (1.0, 0.6)}
MEASURES = {"graph": 6.0, "layout": 6.0, "linear": 0.6, "clustering": 3.0, "curve": 6.0}


def overview(names: Sequence[str], choice: Choice, shelf: Shelf) -> str:
    """One line a table or figure, and below it the estimate of every cell."""
    budget = choice.budget
    lines = [f"budget {budget.name}: {budget.about}"]
    for name, epochs, rows, seeds in efforts(choice):
        lines.append(f"    {name:<14} {epochs:>5,} epochs, {rows} rows, {plural(seeds, 'seed')}")
    lines += [*(f"    {line}" for line in exceptions(choice)), ""]
    counted: set[str] = set()
    for name in names:
        jobs = jobs_of([name], choice)
        shared = sum(job.fit.key in counted for job in jobs)
        done = sum(not missing(job, shelf) for job in jobs)
        also = f", {shared} of them shared with the above" if shared else ""
        cost = duration(sum(map(seconds, jobs)))
        lines.append(f"{name}  {choice.piece(name).title}")
        lines.append(f"    {plural(len(jobs), 'run')}{also}, {done} done; alone {cost} on one core")
        lines += _cells(choice, jobs, name)
        counted |= {job.fit.key for job in jobs}
    every = jobs_of(names, choice)
    total = sum(map(seconds, every))
    left = sum(seconds(job) for job in every if missing(job, shelf))
    lines += [
        "",
        f"in total {duration(total)} on one core, estimated; "
        f"{duration(left) if left else 'nothing'} of it left. "
        "Several processes share the work if each is started with the same command.",
    ]
    return "\n".join(lines)


def efforts(choice: Choice) -> list[tuple[str, int, str, int]]:
    """Name, epochs, rows and seeds of every dataset."""
    found = []
    for name in choice.datasets or choice.budget.efforts:
        effort, rows = choice.budget.effort(name), KNOWN[name].rows
        cut = f"{effort.rows:,} of {rows:,}" if effort.rows and effort.rows < rows else f"{rows:,}"
        seeds = effort.seeds if choice.seeds is None else len(choice.seeds)
        found.append((name, effort.epochs, cut, seeds))
    return found


def exceptions(choice: Choice) -> list[str]:
    """What of the budget is not as the datasets' epochs, rows and seeds say, in sentences."""
    budget, lines = choice.budget, []

    def titles(names: Sequence[str]) -> str:
        return ", ".join(KNOWN[name].title for name in names)

    for method, share in budget.shares.items():
        lines.append(f"{method.upper()} gets {share:g} of the epochs: its epoch costs much more.")
    for rows in dict.fromkeys(budget.fewer_rows.values()):
        at = [key for key, few in budget.fewer_rows.items() if few == rows]
        methods = ", ".join(dict.fromkeys(method.upper() for _, method in at))
        where = titles(list(dict.fromkeys(dataset for dataset, _ in at)))
        lines.append(f"{methods} on {where}: {rows:,} rows, with as many steps as the others.")
    for (piece, dataset), factor in budget.longer.items():
        if choice.datasets is None or dataset in choice.datasets:
            where = f"{label(piece)} on {KNOWN[dataset].title}"
            lines.append(f"{where} gets {factor} times the epochs.")
    if budget.only_normed:
        few = budget.unnormed_seeds
        lines.append(
            "Autoencoders are trained with and without batch norm"
            + ("" if few is None else f" ({plural(few, 'seed')} without)")
            + ", and the better one counts, as in the paper; "
            f"on {titles(budget.only_normed)} with batch norm only."
        )
    if budget.fit_rows is not None:
        lines.append(
            f"LLE and Isomap are fitted to {budget.fit_rows:,} rows where there are more, and the "
            "others are placed by their neighbours."
        )
    if budget.ablation_seeds is not None:
        lines.append(f"Tables 5 and 6 have {plural(budget.ablation_seeds, 'seed')}.")
    if budget.sweep_seeds == 1:
        part = "" if budget.sweep_share == 1 else f" and {budget.sweep_share:.2g} of the epochs"
        lines.append(f"Figures 5 and 6 have one seed{part}.")
    if len(budget.ablations) < len(budget.efforts):
        lines.append(
            f"Tables 5 and 6, figures 5 and 6 and the curve are of {titles(budget.ablations)} only."
        )
    return lines


def label(piece: str) -> str:
    """The name of a table or figure as in the paper."""
    return piece.replace("table", "table ").replace("fig", "figure ").capitalize()


def _cells(choice: Choice, jobs: Sequence[Job], name: str) -> list[str]:
    """Estimated time of every row on every dataset."""
    piece = choice.piece(name)
    each = {job.fit.key: seconds(job) for job in jobs}
    datasets = choice.datasets_of(piece)
    lines = [" " * 26 + "".join(f"{dataset:>15}" for dataset in datasets)]
    for row in choice.rows(piece):
        line = f"    {row.title:<22}"
        for dataset in datasets:
            keys = {f.key for fits in choice.fits(piece, row, dataset) for f in fits}
            line += f"{duration(sum(each[key] for key in keys)):>15}"
        lines.append(line)
    return lines


def seconds(job: Job) -> float:
    """How long a job will take on one core, from nothing."""
    fit, about = job.fit, KNOWN[job.fit.dataset]
    judged = min(fit.rows or about.rows, 20_000) / (7 if about.images else 1)  # their test part
    wide = 3.0 if fit.method == "raw" else 1.0
    measured = sum(MEASURES.get(name, 0.1) * judged / 1000 * wide for name in job.measures)
    return _training(fit) + measured + 7 * ("mine" in job.measures)


def _training(fit: Fit) -> float:
    method, about, settings = METHODS[fit.method], KNOWN[fit.dataset], dict(fit.settings)
    rows = fit.rows or about.rows
    if not method.learned:
        each, squared = CLASSICAL.get(fit.method, (0.2, 0.0))
        return each * rows / 1000 + squared * ((settings.get("fit_rows") or rows) / 1000) ** 2
    step = STEP_PER_MILLION * about.parameters / 1e6
    if about.images:
        step = CNN_STEP[settings.get("recipe") == "paper" or settings.get("encoder") == "cnn"]
    step *= method.share * VIEW_SHARE.get(str(settings.get("views")), 1.0)
    if fit.method == "cpc":
        step = CPC_IMAGES if about.images else STEP_PER_MILLION * about.parameters / 1e6 * CPC_SHARE
    return math.ceil(rows / BATCH) * (fit.epochs or 1) * step * min(1.0, rows / BATCH)
