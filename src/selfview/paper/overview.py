"""What there is to run, what is done, and how long the rest will take."""

from collections.abc import Sequence

from selfview.paper.datasets import KNOWN
from selfview.paper.plan import Choice, Job, jobs_of, missing, plural
from selfview.paper.records import Shelf
from selfview.training.progress import duration

CORES = 2


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
        cost = duration(sum(job.seconds for job in jobs))
        lines.append(f"{name}  {choice.piece(name).title}")
        lines.append(f"    {plural(len(jobs), 'run')}{also}, {done} done; alone {cost} on one core")
        lines += _cells(choice, jobs, name)
        counted |= {job.fit.key for job in jobs}
    every = jobs_of(names, choice)
    total = sum(job.seconds for job in every)
    left = sum(job.seconds for job in every if missing(job, shelf))
    lines += [
        "",
        f"in total {duration(total)} on one core, {duration(total / CORES)} on {CORES} "
        "(--shard 1/2 and 2/2), estimated; "
        f"{duration(left) if left else 'nothing'} of it left",
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
    for (piece, dataset), longer in budget.longer.items():
        if choice.datasets is None or dataset in choice.datasets:
            where = f"{label(piece)} on {KNOWN[dataset].title}"
            lines.append(f"{where} gets {longer.factor} times the epochs: {longer.why}.")
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
    seconds = {job.fit.key: job.seconds for job in jobs}
    datasets = choice.datasets_of(piece)
    lines = [" " * 26 + "".join(f"{dataset:>15}" for dataset in datasets)]
    for row in choice.rows(piece):
        line = f"    {row.title:<22}"
        for dataset in datasets:
            keys = {f.key for fits in choice.fits(piece, row, dataset) for f in fits}
            line += f"{duration(sum(seconds[key] for key in keys)):>15}"
        lines.append(line)
    return lines
