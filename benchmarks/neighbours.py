"""Engines of approximate nearest neighbours: recall at 10, seconds and memory, each in a process.

    python benchmarks/neighbours.py [--rows 100000] [--components 64] [--threads 2] [--engines ...]

Rows are a mixture of 20 Gaussians, each with 16 directions of its own and a little noise in all
components, as rows of real data have few degrees of freedom around a point. Every row is looked up
among all others, as `fit` does it. Recall is that of 1,000 rows, against an exact search.

"seconds" are those of building the index and of all look-ups; "busy" are the processors' own, of
all threads together. Both depend on what else the machine does: "work" is the time of a fixed
matrix product beside it, over the fastest of the run. "MiB" is the peak of the process beyond the
rows and the libraries. "same" says whether a second search with as many threads found the same rows
in the same order: a fit must give the same bits.

Engines that are not installed are left out: pip install faiss-cpu hnswlib usearch pynndescent.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

NEAREST = 10
ASKED = 1000  # rows whose true neighbours are known
GAUSSIANS, DIRECTIONS, NOISE = 20, 16, 0.1


def made_rows(n: int, components: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(GAUSSIANS, components)).astype(np.float32)
    axes = rng.normal(size=(GAUSSIANS, DIRECTIONS, components)).astype(np.float32) / 4
    rows = NOISE * rng.standard_normal((n, components), dtype=np.float32)
    kinds = rng.integers(0, GAUSSIANS, n)
    for kind in range(GAUSSIANS):
        own = np.flatnonzero(kinds == kind)
        within = rng.standard_normal((len(own), DIRECTIONS), dtype=np.float32)
        rows[own] += centres[kind] + within @ axes[kind]
    return rows


def truth(rows: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Exact neighbours of some rows, a block of all rows at a time."""
    best = np.full((len(asked), NEAREST), np.inf, np.float32)
    found = np.zeros((len(asked), NEAREST), np.int64)
    for start in range(0, len(rows), 50_000):
        part = rows[start : start + 50_000]
        distances = (part**2).sum(1) - 2 * rows[asked] @ part.T
        own = (asked >= start) & (asked < start + len(part))
        distances[own, asked[own] - start] = np.inf
        near = np.argpartition(distances, NEAREST, axis=1)[:, :NEAREST]
        both = np.concatenate([best, np.take_along_axis(distances, near, 1)], 1)
        numbers = np.concatenate([found, near + start], 1)
        order = np.argsort(both, axis=1)[:, :NEAREST]
        best = np.take_along_axis(both, order, 1)
        found = np.take_along_axis(numbers, order, 1)
    return found


def selfview(rows: np.ndarray, threads: int) -> np.ndarray:
    """What `fit` uses: Faiss's inverted file, with our choice of cells and probes."""
    import torch

    from selfview.neighbours.search import nearest

    torch.set_num_threads(threads)
    return nearest(torch.from_numpy(rows), NEAREST)


def torch_cells(rows: np.ndarray, threads: int) -> np.ndarray:
    """What `fit` falls back to where no engine is installed."""
    import torch

    from selfview.neighbours import cells

    torch.set_num_threads(threads)
    return cells.nearest(torch.from_numpy(rows), NEAREST)


def faiss_hnsw(rows: np.ndarray, threads: int) -> np.ndarray:
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexHNSWFlat(rows.shape[1], 16)
    index.hnsw.efConstruction = 80
    index.add(rows)
    index.hnsw.efSearch = 64
    return index.search(rows, NEAREST + 1)[1]


def hnswlib(rows: np.ndarray, threads: int) -> np.ndarray:
    import hnswlib as library

    index = library.Index(space="l2", dim=rows.shape[1])
    index.init_index(max_elements=len(rows), ef_construction=80, M=16, random_seed=0)
    index.add_items(rows, num_threads=threads)
    index.set_ef(64)
    return index.knn_query(rows, k=NEAREST + 1, num_threads=threads)[0]


