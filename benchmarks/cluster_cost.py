"""Computed: time, memory, traffic and cost of a fit on many GPUs, from records made here.

    python benchmarks/cluster_cost.py [--records results/cluster.jsonl] [--price 3]

Nothing in the table was run. `cluster_records.py` counts what a step does, sends and reads, and
times small cases; `Cluster` holds what is assumed of machines that are not here. A step takes
(operations / rate + bytes / memory rate) / efficiency + calls x start of a call
+ messages x latency + bytes sent / link. The efficiency is that of this machine. Reading is not
hidden behind training, nor shared by the processes of a host. The search of neighbours grows as
the distances that Faiss computes.

"sample": fitted on 10^7 of the rows drawn at random, then all are embedded. The first lines compare
the model with what was measured here, by one process and by two.
"""

import argparse
import json
import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from selfview.estimator.recipes import RECIPES
from selfview.neighbours import engine
from selfview.training.loop import n_batches

RECORDS = Path(__file__).resolve().parents[1] / "results" / "cluster.jsonl"
ROW_BYTES = 4 * 256  # the records' 256 features in float32
NEAREST, DIMS = 10, 10
SAMPLE = 10**7
HOUR = 3600
PRICE = 3.0  # dollars for a GPU and hour
HOURS = ("compute", "messages", "neighbours", "reading")
COLUMNS = (*HOURS, "hours", "host GB", "GPU GB", "TB sent", "dollars")


@dataclass(frozen=True)
class Cluster:
    """Assumed of hosts with 8 GPUs each; bytes, seconds and dollars."""

    gpus: int
    price: float  # of a GPU for an hour
    batch: int = 2048  # rows of a GPU in a step
    per_host: int = 8
    rate: float = 150e12  # FLOP/s of large products
    memory_rate: float = 1.5e12
    gpu_memory: float = 80e9
    call: float = 5e-6  # to start a kernel
    latency: float = 50e-6  # of a message
    link: float = 20e9  # of each GPU
    cores: int = 64  # of a host, each as fast as the one here
    memory: float = 1e12  # of a host
    disk: float = 5e9  # of a host, one block after another
    single_reads: float = 500e3  # of a host: rows from all over


@dataclass(frozen=True)
class Records:
    """What was measured, by kind."""

    step: list[dict[str, Any]]
    two: list[dict[str, Any]]
    search: list[dict[str, Any]]
    reading: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> "Records":
        found = [json.loads(line) for line in path.read_text().splitlines()]
        kinds = ("step", "two processes", "neighbours", "reading")
        step, two, search, reading = ([r for r in found if r["kind"] == k] for k in kinds)
        return cls(step, two, search, reading[-1])

    def per_step(self, name: str, batch: int, whole: int) -> float:
        """What a step has of `name` for `batch` rows, each compared with `whole` rows.

        A part is fixed, a part grows with the rows, and a part with their pairs. Several processes
        compute both directions of the pairs.
        """
        square, row, fixed = np.polyfit(
            [r["batch"] for r in self.step], [r[name] for r in self.step], 2
        )
        return float(fixed + row * batch + square * batch * whole * (2 if whole > batch else 1))

    def sent(self, name: str, whole: int) -> float:
        """Messages or bytes of a step of so many rows."""
        a, b = np.polyfit([r["batch"] for r in self.two], [r[name] for r in self.two], 1)
        return float(a * whole + b)

    @property
    def efficiency(self) -> float:
        """Computed over measured seconds of a step, in one process here."""
        return statistics.median(roofline(r) / r["seconds"] for r in self.step)

    def core_seconds(self, name: str, n: int) -> float:
        """Of one core, for the neighbours of n rows."""
        largest = max(self.search, key=lambda r: r["rows"])
        return float(largest[name] * distances(name, n) / distances(name, largest["rows"]))


def distances(name: str, n: int) -> float:
    """That the search computes: of k-means and of finding each row's cell, or of looking up."""
    cells = engine.CELLS * math.sqrt(n)
    if name == "index seconds":
        return engine.ROUNDS * engine.POINTS_A_CELL * cells**2 + n * cells
    return n * (cells + engine.PROBES * n / cells)


def roofline(r: dict[str, Any]) -> float:
    return float(r["flops"] / r["rate"] + r["moved"] / r["copy"] + r["calls"] * r["overhead"])


def shared(r: dict[str, Any]) -> float:
    """Computed seconds of a step of two processes: a step alone, and what is sent."""
    sent = (r["bytes"] + r["gradients"]) / r["bandwidth"]
    return float(r["alone"] + r["messages"] * r["latency"] + sent)


