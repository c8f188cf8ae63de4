"""How a step's cost and memory grow with rows, features, prototypes, batch and threads.

    python benchmarks/scaling.py [--rounds 5]

Every row changes one thing of the base (10,000 rows x 1,000 features, k = 100, batch 256, all
threads). "time a row": seconds a row of a training step over the base's, measured in turns with
it. "work a row": multiplications that the encoder and the head do for a row, over the base's; where
time grows more slowly than work, small products were the limit. "memory": highest resident memory
of a process that fits for ten steps, less that of one that only imports, in MiB.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch

import timing
from selfview import SelfView
from step import step_of

PROCESS = """
import resource, sys
import numpy as np
from selfview import SelfView
from selfview.rows.conversion import as_rows
n, d, k, batch = map(int, sys.argv[1:])
if n:
    rows = 10 * batch if n > 10 * batch else n
    X = np.random.default_rng(0).random((n, d), dtype=np.float32)
    model = SelfView(n_prototypes=k, batch_size=batch, epochs=1, verbose=0, random_state=0)
    model.fit(X[:rows])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@dataclass(frozen=True)
class Size:
    n: int = 10_000
    d: int = 1_000
    k: int = 100
    batch: int = 256
    threads: int = os.cpu_count() or 1

    @property
    def work(self) -> int:
        """Multiplications for a row, in one pass."""
        encoder = self.d * 1024 + 1024 * 1024 + 10 * 1024
        return encoder + 10 * 128 + 128 * 128 + 128 * self.k


BASE = Size()
SIZES = [
    BASE,
    *(replace(BASE, n=n) for n in (1_000, 100_000)),
    *(replace(BASE, d=d) for d in (100, 10_000)),
    *(replace(BASE, k=k) for k in (1_000, 10_000)),
    *(replace(BASE, batch=batch) for batch in (64, 1_024, 4_096)),
    *(replace(BASE, threads=t) for t in range(1, BASE.threads)),
]


def step_at(size: Size) -> Callable[[], object]:
    X = np.random.default_rng(0).random((size.batch, size.d), dtype=np.float32)
    common = dict(n_prototypes=size.k, batch_size=size.batch, epochs=10, random_state=0, verbose=0)
    call, _ = step_of(SelfView(**common), X)

    def step() -> None:
        torch.set_num_threads(size.threads)
        call()
        torch.set_num_threads(BASE.threads)

    return step


def memory(size: Size) -> int:
    """MiB at most of a process that fits rows of this size."""

    def peak(*numbers: int) -> int:
        command = [sys.executable, "-c", PROCESS, *map(str, numbers)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    return peak(size.n, size.d, size.k, size.batch) - peak(0, 0, 0, 0)


def measure(size: Size, rounds: int) -> dict[str, object]:
    seconds = timing.medians({"base": step_at(BASE), "this": step_at(size)}, rounds=rounds)
    return {
        **asdict(size),
        "time a row": seconds["this"] / size.batch / (seconds["base"] / BASE.batch),
        "work a row": size.work / BASE.work,
        "memory": memory(size),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    timing.show("scaling", [measure(size, rounds) for size in SIZES])


if __name__ == "__main__":
    main()
