"""Peak memory and seconds of an epoch and of embedding, as the number of rows on disk grows.

    python benchmarks/memory.py [npy csr parquet imzml ...] [--most N] [--encoder linear|mlp]

Rows of 1,000 features, n = 10^4, 10^5, 10^6 of them, are written to a temporary folder (4 GB of
.npy at 10^6, and as much in the cache for other kinds; TMPDIR names another place) and read as
`selfview fit FILE` does, each case in a process of its own. Apart are timed: "prepare" (what is
done once for a file: tables, .npz and spectra are brought into the cache), "check" (the pass
through all rows before training), an epoch, and embedding. What is over in a moment is repeated.

Seconds are the processor's, for a million rows; "all" is their sum. Still they depend on what else
the machine does. So a signal interrupts each case twice a second for a fixed piece of work, whose
time over that of the first case is in the last column: where "work" is 1.10, all is 10 % slower.
Cases below 10^6 rows are over in seconds, and are done three times: the one of median time counts.

The encoder is one linear layer unless told, so that the time is the data's and not the network's.
"peak" is VmHWM of the process, mapped pages and libraries included; "beyond" is what it grew after
a small file of the kind was used. The shuffle buffer is part of it, and stated in the first line.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

FEATURES = 1000
SIZES = (10**4, 10**5, 10**6)
NONZERO = 50  # a row of the sparse matrix
SUFFIX = {"npy": "npy", "csr": "npz", "parquet": "parquet", "imzml": "imzML"}
STEP = 5000  # rows made at once
GROUP = 50_000  # rows of a Parquet row group; their list is in memory, a row group's entry each
MIB = 2**20
EVERY = 0.5  # seconds of processor time between two pieces of work
LONG, MANY = 3.0, 20  # seconds; what takes less is repeated, up to so many times
ROWS = 10**5  # at least so many are trained on


def pieces(n: int) -> Iterator[np.ndarray]:
    """Rows around ten centres, a piece at a time; in file order they are sorted by centre."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, FEATURES)).astype(np.float32)
    for start in range(0, n, STEP):
        label = np.arange(start, min(start + STEP, n)) * 10 // n
        yield centres[label] + rng.normal(size=(len(label), FEATURES)).astype(np.float32)


def make_npy(path: Path, n: int) -> None:
    with path.open("wb") as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, FEATURES)}
        np.lib.format.write_array_header_1_0(stream, header)
        for piece in pieces(n):
            piece.tofile(stream)


def make_csr(path: Path, n: int) -> None:
    from scipy.sparse import csr_matrix, save_npz

    rng = np.random.default_rng(0)
    wide = FEATURES // NONZERO  # one entry in each strip of columns: sorted, and no doubles
    indices = rng.integers(0, wide, (n, NONZERO), dtype=np.int32)
    indices += np.arange(0, FEATURES, wide, dtype=np.int32)
    data = rng.random(n * NONZERO, dtype=np.float32) + 0.1
    indptr = np.arange(0, n * NONZERO + 1, NONZERO, dtype=np.int32)
    save_npz(path, csr_matrix((data, indices.ravel(), indptr), (n, FEATURES)), compressed=False)


