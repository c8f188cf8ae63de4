"""Both stages for a grid: train and measure what is missing, and record each fit as it ends."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from selfview.data import Dataset
from selfview.errors import SelfViewError
from selfview.paper import measuring, training
from selfview.paper.datasets import describe, load_sample
from selfview.paper.plan import Job, missing
from selfview.paper.provenance import provenance
from selfview.paper.records import (
    RECORDS,
    Record,
    Shelf,
    append,
    one_line,
    opened,
    plain,
    read_shelf,
)

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
    with opened(out / RECORDS):  # better known before a training than after it
        pass
    bench = _Bench(out, work, budget, say, verbose)
    shelf = read_shelf(out)
    for problem in shelf.problems:
        say(f"warning: {problem}")
    unavailable: dict[str, str] = {}
    todo = [job for job in jobs if missing(job, shelf)]
    count = Counter(before=len(jobs) - len(todo))
    left, number = len(todo), 0
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
            count["done" if bench.do(job, sample) else "failed"] += 1
        except training.BusyError:
            say("  another process is at it")
            if number <= left:
                todo.append(job)  # once more when all else is done
            else:
                count["busy"] += 1
    reasons = tuple(f"{name}: {reason}" for name, reason in unavailable.items())
    return Outcome(**count, unavailable=reasons)


@dataclass(frozen=True)
class _Bench:
    """Where jobs are done: a folder for their records, one for their embeddings."""

    out: Path
    work: Path
    budget: str
    say: Say
    verbose: int

    def do(self, job: Job, sample: Dataset) -> bool:
        """Train if need be, measure, and record; whether all went well."""
        folder = self.work / job.fit.key
        with training.claimed(folder):
            # Another process may have done it since the caller looked.
            shelf = read_shelf(self.out)
            wanted = missing(job, shelf)
            if not wanted:
                return True
            start = time.monotonic()
            known = shelf.records.get(job.fit.key)
            about = self._trained(job, sample, known, folder)
            if about is None:
                return False
            subject = measuring.Subject(folder, about, sample, job.fit.method, job.fit.seed)
            scores = _measured(subject, wanted, shelf, job.fit.key, known)
            kept = {name: about[name] for name in training.KEPT}
            append(self.out, Record(**self._identity(job, known), scores=scores, **kept))
            errors = {name: score["error"] for name, score in scores.items() if score.get("error")}
            for name, reason in errors.items():
                self.say(f"  {name} failed: {reason}")
            if not errors:
                self.say(f"  {time.monotonic() - start:.1f} s")
            return not errors

    def _trained(
        self, job: Job, sample: Dataset, known: Record | None, folder: Path
    ) -> dict[str, Any] | None:
        """What training left, now or before; None if it failed, and a record that says why."""
        start = time.monotonic()
        holds = known is not None and not known.error
        about = training.trained(folder, job.fit)
        if about is not None:
            return about
        if holds:
            self.say(f"  its embedding is not in {self.work}: it is trained again")
        try:
            return training.train(folder, job.fit, sample, self.verbose)
        except Exception as error:  # a grid outlives any method's failure
            reason = one_line(error)
        self.say(f"  failed: {reason}")
        if not holds:  # else what was measured before still does
            seconds = round(time.monotonic() - start, 3)
            about = {"data": describe(sample), "seconds": seconds, "provenance": provenance()}
            append(self.out, Record(**self._identity(job, known), error=reason, **about))
        return None

    def _identity(self, job: Job, known: Record | None) -> dict[str, Any]:
        budget = self.budget if known is None else known.budget  # that it was first run for
        return {"key": job.fit.key, "fit": plain(asdict(job.fit)), "budget": budget}


def _measured(
    subject: measuring.Subject,
    wanted: Sequence[str],
    shelf: Shelf,
    key: str,
    known: Record | None,
) -> dict[str, Any]:
    """The scores on record with those wanted; all anew if the embedding is another one."""
    before = {} if known is None or known.error else dict(known.scores)
    stale = known is None or known.provenance != subject.about["provenance"]
    scores = {} if stale else before
    names = [*wanted, *(before if stale else ())]
    for name in dict.fromkeys(names):
        if name in measuring.MEASURES:
            scores[name] = measuring.take(name, subject, shelf, key)
    return scores
