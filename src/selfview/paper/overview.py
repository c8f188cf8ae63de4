"""What there is to run, what is done, and how long the rest will take."""

from collections.abc import Sequence

from selfview.paper.plan import Choice, Job, jobs_of, missing
from selfview.paper.records import Shelf
from selfview.paper.subjects import KNOWN

CORES = 2


def duration(seconds: float) -> str:
    """Seconds in the unit that people would take.

    >>> duration(42), duration(600), duration(20_000), duration(10**7)
    ('42 s', '10 min', '5.6 h', '116 days')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"


def runs(count: int) -> str:
    """A number of runs in words."""
    return "1 run" if count == 1 else f"{count} runs"


def overview(names: Sequence[str], choice: Choice, shelf: Shelf) -> str:
    """One line a table or figure, and below it the estimate of every cell."""
    budget = choice.budget
    lines = [f"budget {budget.name}: {budget.about}", *_efforts(choice), ""]
    counted: set[str] = set()
    total = left = 0.0
    for name in names:
        piece = choice.piece(name)
        jobs = jobs_of([name], choice)
        new = [job for job in jobs if job.fit.key not in counted]
        done = sum(not missing(job, shelf) for job in jobs)
        cost = sum(job.seconds for job in jobs)
        shared = len(jobs) - len(new)
        also = f", {shared} of them shared with the above" if shared else ""
        lines.append(f"{name}  {piece.title}")
        lines.append(
            f"    {runs(len(jobs))}{also}, {done} done; alone {duration(cost)} on one core"
        )
        lines += _cells(choice, jobs, name)
        counted |= {job.fit.key for job in jobs}
    for job in jobs_of(names, choice):
        total += job.seconds
        left += job.seconds if missing(job, shelf) else 0.0
    both = duration(total / CORES)
    lines += [
        "",
        f"in total {duration(total)} on one core, {both} on {CORES} (--shard 1/2 and 2/2), "
        f"estimated; {duration(left)} of it left",
    ]
    return "\n".join(lines)


def _efforts(choice: Choice) -> list[str]:
    budget = choice.budget
    lines = []
    for name in budget.efforts:
        if choice.datasets is not None and name not in choice.datasets:
            continue
        effort, rows = budget.effort(name), KNOWN[name].rows
        cut = f"{effort.rows:,} of {rows:,}" if effort.rows and effort.rows < rows else f"{rows:,}"
        seeds = len(choice.seeds) if choice.seeds is not None else effort.seeds
        lines.append(
            f"    {name:<14} {effort.epochs:>5,} epochs, {cut} rows, {seeds} "
            f"seed{'s' if seeds > 1 else ''}"
        )
    for method, share in budget.shares.items():
        lines.append(
            f"    {method}: {share:g} of the epochs, because its epoch costs many times more"
        )
    for (dataset, method), rows in budget.fewer_rows.items():
        lines.append(f"    {method} on {dataset}: {rows:,} rows, with as many steps")
    for (piece, dataset), longer in budget.longer.items():
        if choice.datasets is None or dataset in choice.datasets:
            lines.append(f"    {piece}: {longer.factor} times the epochs on {dataset}")
    if budget.only_normed:
        lines.append(f"    autoencoders: with batch norm only on {', '.join(budget.only_normed)}")
    if budget.fit_rows is not None:
        lines.append(f"    lle, isomap: fitted to {budget.fit_rows:,} rows where there are more")
    return lines


def _cells(choice: Choice, jobs: Sequence[Job], name: str) -> list[str]:
    """Estimated time of every row on every dataset."""
    piece = choice.piece(name)
    by_key = {job.fit.key: job for job in jobs}
    datasets = choice.datasets_of(piece)
    lines = [" " * 26 + "".join(f"{dataset:>15}" for dataset in datasets)]
    for row in choice.rows(piece):
        cells = []
        for dataset in datasets:
            keys = {f.key for fits in choice.fits(piece, row, dataset) for f in fits}
            cells.append(f"{duration(sum(by_key[key].seconds for key in keys)):>15}")
        lines.append(f"    {row.title:<22}" + "".join(cells))
    return lines
