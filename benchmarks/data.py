"""Seconds and peak memory of reading large data, each case in a process of its own.

    python benchmarks/data.py [case ...]

20news needs SELFVIEW_DATA (or a download); the other files are made here, as files with holes where
they can be, so that ten gigabytes cost no disk.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

GIB = 2**30


def newsgroups(folder: Path) -> str:
    """The whole preparation of 20news, nothing cached."""
    from selfview import load_dataset

    if not os.environ.get("SELFVIEW_DATA"):
        return "skipped: set SELFVIEW_DATA"
    os.environ["SELFVIEW_CACHE"] = str(folder)
    return f"{load_dataset('20news').X.shape}"


def large_npy(folder: Path) -> str:
    """A 4 GiB .npy: opened, and 200 random batches of 256 rows drawn."""
    from selfview.data import read

    path = folder / "large.npy"
    shape = (GIB // 1024, 1024)
    with path.open("wb") as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.truncate(stream.tell() + 4 * GIB)
    return draw(read(path).X)


def large_csr(folder: Path) -> str:
    """A CSR matrix of 1,000,000 x 20,000 at 0.5 %: read, and 200 random batches of 256 drawn."""
    from selfview.data import read

    return draw(read(folder / "large.npz").X)


def make_large_csr(folder: Path) -> None:
    """Written in a process of its own, whose memory isn't the reader's."""
    n, dim, each = 1_000_000, 20_000, 100
    rng = np.random.default_rng(0)
    # One index in each of a row's hundred strips: sorted and without doubles at no cost.
    indices = rng.integers(0, dim // each, (n, each), dtype=np.int32)
    indices += np.arange(0, dim, dim // each, dtype=np.int32)
    data = np.ones(n * each, dtype=np.float32)
    indptr = np.arange(0, n * each + 1, each, dtype=np.int32)
    shape = np.array([n, dim])
    np.savez(folder / "large.npz", data=data, indices=indices.ravel(), indptr=indptr, shape=shape)


def draw(X: object) -> str:
    """What training asks of rows: random batches, made dense one at a time."""
    rng = np.random.default_rng(0)
    total = 0.0
    for _ in range(200):
        rows = np.sort(rng.integers(0, X.shape[0], 256))  # type: ignore[attr-defined]
        batch = X[rows]  # type: ignore[index]
        total += float(np.asarray(batch.toarray() if hasattr(batch, "toarray") else batch).sum())
    return f"{type(X).__name__} {X.shape}, 200 batches"  # type: ignore[attr-defined]


def imzml(folder: Path, gigabytes: int) -> str:
    """An imzML whose .ibd has so many gigabytes, binned into 1,024 bins."""
    from selfview.data import read

    os.environ["SELFVIEW_CACHE"] = str(folder)
    return f"{read(folder / f'{gigabytes}.imzML').X.shape}"


def make_imzml(folder: Path, gigabytes: int, points: int = 125_000) -> None:
    """A continuous image, written small by pyimzML, then stretched over a file with holes."""
    from pyimzml.ImzMLWriter import ImzMLWriter

    n = gigabytes * GIB // (4 * points)
    path = folder / f"{gigabytes}.imzML"
    with ImzMLWriter(
        str(path), mode="continuous", intensity_dtype=np.float32, mz_dtype=np.float64
    ) as writer:
        mz = np.linspace(50, 1000, 4)
        for i in range(n):
            writer.addSpectrum(mz, np.ones(4), (i % 100 + 1, i // 100 + 1, 1))
    ibd = path.with_suffix(".ibd")
    with ibd.open("r+b") as stream:
        stream.seek(16)
        stream.write(np.linspace(50, 1000, points).tobytes())
        start = stream.tell()
        stream.truncate(start + n * points * 4)
    text = path.read_text(encoding="iso-8859-1")
    text = re.sub(r'(IMS:1000103"[^>]*value=)"4"', rf'\1"{points}"', text)
    offsets = iter(range(10**9))

    def place(match: re.Match[str]) -> str:
        k = next(offsets)  # m/z and intensities take turns
        value = 16 if k % 2 == 0 else start + (k // 2) * points * 4
        return f'{match.group(1)}"{value}"'

    text = re.sub(r'(IMS:1000102"[^>]*value=)"\d+"', place, text)
    path.write_text(text, encoding="iso-8859-1")


CASES: dict[str, tuple[Callable[[Path], None] | None, Callable[[Path], str]]] = {
    "20news": (None, newsgroups),
    "4 GiB .npy": (None, large_npy),
    "CSR 1,000,000 x 20,000": (make_large_csr, large_csr),
    "1 GiB imzML": (lambda f: make_imzml(f, 1), lambda f: imzml(f, 1)),
    "10 GiB imzML": (lambda f: make_imzml(f, 10), lambda f: imzml(f, 10)),
}


def measure(case: str, folder: Path) -> None:
    """FitPlan in the child: the case, then what it cost beyond an interpreter with numpy."""
    private = [0]
    threading.Thread(target=watch, args=(private,), daemon=True).start()
    start = time.perf_counter()
    what = CASES[case][1](folder)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"what": what, "seconds": seconds, "peak": peak, "private": private[0]}))


def watch(most: list[int]) -> None:
    """Keep the most private memory seen; pages of mapped files aren't, the system can drop them."""
    while True:
        text = Path("/proc/self/status").read_text()
        now = re.search(r"RssAnon:\s+(\d+) kB", text)
        most[0] = max(most[0], int(now.group(1)) * 1024 if now else 0)
        time.sleep(0.02)


def child(stage: str, case: str, folder: Path) -> str:
    """One stage of a case in a new process; its last line."""
    command = [sys.executable, __file__, stage, case, str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip().rpartition("\n")[2]


def main() -> None:
    """All cases, or those named."""
    print(f"{'case':<24}{'seconds':>9}{'peak MiB':>10}{'private':>9}  result")
    for case in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as folder:
            if CASES[case][0] is not None:
                child("--make", case, Path(folder))
            found = json.loads(child("--measure", case, Path(folder)))
        peak, private = found["peak"] / 2**20, found["private"] / 2**20
        figures = f"{found['seconds']:>9.1f}{peak:>10.0f}{private:>9.0f}"
        print(f"{case:<24}{figures}  {found['what']}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make = CASES[sys.argv[2]][0]
        if make is not None:
            make(Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
