"""Peak memory and seconds of an epoch and of embedding, as the number of rows on disk grows.

    python benchmarks/memory.py [npy csr parquet imzml ...] [--most N] [--encoder linear|mlp]

Rows of 1,000 features, n = 10^4, 10^5, 10^6 of them, are written to a temporary folder (4 GB of
.npy at 10^6; TMPDIR names another place) and read as `selfview fit FILE` does, each case in a
process of its own. Preparing (what is done once for a file: tables and .npz are brought into the
cache) and an epoch with the pass before it that checks all numbers are timed apart.

The encoder is one linear layer unless told, so that the time is the data's and not the network's.
"peak" is VmHWM of the process, mapped pages and libraries included; "beyond" is what it grew after
the libraries were loaded. The shuffle buffer is part of it, and stated in the first line. Times in
the table are of the processor, so that what else the machine does counts less; the line of JSON has
those of the clock too.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
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


def measure(kind: str, path: Path, encoder: str) -> dict[str, Any]:
    """Prepare, train for an epoch and embed; what each took."""
    from torch import nn

    from selfview import SelfView, stored
    from selfview.data import guard, read

    guard.IN_MEMORY = 0  # small files too go the way of large ones, so that sizes can be compared
    warnings.simplefilter("ignore")  # one epoch teaches little, and says so
    own = nn.Linear(FEATURES, 10) if encoder == "linear" else "mlp"
    model = SelfView(encoder=own, epochs=1, random_state=0, verbose=0, views="random")
    model.fit(np.random.default_rng(0).random((512, FEATURES)))  # everything is loaded now
    before = status("VmRSS")
    marks = [(time.process_time(), time.perf_counter())]
    options = {"bins": FEATURES} if kind == "imzml" else {}
    X = read(path, **options).X
    marks.append((time.process_time(), time.perf_counter()))
    prepared = status("VmHWM")
    model.fit(X)
    marks.append((time.process_time(), time.perf_counter()))
    fitted = status("VmHWM")
    out = model.transform(X)
    marks.append((time.process_time(), time.perf_counter()))
    assert np.isfinite(out).all()
    cpu, wall = np.diff(np.array(marks), axis=0).T.tolist()
    names = ("prepare", "fit", "embed")
    return {
        "kind": kind, "n": int(X.shape[0]), "before_mib": before, "peak_prepare_mib": prepared,
        "peak_fit_mib": fitted, "peak_mib": status("VmHWM"), "private_mib": status("RssAnon"),
        "cpu_s": dict(zip(names, cpu, strict=True)), "wall_s": dict(zip(names, wall, strict=True)),
        "buffer_mib": stored.BUFFER_BYTES / MIB,
    }  # fmt: skip


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
    from selfview.stored import BUFFER_BYTES

    print(
        f"encoder: {given.encoder}; seconds are the processor's, a million rows; memory is MiB, "
        f"of which the shuffle buffer may be {BUFFER_BYTES / MIB:.0f}"
    )
    head = ("kind", "rows", "prepare", "epoch", "embed", "peak", "beyond")
    print(f"{head[0]:<8}{head[1]:>10}" + "".join(f"{word:>10}" for word in head[2:]))
    records = []
    for kind in given.kinds:
        for n in (size for size in SIZES if size <= given.most):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["SELFVIEW_CACHE"] = f"{folder}/cache"
                path = Path(folder, f"rows.{SUFFIX[kind]}")
                child("--make", kind, path, n)
                found = json.loads(child("--measure", kind, path, given.encoder))
            records.append(found)
            times = [seconds * 1e6 / n for seconds in found["cpu_s"].values()]
            memory = [found["peak_mib"], found["peak_mib"] - found["before_mib"]]
            row = [*(f"{t:>10.1f}" for t in times), *(f"{m:>10.0f}" for m in memory)]
            print(f"{kind:<8}{n:>10,}" + "".join(row), flush=True)
    print(json.dumps({"benchmark": "memory", "encoder": given.encoder, "records": records}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        MAKE[sys.argv[2]](Path(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], Path(sys.argv[3]), sys.argv[4])))
    else:
        main()
