"""Seconds that training on rows from disk takes a row, for 10^4, 10^5 and 10^6 of them in turns.

    python benchmarks/per_row.py [npy csr ...]

What else a machine does changes the time of a step by tens of percent, from one minute to the next.
So one process trains on files of all three sizes in turns, on about 10^5 rows of each (ten epochs,
one, and the first tenth of an epoch, whose rows come from all over the file), for several rounds;
in each round the times are compared with each other, and the median over the rounds counts. Tables
and spectra are brought into the cache as .npy files, so that their epochs are those of "npy".
"""

import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from memory import FEATURES, SIZES, SUFFIX, child

ROWS = 10**5  # trained on in a turn
ROUNDS = 5
BATCH = 256


def seconds_a_row(X: Any) -> float:
    """Processor's seconds a row of training, without what goes before and after."""
    from torch import nn

    from selfview import SelfView
    from selfview.training import loop

    original, marks, rows = loop.batches, [], 0

    def some(*given: Any) -> Any:
        nonlocal rows
        marks.append(time.process_time())
        order = original(*given)[: ROWS // BATCH]
        rows += sum(map(len, order))
        return order

    encoder, epochs = nn.Linear(FEATURES, 10), max(1, ROWS // X.shape[0])
    model = SelfView(encoder=encoder, epochs=epochs, batch_size=BATCH, random_state=0, verbose=0)
    model.set_params(views="random", neighbours=0)
    loop.batches = some
    try:
        model.set_params(on_epoch=lambda _: marks.append(time.process_time())).fit(X)
    finally:
        loop.batches = original
    return float(np.diff(marks)[::2].sum()) / rows


def measure(kind: str, folder: Path) -> dict[str, Any]:
    """Rounds of all sizes in turns: seconds, and their ratios to the middle size."""
    from selfview.data import guard, read

    guard.IN_MEMORY = 0  # small files too go the way of large ones
    files = {n: folder / f"{n}.{SUFFIX[kind]}" for n in SIZES}
    for n, path in files.items():
        child("--make", kind, path, n)
    data = {n: read(path).X for n, path in files.items()}
    seconds_a_row(data[SIZES[0]])  # everything is loaded now
    rounds = [{n: seconds_a_row(X) for n, X in data.items()} for _ in range(ROUNDS)]
    middle = SIZES[1]
    return {
        "kind": kind,
        "rounds": rounds,
        "seconds": {n: 1e6 * statistics.median(r[n] for r in rounds) for n in SIZES},
        "ratio": {n: statistics.median(r[n] / r[middle] for r in rounds) for n in SIZES},
    }


def main(kinds: list[str]) -> None:
    """A line a kind and size, then one line of JSON."""
    warnings.simplefilter("ignore")  # one epoch teaches little, and says so
    print(f"{'kind':<8}{'rows':>10}{'s a million':>13}{f'over {SIZES[1]:,}':>15}")
    records = []
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["SELFVIEW_CACHE"] = f"{folder}/cache"
            found = measure(kind, Path(folder))
        records.append(found)
        for n in SIZES:
            figures = f"{found['seconds'][n]:>13.1f}{found['ratio'][n]:>15.3f}"
            print(f"{kind:<8}{n:>10,}{figures}", flush=True)
    print(json.dumps({"benchmark": "per_row", "records": records}))


if __name__ == "__main__":
    main(sys.argv[1:] or ["npy", "csr"])
