"""`transform` against the matrix-multiply limit, and how long one row, `fit` and `import` take.

    python benchmarks/transform.py [--rows 100000] [--rounds 5]

"of the limit": FLOP/s of the encoder over the machine's rate. One row's latency is in milliseconds:
the one figure here that is not a ratio, because a user waits for it. "first step" is the time from
the call of `fit` to the end of the first step on 3,000 x 2,304 rows, in seconds. "import" is
`import selfview` (with SelfView looked up) over `import torch, sklearn`, each in a new process.
"""

import argparse
import statistics
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

import timing
from selfview import SelfView
from selfview.training.loop import TrainingError
from selfview.training.optimiser import Adam

FEATURES = 2304


def first_step(X: np.ndarray) -> float:
    """Seconds from the call of `fit` until the optimiser has moved once."""
    marks = SimpleNamespace(end=0.0)

    class StoppedError(TrainingError):
        pass

    step = Adam.step

    def stop(self: Adam, *args: object, **kwargs: object) -> None:
        step(self, *args, **kwargs)
        marks.end = time.perf_counter()
        raise StoppedError

    Adam.step = stop
    try:
        start = time.perf_counter()
        SelfView(epochs=1, random_state=0, verbose=0).fit(X)
    except StoppedError:
        return marks.end - start
    finally:
        Adam.step = step
    raise AssertionError("no step was made")


def import_ratio(rounds: int = 7) -> float:
    def seconds(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(seconds("from selfview import SelfView"))
        theirs.append(seconds("import torch, sklearn.base, sklearn.utils.validation"))
    return statistics.median(ours) / statistics.median(theirs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    X = np.random.default_rng(0).random((options.rows, FEATURES), dtype=np.float32)
    model = SelfView(epochs=1, random_state=0, verbose=0).fit(X[:512])
    row = X[:1]
    seconds = timing.medians(
        {**timing.products(torch.float32), "all": lambda: model.transform(X)},
        rounds=options.rounds,
        warm=1,
    )
    latency = timing.medians({"row": lambda: model.transform(row)}, rounds=200, warm=20)["row"]
    layers = [m for m in model.network_.encoder.modules() if isinstance(m, nn.Linear)]
    flops = 2 * options.rows * sum(layer.weight.numel() for layer in layers)
    figures = {
        "rows": f"{options.rows} x {FEATURES}",
        "of the limit": flops / seconds["all"] / timing.rate(seconds),
        "one row, ms": 1000 * latency,
        "first step, s": first_step(X[:3000]),
        "import, over torch and scikit-learn": import_ratio(),
    }
    timing.show("transform", [figures])


if __name__ == "__main__":
    main()
