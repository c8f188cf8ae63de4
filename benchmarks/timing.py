"""How speed is measured here: contenders in turn, in one process, and the median of many rounds.

A figure is a ratio of two such medians, so that it says the same on another machine. The unit of
all is the machine's matrix-multiply rate: the best of a few large square products.
"""

import json
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

SIDES = (1024, 2048, 3072)
TURN = 0.01  # seconds that a turn takes at least: short calls are repeated, as in use


def medians(
    contenders: Mapping[str, Callable[[], object]], *, rounds: int = 15, warm: int = 2
) -> dict[str, float]:
    """Median seconds of a call of each contender; they take turns, so that drift hits all alike."""
    for call in contenders.values():
        for _ in range(warm):
            call()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, call in contenders.items():
            seconds[name].append(_turn(call))
    return {name: statistics.median(values) for name, values in seconds.items()}


def _turn(call: Callable[[], object]) -> float:
    """Seconds of a call, in a turn of one or many."""
    count, start = 0, time.perf_counter()
    while (taken := time.perf_counter() - start) < TURN or not count:
        call()
        count += 1
    return taken / count


def products(dtype: torch.dtype) -> dict[str, Callable[[], object]]:
    """Contenders that multiply two square matrices, by the names that `rate` knows."""

    def product(side: int) -> Callable[[], object]:
        a, b = torch.randn(side, side).to(dtype), torch.randn(side, side).to(dtype)
        out = torch.empty(side, side, dtype=dtype)
        return lambda: torch.mm(a, b, out=out)

    return {f"product {side}": product(side) for side in SIDES}


def rate(seconds: Mapping[str, float]) -> float:
    """The machine's matrix-multiply rate in FLOP/s, from the medians of `products`."""
    return max(2 * side**3 / seconds[f"product {side}"] for side in SIDES)


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return {"processor": model, "threads": torch.get_num_threads(), "torch": torch.__version__}


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """A table for people, then one line of JSON for programs."""
    columns = list(rows[0])
    cells = [[_cell(row.get(column, "")) for column in columns] for row in rows]
    widths = [
        max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)
    ]
    print(title)
    for line in [columns, *cells]:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    print(json.dumps({"benchmark": title, "machine": machine(), "rows": rows}), flush=True)


def _cell(value: Any) -> str:
    return format(value, ".3g") if isinstance(value, float) else str(value)
