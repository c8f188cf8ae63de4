"""Records from which `cluster_cost.py` computes what a fit costs on machines that are not here.

    python benchmarks/cluster_records.py [--records results/cluster.jsonl] [--kinds step ...]

Counted, and the same on any machine: floating-point operations, bytes read and written, calls and
saved activations of a training step of the default recipe, by the size of the batch; messages and
bytes that two processes exchange in a step; bytes that they read from disk; bytes of the index of
neighbours. Timed, in turns with each other: this machine's rates and a step of one process, in
seconds of its core; messages and steps of two processes, in seconds of the clock. They check the
model. Each line of the file says what it holds, the machine and the commit.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

import timing
from neighbours import made_rows
from selfview import SelfView
from selfview.neighbours import engine, search
from selfview.paper.provenance import commit
from selfview.rows import on_disk, projection
from step import step_of

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "results" / "cluster.jsonl"
FEATURES, WIDTH, CYCLE = 256, 512, 4  # of a row; of many rows' network; steps of the recipe
BATCHES = (256, 512, 1024)
SEARCHED = (25_000, 100_000)  # rows whose neighbours are looked up
ON_DISK = 10_000  # rows
STEPS, ROUNDS = 8, 3


class Counting(TorchDispatchMode):
    """Counts calls of kernels, their floating-point operations, and bytes read and written."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.flops, self.moved = 0, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        out = func(*args, **(kwargs or {}))
        if not func.is_view:
            self.calls += 1
            if func._overloadpacket in flop_registry:  # products; the others are bound by bytes
                work = flop_registry[func._overloadpacket]
                self.flops += work(*args, **(kwargs or {}), out_val=out)
            tensors = [t for t in tree_leaves((args, kwargs, out)) if isinstance(t, torch.Tensor)]
            self.moved += sum(t.numel() * t.element_size() for t in tensors)
        return out


def rows_of(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, FEATURES)).astype(np.float32)


def model_of(batch: int, **options: Any) -> SelfView:
    given = dict(batch_size=batch, width=WIDTH, precision="float32", random_state=0, verbose=0)
    return SelfView(**given | options)


