"""Both stages for a grid: train and measure what is missing, and record each fit as it ends."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from selfview.errors import SelfViewError
from selfview.paper import measuring, training
from selfview.paper.plan import Job, missing
from selfview.paper.provenance import provenance
from selfview.paper.records import Record, Shelf, append, plain, read_shelf
from selfview.paper.samples import Sample, load_sample

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """How many jobs a call did, failed, and left to others."""

    done: int = 0
    failed: int = 0
    before: int = 0
    busy: int = 0
    unavailable: tuple[str, ...] = ()  # datasets that could not be had, each with its reason


def run(
    jobs: Sequence[Job],
    out: Path,
    work: Path,
    *,
    budget: str,
    say: Say = lambda _: None,
    verbose: int = 0,
) -> Outcome:
    """Do the jobs that are not on record in `out`, and record them there.

    A fit that fails becomes a record that says why; the next call tries it again. Embeddings and
    checkpoints stay in `work`, so that a new measure, or one that changed, trains nothing.
    """
    append(out, None)  # better now than after the first training
    shelf = read_shelf(out)
    for problem in shelf.problems:
        say(f"warning: {problem}")
    outcome = Outcome()
    unavailable: dict[str, str] = {}
    todo = [job for job in jobs if missing(job, shelf)]
    outcome = replace(outcome, before=len(jobs) - len(todo))
    left, number, busy = len(todo), 0, 0
    while todo:
        job = todo.pop(0)
        number += 1
        if job.fit.dataset in unavailable:
            continue
        wanted = missing(job, read_shelf(out))
        if number > left and not wanted:  # by the process that was at it
            continue
        say(f"[{min(number, left)}/{left}] {job.fit.describe()}: {', '.join(wanted)}")
        try:
            sample = load_sample(job.fit.dataset, job.fit.rows)
        except SelfViewError as error:
            unavailable[job.fit.dataset] = str(error)
            say(f"  {job.fit.dataset} can't be had, all its runs are left out: {error}")
            continue
        try:
            with training.claimed(work / job.fit.key):
                # Another process may have done it since this one looked.
                now = read_shelf(out)
                wanted = missing(job, now)
                known = now.records.get(job.fit.key)
                good = _one(job, wanted, known, sample, now, work, budget, say, verbose)
        except training.BusyError:
            say("  another process is at it")
            if number <= left:
                todo.append(job)  # once more when all else is done
            else:
                busy += 1
            continue
        key = "done" if good else "failed"
        outcome = replace(outcome, **{key: getattr(outcome, key) + 1})
    reasons = tuple(f"{name}: {reason}" for name, reason in unavailable.items())
    return replace(outcome, busy=busy, unavailable=reasons)


def _one(
    job: Job,
    wanted: Sequence[str],
    known: Record | None,
    sample: Sample,
    shelf: Shelf,
    work: Path,
    budget: str,
    say: Say,
    verbose: int,
) -> bool:
    """Train if need be, measure, and record; whether all went well."""
    if not wanted:
        return True
    fit, folder = job.fit, work / job.fit.key
    start = time.monotonic()
    about = training.trained(folder, fit)
    try:
        if about is None:
            if known is not None and not known.error:
                say(f"  its embedding is not in {work}: it is trained again")
            about = training.train(folder, fit, sample, verbose)
    except Exception as error:  # a grid outlives any method's failure
        reason = measuring.told(error)
        say(f"  failed: {reason}")
        if known is not None and not known.error:
            return False  # what was measured before still holds
        seconds = round(time.monotonic() - start, 3)
        failure = Record(
            key=fit.key,
            fit=plain(asdict(fit)),
            budget=budget,
            error=reason,
            data=sample.describe(),
            seconds=seconds,
            provenance=provenance(),
        )
        append(shelf.folder, failure)
        return False
    subject = measuring.Subject(folder, about, sample, fit.method, fit.seed)
    stale = known is None or bool(known.error) or known.provenance != about["provenance"]
    scores: dict[str, Any] = {} if stale or known is None else dict(known.scores)
    # Trained anew: scores of the embedding that was before say nothing of this one.
    names = [*wanted, *(known.scores if known is not None and stale else ())]
    for name in dict.fromkeys(names):
        if name in measuring.MEASURES:
            scores[name] = measuring.take(name, subject, shelf, fit.key)
    append(shelf.folder, _record(job, about, scores, budget, known))
    errors = {name: score["error"] for name, score in scores.items() if score.get("error")}
    for name, reason in errors.items():
        say(f"  {name} failed: {reason}")
    if not errors:
        say(f"  {time.monotonic() - start:.1f} s")
    return not errors


def _record(
    job: Job,
    about: dict[str, Any],
    scores: dict[str, Any],
    budget: str,
    known: Record | None,
) -> Record:
    fit: dict[str, Any] = plain(asdict(job.fit))
    return Record(
        key=job.fit.key,
        fit=fit,
        budget=known.budget if known is not None else budget,
        scores=scores,
        data=about["data"],
        parameters=about["parameters"],
        resolved=about["resolved"],
        history=tuple(about["history"]),
        health=about["health"],
        seconds=about["seconds"],
        notes=tuple(about["notes"]),
        provenance=about["provenance"],
    )
