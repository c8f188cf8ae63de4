"""A folder of records that nobody trained: numbers near the paper's, for the stages that render."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from selfview.paper.budgets import SMOKE
from selfview.paper.metrics import ARRAY_MEASURES, METRICS, VERSIONS
from selfview.paper.plan import Choice, jobs_of, names_of
from selfview.paper.records import RECORDS, read_shelf, write_arrays


def made_up_record(job, rng):
    scores = {}
    for measure in job.measures:
        values = {
            m.value: float(rng.uniform(0.3, 0.9)) for m in METRICS.values() if m.measure == measure
        }
        if measure == "curve":
            values = {str(epoch): float(rng.uniform(0.3, 0.9)) for epoch in (1, 2)}
        scores[measure] = {"version": VERSIONS[measure], "values": values}
    return {
        "format": 1,
        "key": job.fit.key,
        "fit": asdict(job.fit),
        "budget": "smoke",
        "scores": scores,
        "resolved": {"epsilon": float(rng.uniform(1, 5))},
        "seconds": 1.0,
        "provenance": {"commit": "abc", "machine": {"cpu": "none", "threads": 1, "flags": []}},
    }


def made_up_arrays(measure, rng):
    if measure == "layout":
        return {
            "points": rng.normal(size=(60, 2)).astype(np.float32),
            "labels": np.arange(60) % 10,
            "classes": np.array([str(i) for i in range(10)]),
            "further.speaker": np.array(["ann", "bob", "eve"])[np.arange(60) % 3],
        }
    t = np.linspace(0.1, 3, 30)
    return {
        "temperatures": t,
        "target_entropies": 4.6 * t / (1 + t),
        "prediction_entropy": np.array(2.3),
        "prediction": rng.dirichlet(np.ones(100)).astype(np.float32),
        "shown": np.array([0.1, 1.0]),
        "targets": rng.dirichlet(np.ones(100), size=2).astype(np.float32),
    }


@pytest.fixture
def full_folder(tmp_path):
    """Records of every run of the smoke budget, and the choice that asks for them."""
    rng = np.random.default_rng(0)
    choice = Choice(SMOKE)
    shelf = read_shelf(tmp_path)
    lines = []
    for job in jobs_of(names_of("all"), choice):
        lines.append(json.dumps(made_up_record(job, rng)))
        for measure in set(job.measures) & set(ARRAY_MEASURES):
            write_arrays(shelf.array_path(job.fit.key, measure), made_up_arrays(measure, rng))
    (tmp_path / RECORDS).write_text("\n".join(lines) + "\n")
    return tmp_path, choice