def busy(contenders: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of this process's core for a call of each; they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(3 * ROUNDS):
        for name, call in contenders.items():
            start = time.process_time()
            call()
            seconds[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def step_counts(batch: int) -> dict[str, Any]:
    """What a step does, as a mean over the recipe's cycle, and its seconds here."""
    step, network = step_of(model_of(batch, epochs=10), rows_of(batch))

    def cycle() -> None:
        for number in range(CYCLE):
            step(number)

    cycle()
    saved: dict[int, int] = {}

    def keep(x: torch.Tensor) -> torch.Tensor:
        saved[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        step(0)
    with Counting() as counting:
        cycle()
    source, target = torch.randn(2, 1 << 22)
    tiny = torch.zeros(8)
    contenders = {
        **timing.products(torch.float32),
        "cycle": cycle,
        "copy": lambda: target.copy_(source),
        "tiny": lambda: [tiny.add_(1) for _ in range(1000)],
    }
    seconds = busy(contenders)
    return {
        "kind": "step",
        "batch": batch,
        "flops": counting.flops / CYCLE,
        "moved": counting.moved / CYCLE,
        "calls": counting.calls / CYCLE,
        "saved": sum(saved.values()),
        "weights": sum(p.numel() for p in network.parameters()),
        "seconds": seconds["cycle"] / CYCLE,
        "rate": timing.rate(seconds),  # FLOP/s
        "copy": 2 * source.nbytes / seconds["copy"],  # bytes/s
        "overhead": seconds["tiny"] / 1000,  # s a call
    }


def search_counts(n: int) -> dict[str, Any]:
    """Seconds of one core for the neighbours of n rows, and bytes of their index."""
    points = torch.from_numpy(made_rows(n, 50))
    parts = lambda: torch.split(points, 1 << 16)  # noqa: E731
    start = time.process_time()
    index = engine.index_of(parts, n)
    built = time.process_time()
    engine.looked_up(index, parts, 10, range(n))
    looked = time.process_time()
    floats, engine.FLOAT_BYTES = engine.FLOAT_BYTES, 0
    quantised = engine.packed(engine.index_of(parts, n)).nbytes
    engine.FLOAT_BYTES = floats
    return {
        "kind": "neighbours",
        "rows": n,
        "index seconds": built - start,
        "look-up seconds": looked - built,
        "index bytes": engine.packed(index).nbytes,
        "quantised bytes": quantised,
    }


def epoch_seconds(model: SelfView, X: np.ndarray) -> float:
    """Seconds of a step, from the shortest epoch of a fit but the first."""
    rows = model.fit(X).history_
    seconds = np.diff([row["seconds"] for row in rows])
    return float(seconds.min()) / STEPS


def message_seconds(x: torch.Tensor) -> float:
    """Mean seconds of an all-reduce, as many times in every process; the mean has all waits."""
    start = time.perf_counter()
    for _ in range(200):
        dist.all_reduce(x)
    return (time.perf_counter() - start) / 200


def two_processes(batch: int) -> dict[str, Any]:
    """In each of two processes: a step alone with its share of the rows, and one of both."""
    sent: Counter[str] = Counter()
    original, joined = dist.all_reduce, dist.is_initialized

    def counted(x, *options):  # type: ignore[no-untyped-def]
        sent.update(messages=1, bytes=x.numel() * x.element_size())
        return original(x, *options)

    X, epochs = rows_of(STEPS * batch), 4
    alone, together = [], []
    for _ in range(ROUNDS):
        dist.is_initialized = lambda: False
        alone.append(epoch_seconds(model_of(batch // 2, epochs=epochs), X[: len(X) // 2]))
        dist.is_initialized = joined
        model = model_of(batch, epochs=epochs)
        together.append(epoch_seconds(model, X))
    dist.all_reduce = counted
    model_of(batch, epochs=2 * epochs).fit(X)
    twice = dict(sent)
    sent.clear()
    weights = sum(p.numel() for p in model.network_.parameters())
    model_of(batch, epochs=epochs).fit(X)
    dist.all_reduce = original
    small, large = torch.zeros(8), torch.zeros(1 << 20)
    each = {name: (twice[name] - sent[name]) / epochs / STEPS for name in sent}
    return {
        "kind": "two processes",
        "batch": batch,
        "alone": statistics.median(alone),
        "together": statistics.median(together),
        **each,
        "gradients": 4 * weights,
        "latency": message_seconds(small),
        "bandwidth": large.nbytes / message_seconds(large),
    }


def disk_counts(folder: Path) -> dict[str, Any]:
    """Bytes that a process reads from rows on disk, in sizes of the file, and single rows."""
    read: Counter[str] = Counter()
    fill, rows = on_disk.Span._fill, on_disk.Span.rows

    def filled(self, file, left):  # type: ignore[no-untyped-def]
        read["bytes"] += len(left)
        return fill(self, file, left)

    def single(self, index):  # type: ignore[no-untyped-def]
        read["single"] += len(index)
        return rows(self, index)

    on_disk.Span._fill, on_disk.Span.rows = filled, single
    # As if there were many more rows: the buffer holds some batches, and nothing else is kept.
    on_disk.BUFFER_BYTES, on_disk.BLOCK_BYTES = 1 << 22, 1 << 16
    projection.CACHED_ENTRIES, search.EXACT_ROWS = 1, 1000
    X = np.load(folder / "rows.npy", mmap_mode="r")
    found = {}
    for epochs in (1, 3):
        read.clear()
        model_of(BATCHES[1], epochs=epochs).fit(X)
        found[epochs] = dict(read)
    epoch = {name: (found[3][name] - found[1][name]) / 2 for name in found[1]}
    return {
        "kind": "reading",
        "processes": dist.get_world_size(),
        "other passes": (found[1]["bytes"] - epoch["bytes"]) / X.nbytes,
        "blocks": (epoch["bytes"] / X.nbytes) - epoch["single"] / len(X),  # of an epoch
        "single": epoch["single"] / len(X),  # rows of an epoch that are read one by one
    }


def worker(folder: Path, kind: str) -> None:
    dist.init_process_group("gloo")
    if kind == "reading":
        records = [disk_counts(folder)]
    else:
        records = [two_processes(batch) for batch in BATCHES[1:]]
    if dist.get_rank() == 0:
        (folder / "records.json").write_text(json.dumps(records))
    dist.destroy_process_group()


def by_two(kind: str) -> Iterator[dict[str, Any]]:
    """Records of two processes that torchrun starts."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "rows.npy"), rows_of(ON_DISK))
        run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        subprocess.run([*run, __file__, folder, kind], check=True)
        yield from json.loads(Path(folder, "records.json").read_text())


KINDS: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
    "step": lambda: map(step_counts, BATCHES),
    "neighbours": lambda: map(search_counts, SEARCHED),
    "processes": lambda: by_two("processes"),
    "reading": lambda: by_two("reading"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=Path, default=RECORDS, help="lines are added to it")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    given = parser.parse_args()
    about = timing.machine() | {"commit": commit()}
    for kind in given.kinds:
        for record in KINDS[kind]():
            with given.records.open("a") as file:
                file.write(json.dumps(record | about) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if "RANK" in os.environ:
        worker(Path(sys.argv[1]), sys.argv[2])
    else:
        main()
