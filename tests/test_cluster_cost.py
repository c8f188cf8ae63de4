"""The computed cost of large fits: its records, its model, and what the documentation says."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import cluster_cost  # noqa: E402
from cluster_cost import Cluster, Records, fit_cost  # noqa: E402

RECORDS = Records.read(cluster_cost.RECORDS)
ON = Cluster(gpus=8, price=3.0)


def test_the_documentation_has_the_table_and_the_checks_of_the_records():
    page = (ROOT / "docs" / "scale.md").read_text()
    assert "\n".join(cluster_cost.table(RECORDS, cluster_cost.PRICE)) in page
    assert "\n".join(cluster_cost.checked(RECORDS)) in page


def test_the_model_gives_the_counts_that_it_was_made_from():
    for record in RECORDS.step:
        for name in ("flops", "moved", "saved"):
            found = RECORDS.per_step(name, record["batch"], record["batch"])
            assert found == pytest.approx(record[name], rel=1e-6)


def test_two_processes_took_what_is_computed_for_them_within_a_factor_of_two():
    for record in RECORDS.two:
        assert 0.5 < cluster_cost.shared(record) / record["together"] < 2


def test_the_search_grows_as_computed_within_a_factor_of_two():
    small = min(RECORDS.search, key=lambda record: record["rows"])
    for name in ("index seconds", "look-up seconds"):
        computed = RECORDS.core_seconds(name, small["rows"])
        assert 0.5 < computed / small[name] < 2


def test_a_step_is_no_faster_than_the_machine():
    assert 0.1 < RECORDS.efficiency < 1


@pytest.mark.parametrize(
    ("change", "hours"),
    [
        (dict(rate=1e30, memory_rate=1e30, call=0.0), "compute"),
        (dict(latency=0.0, link=1e30), "messages"),
        (dict(cores=10**15), "neighbours"),
        (dict(disk=1e30, single_reads=1e30), "reading"),
    ],
)
def test_each_part_of_the_time_is_its_own_machinery(change, hours):
    before, after = (fit_cost(RECORDS, on, 10**8) for on in (ON, replace(ON, **change)))
    assert after[hours] < 1e-6 * before[hours]
    rest = set(cluster_cost.HOURS) - {hours}
    np.testing.assert_allclose([after[name] for name in rest], [before[name] for name in rest])


def test_dollars_are_hours_of_all_gpus():
    for gpus in (8, 64):
        cost = fit_cost(RECORDS, Cluster(gpus, 2.0), 10**9)
        assert math.isclose(cost["dollars"], 2 * gpus * sum(cost[h] for h in cluster_cost.HOURS))
