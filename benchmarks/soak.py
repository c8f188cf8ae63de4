"""Memory of one process over a thousand fits and transforms.

    python benchmarks/soak.py [fits]

Resident memory is read after every twentieth of the fits. Growth is the slope of a line through the
second half of the readings, when allocators and caches have settled. The last line is JSON.
"""

import gc
import json
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

FITS = 1000
READINGS = 20


def resident() -> float:
    """Resident memory of this process in MiB."""
    gc.collect()
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found.group(1)) / 1024 if found else float("nan")


def use(X: np.ndarray, seed: int, folder: Path) -> None:
    """All that a long-lived process does with a model: fit, embed, assign, keep, read back."""
    from selfview import SelfView

    checkpoint = folder / "checkpoint"
    given = dict(n_components=4, n_prototypes=16, epochs=2, batch_size=64, verbose=0)
    model = SelfView(**given, random_state=seed, checkpoint=checkpoint).fit(X)  # type: ignore[arg-type]
    model.transform(X)
    model.predict_proba(X)
    if seed % 10 == 0:
        model.save(folder / "model")
        SelfView.load(folder / "model").partial_fit(X)
    for path in checkpoint.iterdir():
        path.unlink()


def main(fits: int) -> None:
    warnings.simplefilter("ignore")
    X = np.random.default_rng(0).normal(size=(128, 32)).astype(np.float32)
    every = max(1, fits // READINGS)
    start, done, memory = time.perf_counter(), [], []
    print(f"{'fits':>6} {'resident MiB':>13}")
    with tempfile.TemporaryDirectory() as name:
        for i in range(1, fits + 1):
            use(X, i, Path(name))
            if i % every == 0:
                done.append(i)
                memory.append(resident())
                print(f"{i:6} {memory[-1]:13.1f}", flush=True)
    half = len(done) // 2
    slope = float(np.polyfit(done[half:], memory[half:], 1)[0]) if len(done) > 3 else float("nan")
    record = {
        "benchmark": "soak",
        "fits": fits,
        "resident_mib": [round(m, 1) for m in memory],
        "growth_kib_per_fit": round(1024 * slope, 2),
        "seconds": round(time.perf_counter() - start, 1),
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else FITS)
