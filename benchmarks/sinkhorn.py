"""Targets by optimal transport against POT's fastest solver, on the same matrices.

    python benchmarks/sinkhorn.py [--rounds 9]

Both do ten rounds on the same logits in float32; ours computes in float64. POT gets the cost
-logits and the temperature as its regularisation, warnings and convergence checks off, NumPy and
PyTorch backends; the faster one counts. "largest difference" is between the two plans, relative to
the largest entry.
"""

import argparse
import warnings

import numpy as np
import ot
import torch

import timing
from selfview.targets import sinkhorn

SIZES = [(256, 100), (256, 1000), (1024, 300), (4096, 1000), (16384, 3000)]
ITERATIONS, TEMPERATURE = 10, 0.5


def pot(cost: object, rows: object, columns: object, method: str) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ot.sinkhorn(
            rows,
            columns,
            cost,
            TEMPERATURE,
            method=method,
            numItermax=ITERATIONS,
            stopThr=0,
            warn=False,
        )


def measure(m: int, k: int, rounds: int) -> dict[str, object]:
    logits = torch.randn(m, k, generator=torch.Generator().manual_seed(0))
    cost = -logits
    even = torch.full((m,), 1 / m), torch.full((k,), 1 / k)
    arrays = cost.numpy(), *(side.numpy() for side in even)
    contenders = {
        "ours": lambda: sinkhorn(logits, TEMPERATURE, ITERATIONS),
        "POT, torch": lambda: pot(cost, *even, "sinkhorn"),
        "POT, numpy": lambda: pot(*arrays, "sinkhorn"),
    }
    if m * k <= 1 << 20:  # slower than the others by far; above this it only costs time
        contenders["POT, log, torch"] = lambda: pot(cost, *even, "sinkhorn_log")
    seconds = timing.medians(contenders, rounds=rounds)
    fastest = min((name for name in seconds if name != "ours"), key=seconds.__getitem__)
    plan = torch.as_tensor(np.asarray(pot(cost, *even, "sinkhorn"))) * m
    plan /= plan.sum(dim=1, keepdim=True)
    ours = sinkhorn(logits, TEMPERATURE, ITERATIONS)
    return {
        "rows x prototypes": f"{m} x {k}",
        "POT over ours": seconds[fastest] / seconds["ours"],
        "fastest of POT": fastest.removeprefix("POT, "),
        "largest difference": float((plan - ours).abs().max() / ours.max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    timing.show("sinkhorn", [measure(m, k, rounds) for m, k in SIZES])


if __name__ == "__main__":
    main()
