"""Seconds of each measure of `selfview.evaluate`, their share, and their ratio to a matrix product.

    python benchmarks/evaluation.py [ROWS] [FEATURES]      (default 60,000 x 10)

Prints a table and then one line of JSON. The ratio counts products of two 2048 x 2048 float64
matrices timed in the same run, so that figures of two machines compare.
"""

import json
import sys
import time
import warnings

import numpy as np

from selfview import evaluate
from selfview.evaluation import MEASURES


def blurred_classes(n: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n)
    return rng.normal(size=(n, dim)) + 3 * rng.normal(size=(10, dim))[y], y


def product_seconds() -> float:
    matrix = np.random.default_rng(0).normal(size=(2048, 2048))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    n, dim = (int(word) for word in (sys.argv[1:] + ["60000", "10"][len(sys.argv) - 1 :]))
    Z, y = blurred_classes(n, dim)
    unit = product_seconds()
    seconds = {}
    for name, measure in MEASURES.items():
        target = Z @ np.ones((dim, 3)) if measure.target == "continuous" else y
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evaluate(Z, target, X=Z, measures=name)
        seconds[name] = time.perf_counter() - start
    total = sum(seconds.values())
    print(f"{n} x {dim}; one matrix product takes {unit:.3f} s")
    print(f"{'measure':<16}{'seconds':>9}{'share':>8}{'products':>10}")
    for name, value in sorted(seconds.items(), key=lambda item: -item[1]):
        print(f"{name:<16}{value:>9.2f}{value / total:>8.0%}{value / unit:>10.0f}", flush=True)
    print(f"{'all':<16}{total:>9.2f}{1:>8.0%}{total / unit:>10.0f}")
    record = {"benchmark": "evaluation", "rows": n, "features": dim, "product_seconds": unit}
    print(json.dumps(record | {"seconds": seconds, "total_seconds": total}))


if __name__ == "__main__":
    main()