def make_parquet(path: Path, n: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"f{i}" for i in range(FEATURES)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        group: list[np.ndarray] = []
        for piece in pieces(n):
            group.append(piece)
            if len(group) * STEP >= GROUP:
                writer.write_table(table(np.concatenate(group), schema))
                group = []
        if group:
            writer.write_table(table(np.concatenate(group), schema))


def table(rows: np.ndarray, schema: Any) -> Any:
    import pyarrow as pa

    return pa.table(dict(zip(schema.names, rows.T, strict=True)), schema)


def make_imzml(path: Path, n: int) -> None:
    from pyimzml.ImzMLWriter import ImzMLWriter

    mz = np.linspace(51, 999, FEATURES)
    with ImzMLWriter(str(path), mode="continuous", intensity_dtype=np.float32) as writer:
        done = 0
        for piece in pieces(n):
            for row in np.abs(piece):
                writer.addSpectrum(mz, row, (done % 1000 + 1, done // 1000 + 1, 1))
                done += 1


MAKE = {"npy": make_npy, "csr": make_csr, "parquet": make_parquet, "imzml": make_imzml}


def status(name: str) -> float:
    """A figure of this process in MiB."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found.group(1)) / 1024 if found else float("nan")


class Meter:
    """Seconds of this process, less those of a fixed piece of work that it does now and then."""

    def __init__(self) -> None:
        self.matrix = np.random.default_rng(0).random((256, 256), dtype=np.float32)
        self.spent, self.worked, self.times = 0.0, 0.0, 0

    def work(self, *_: object) -> None:
        """Multiply small matrices; the first time, which fills the cache, is not counted."""
        start = time.process_time()
        self.matrix @ self.matrix
        warm = time.process_time()
        for _ in range(10):
            self.matrix @ self.matrix
        end = time.process_time()
        self.spent += end - start
        self.worked += end - warm
        self.times += 1

    def now(self) -> float:
        return time.process_time() - self.spent

    def of(self, task: Callable[[], object]) -> tuple[float, float]:
        """Seconds of a task, repeated if it is short, and of the work in between."""
        start, before, runs = self.now(), (self.worked, self.times), 0
        self.work()  # at least once
        while runs == 0 or (runs < MANY and self.now() - start < LONG):
            task()
            runs += 1
        seconds = (self.now() - start) / runs
        return seconds, (self.worked - before[0]) / (self.times - before[1])

    def interrupting(self) -> None:
        """From now on, do the work every half second of processor time."""
        signal.signal(signal.SIGPROF, self.work)
        signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)


def measure(kind: str, path: Path, encoder: str) -> dict[str, Any]:
    """Prepare, check, train and embed; what each took, a row."""
    from torch import nn

    from selfview import SelfView
    from selfview.data import guard, read
    from selfview.rows import on_disk
    from selfview.rows.conversion import as_rows

    guard.IN_MEMORY = 0  # small files too go the way of large ones, so that sizes can be compared
    warnings.simplefilter("ignore")  # one epoch teaches little, and says so
    own = nn.Linear(FEATURES, 10) if encoder == "linear" else "mlp"
    model = SelfView(encoder=own, epochs=1, random_state=0, verbose=0, views="random", neighbours=0)
    options = {"bins": FEATURES} if kind == "imzml" else {}
    small = path.with_name(f"small.{SUFFIX[kind]}")
    MAKE[kind](small, 512)
    model.fit(read(small, **options).X)  # everything is loaded now
    meter = Meter()
    meter.work()
    before = status("VmRSS")
    meter.interrupting()
    found: list[Any] = []

    def prepare() -> None:
        shutil.rmtree(os.environ["SELFVIEW_CACHE"], ignore_errors=True)
        found[:] = [read(path, **options).X]

    took = {"prepare": meter.of(prepare)}
    X, n = found[0], int(found[0].shape[0])
    prepared = status("VmHWM")
    took["check"] = meter.of(lambda: as_rows(X).summary())
    took["epoch"] = epoch(meter, model.set_params(epochs=max(1, ROWS // n)), X)
    fitted = status("VmHWM")
    took["embed"] = meter.of(lambda: model.transform(X))
    signal.setitimer(signal.ITIMER_PROF, 0)
    return {
        "kind": kind, "n": n, "before_mib": before, "peak_prepare_mib": prepared,
        "peak_fit_mib": fitted, "peak_mib": status("VmHWM"), "private_mib": status("RssAnon"),
        "cpu_s": {name: seconds for name, (seconds, _) in took.items()},
        "work_s": {name: work for name, (_, work) in took.items()},
        "buffer_mib": on_disk.BUFFER_BYTES / MIB,
    }  # fmt: skip


def epoch(meter: Meter, model: Any, X: Any) -> tuple[float, float]:
    """Seconds of an epoch of a fit, without what goes before and after, and of the work."""
    from selfview.training import loop

    original, starts, ends = loop.batches, [], []
    marks: list[tuple[float, int]] = []

    def noted(*given: Any) -> Any:
        marks.append((meter.worked, meter.times))
        starts.append(meter.now())
        return original(*given)

    loop.batches = noted
    try:
        model.set_params(on_epoch=lambda _: ends.append(meter.now())).fit(X)
    finally:
        loop.batches = original
    work = (meter.worked - marks[0][0]) / (meter.times - marks[0][1])
    return (sum(ends) - sum(starts)) / len(ends), work


def child(*arguments: object) -> str:
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def main() -> None:
    """All cases, or those named: a table, then one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds", nargs="*", default=list(MAKE))
    parser.add_argument("--most", type=int, default=SIZES[-1])
    parser.add_argument("--encoder", choices=("linear", "mlp"), default="linear")
    given = parser.parse_args()
    from selfview.rows.on_disk import BUFFER_BYTES

    print(
        f"encoder: {given.encoder}; seconds are the processor's, a million rows; memory is MiB, "
        f"of which the shuffle buffer may be {BUFFER_BYTES / MIB:.0f}"
    )
    head = ("kind", "rows", "prepare", "check", "epoch", "embed", "all", "peak", "beyond", "work")
    print(f"{head[0]:<8}{head[1]:>10}" + "".join(f"{word:>9}" for word in head[2:]))
    records: list[Any] = []
    for kind in given.kinds:
        for n in (size for size in SIZES if size <= given.most):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["SELFVIEW_CACHE"] = f"{folder}/cache"
                path = Path(folder, f"rows.{SUFFIX[kind]}")
                child("--make", kind, path, n)
                runs = [
                    json.loads(child("--measure", kind, path, given.encoder))
                    for _ in range(1 if n >= SIZES[-1] else 3)
                ]
            found = sorted(runs, key=lambda run: sum(run["cpu_s"].values()))[len(runs) // 2]
            records.append(found)
            times = [seconds * 1e6 / n for seconds in found["cpu_s"].values()]
            memory = [found["peak_mib"], found["peak_mib"] - found["before_mib"]]
            row = [*(f"{t:>9.1f}" for t in (*times, sum(times))), *(f"{m:>9.0f}" for m in memory)]
            work = found["work_s"]["epoch"] / records[0]["work_s"]["epoch"]
            print(f"{kind:<8}{n:>10,}" + "".join(row) + f"{work:>9.2f}", flush=True)
    print(json.dumps({"benchmark": "memory", "encoder": given.encoder, "records": records}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        MAKE[sys.argv[2]](Path(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], Path(sys.argv[3]), sys.argv[4])))
    else:
        main()