def fit_cost(records: Records, on: Cluster, n: int) -> dict[str, float]:
    """Hours, bytes and dollars of the default recipe's fit of n rows."""
    hosts, whole = math.ceil(on.gpus / on.per_host), on.gpus * on.batch
    batches = n_batches(n, whole)
    epochs = max(1, round(RECIPES["selfview"].steps(n, DIMS) / batches))
    compute = (
        records.per_step("flops", on.batch, whole) / on.rate
        + records.per_step("moved", on.batch, whole) / on.memory_rate
    ) / records.efficiency + records.step[0]["calls"] * on.call
    ring = 2 * (on.gpus - 1) / on.gpus
    sent = (records.sent("bytes", whole) + records.step[0]["weights"] * 4) * ring
    exchange = records.sent("messages", whole) * on.latency + sent / on.link
    threads = on.cores / on.per_host
    index = records.core_seconds("index seconds", n) / threads  # by the first process alone
    look_up = records.core_seconds("look-up seconds", n) / threads / on.gpus
    reading = records.reading  # of each process; its blocks hold rows of the others too
    passes = reading["other passes"] + epochs * reading["blocks"]
    blocks = n * ROW_BYTES * passes * min(on.gpus, on.per_host) / on.disk
    single = epochs * reading["single"] * reading["processes"] * n / hosts / on.single_reads
    largest = max(records.search, key=lambda r: r["rows"])
    indexed = n * largest["quantised bytes"] / largest["rows"]
    held = indexed + n * (4 * NEAREST + 8)  # and the order of an epoch
    hours = {
        "compute": epochs * batches * compute / HOUR,
        "messages": epochs * batches * exchange / HOUR,
        "neighbours": (index + look_up) / HOUR,
        "reading": (blocks + single) / HOUR,
    }
    return hours | {
        "hours": sum(hours.values()),
        "epochs": epochs,
        "steps": epochs * batches,
        "host GB": held * min(on.gpus, on.per_host) / 1e9,
        "GPU GB": records.per_step("saved", on.batch, whole) / 1e9,
        "TB sent": (epochs * batches * sent + indexed) / 1e12,
        "dollars": sum(hours.values()) * on.gpus * on.price,
    }


def sampled_cost(records: Records, on: Cluster, n: int) -> dict[str, float]:
    """The same for a fit of a sample, with one pass through all rows to draw it and one to embed.

    Embedding is bound by reading: a row takes a fraction of a step's operations.
    """
    cost = fit_cost(records, on, SAMPLE)
    hosts = math.ceil(on.gpus / on.per_host)
    further = 2 * n * ROW_BYTES / hosts / on.disk / HOUR
    cost["reading"] += further
    cost["hours"] += further
    cost["dollars"] = cost["hours"] * on.gpus * on.price
    return cost


def breaks(cost: dict[str, float], on: Cluster) -> str:
    """What is too large, or else takes longest."""
    if cost["host GB"] > on.memory / 1e9:
        return "memory of a host"
    if cost["GPU GB"] > on.gpu_memory / 1e9:
        return "memory of a GPU"
    return max(HOURS, key=lambda name: cost[name])


def _cell(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def checked(records: Records) -> list[str]:
    """The model over what was measured here."""
    lines = [
        f"one process, batch {r['batch']}: {roofline(r) / r['seconds']:.2f}" for r in records.step
    ]
    lines += [
        f"two processes, batch {r['batch']}: {shared(r) / r['together']:.2f}" for r in records.two
    ]
    small, large = (sorted(records.search, key=lambda r: r["rows"])[i] for i in (0, -1))
    for name in ("index seconds", "look-up seconds"):
        grown = distances(name, large["rows"]) / distances(name, small["rows"])
        rows = f"{small['rows']:,} to {large['rows']:,} rows"
        lines.append(f"growth of {name}, {rows}: {grown / (large[name] / small[name]):.2f}")
    return lines


def table(records: Records, price: float) -> list[str]:
    """What a fit would take, in Markdown."""
    lines = [f"| {' | '.join(('rows', 'GPUs', 'fitted on', 'epochs', *COLUMNS, 'limit'))} |"]
    lines.append("|---" * (len(COLUMNS) + 5) + "|")
    for n in (10**8, 10**9):
        for gpus in (8, 64):
            for name, cost_of in (("all", fit_cost), ("sample", sampled_cost)):
                on = Cluster(gpus, price)
                cost = cost_of(records, on, n)
                cells = " | ".join(_cell(cost[column]) for column in COLUMNS)
                head = f"| 10^{math.log10(n):.0f} | {gpus} | {name} | {cost['epochs']:.0f} |"
                lines.append(f"{head} {cells} | {breaks(cost, on)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--price", type=float, default=PRICE, help="dollars for a GPU and hour")
    given = parser.parse_args()
    records = Records.read(given.records)
    print("Computed over measured, here:", *checked(records), sep="\n  ")
    print("\nComputed, not run. Hours of each part and of all; GB of a host and of a GPU.\n")
    print("\n".join(table(records, given.price)))


if __name__ == "__main__":
    main()