def usearch(rows: np.ndarray, threads: int) -> np.ndarray:
    from usearch.index import Index

    index = Index(ndim=rows.shape[1], metric="l2sq", dtype="f32", connectivity=16)
    index.expansion_add, index.expansion_search = 80, 64
    index.add(np.arange(len(rows)), rows, threads=threads)
    return np.asarray(index.search(rows, NEAREST + 1, threads=threads).keys)


def pynndescent(rows: np.ndarray, threads: int) -> np.ndarray:
    from pynndescent import NNDescent

    index = NNDescent(rows, n_neighbors=NEAREST + 5, random_state=0, n_jobs=threads)
    return index.neighbor_graph[0]


ENGINES = {
    "selfview": (selfview, "faiss"),
    "torch cells": (torch_cells, "torch"),
    "faiss hnsw": (faiss_hnsw, "faiss"),
    "hnswlib": (hnswlib, "hnswlib"),
    "usearch": (usearch, "usearch"),
    "pynndescent": (pynndescent, "pynndescent"),
}


def peak() -> float:
    """MiB that this process has had resident at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def work() -> float:
    """Seconds of a fixed piece of work."""
    a = np.random.default_rng(0).random((1500, 1500), dtype=np.float32)
    start = time.perf_counter()
    for _ in range(5):
        a @ a
    return time.perf_counter() - start


def others(found: np.ndarray) -> list[list[int]]:
    """The first rows of `found` that are not the row itself."""
    kept = [[j for j in row if j != i] for i, row in enumerate(found.tolist())]
    return [row[:NEAREST] for row in kept]


def measure(name: str, path: Path, threads: int, repeat: bool) -> dict[str, Any]:
    rows = np.load(path / "rows.npy")
    asked, true = np.load(path / "asked.npy"), np.load(path / "truth.npy")
    search, library = ENGINES[name]
    importlib.import_module(library)
    search(rows[:3000].copy(), threads)  # what is compiled or loaded on first use
    before, start, busy = peak(), time.perf_counter(), time.process_time()
    found = np.asarray(search(rows, threads))
    busy = time.process_time() - busy
    seconds, memory = time.perf_counter() - start, peak() - before
    near = others(found)
    hits = [len(set(near[i]) & set(t)) for i, t in zip(asked.tolist(), true.tolist(), strict=True)]
    same = bool(np.array_equal(found, search(rows, threads))) if repeat else None
    return {
        "recall": float(np.mean(hits)) / NEAREST,
        "seconds": seconds,
        "busy": busy,
        "memory": memory,
        "same": same,
        "work": work(),
    }


def main() -> None:
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--components", type=int, nargs="+", default=[64])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    parser.add_argument("--once", action="store_true", help="don't search twice")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        name, folder = given.case
        print(json.dumps(measure(name, Path(folder), given.threads, not given.once)))
        return
    print(f"{given.rows:,} rows, {given.threads} threads, 10 neighbours")
    print("components engine           recall  seconds   busy    MiB same  work")
    for components in given.components:
        with tempfile.TemporaryDirectory() as folder:
            rows = made_rows(given.rows, components)
            asked = np.sort(np.random.default_rng(1).permutation(given.rows)[:ASKED])
            for name, array in (("rows", rows), ("asked", asked), ("truth", truth(rows, asked))):
                np.save(Path(folder, f"{name}.npy"), array)
            del rows
            run_all(given, components, folder)


def run_all(given: argparse.Namespace, components: int, folder: str) -> None:
    fastest = work()
    for name in given.engines:
        if importlib.util.find_spec(ENGINES[name][1]) is None:
            print(f"{components:>10} {name:16} is not installed")
            continue
        command = [sys.executable, __file__, "--case", name, folder]
        command += ["--threads", str(given.threads)] + ["--once"] * given.once
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{components:>10} {name:16} failed: {done.stderr.strip()[-80:]}")
            continue
        r = json.loads(done.stdout.splitlines()[-1])
        fastest = min(fastest, r["work"])
        same = {True: "yes", False: "no", None: "-"}[r["same"]]
        print(
            f"{components:>10} {name:16} {r['recall']:6.3f} {r['seconds']:8.1f} "
            f"{r['busy']:6.1f} {r['memory']:6.0f} {same:5} {r['work'] / fastest:4.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
