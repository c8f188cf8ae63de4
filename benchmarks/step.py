"""One training step of the paper's exact method, against the machine and against others.

    python benchmarks/step.py [--rounds 15] [--shapes 784 2000 2304 28x28] [--precisions float32]

"of the limit": FLOP/s achieved over the machine's matrix-multiply rate in that precision, counting
the encoder's passes only, eleven of them for a step (a clean one; a forward and a backward to the
input for either view; a forward and two backward for either view's loss). "over AE": seconds over
those of an autoencoder's step with the same encoder. "plain over ours": seconds of the algorithm as
printed (plain.py) over ours. "targets": share of the step that Sinkhorn and the policy take for
both views, at the temperature that the policy has come to.
"""

import argparse
import copy
import math
from collections.abc import Callable

import numpy as np
import torch

import plain
import timing
from selfview import SelfView
from selfview.baselines import AutoEncoder
from selfview.distributed import ALONE
from selfview.estimator.devices import has_bfloat16
from selfview.estimator.embedder import Embedder
from selfview.networks.encoders import convolutions
from selfview.rows.conversion import as_rows
from selfview.targets import adapt_temperature
from selfview.training.loop import Step, _descend, autocast

BATCH, K, PASSES = 256, 100, 11
SHAPES = {"784": (784,), "2000": (2000,), "2304": (2304,), "28x28": (1, 28, 28)}


def encoder_flops(shape: tuple[int, ...]) -> int:
    """Of one forward pass of a batch: two for every multiplication with an addition."""
    if len(shape) == 1:
        macs = shape[0] * 1024 + 1024 * 1024 + 1024 * 10
    else:
        macs, channels = 0, shape[0]
        for filters, _, (height, width) in convolutions(shape):
            macs += filters * channels * 25 * height * width
            channels = filters
        macs += channels * height * width * 10
    return 2 * macs * BATCH


def step_of(model: Embedder, X: np.ndarray) -> tuple[Callable[..., object], torch.nn.Module]:
    """A step of the model's own training, as `fit` does it, on one batch; it takes its number."""
    rows = as_rows(X)
    plan = model._complete(rows, model._plan(rows))
    training = model._start(plan)
    training.network.train()
    generator = torch.Generator().manual_seed(0)
    order = np.random.default_rng(0).permutation(len(X))

    def call(number: int = 0) -> None:
        batch = plan.batch(plan.projected or rows, order)
        step = Step(batch, plan.epochs / 2, generator, order, number)
        for phase, optimiser in zip(training.phases, training.optimisers, strict=True):
            with autocast(plan.device, plan.precision):
                loss, _ = phase.loss(step)
            gradients = ALONE.gradients(loss, phase.parameters, step.shard)
            _descend(phase, optimiser, gradients, step.epoch)

    return call, training.network


def measure(name: str, precision: str, rounds: int) -> dict[str, object]:
    shape = SHAPES[name]
    X = np.random.default_rng(0).random((BATCH, *shape), dtype=np.float32)
    common = dict(epochs=100, batch_size=BATCH, precision=precision, random_state=0, verbose=0)
    model = SelfView(recipe="paper", n_prototypes=K, **common)
    ours, network = step_of(model, X)
    ae, _ = step_of(AutoEncoder(encoder="auto" if len(shape) == 1 else "cnn", **common), X)
    peer = copy.deepcopy(network)
    x = torch.from_numpy(X)
    logits = network(x).detach().float()
    aim, temperature = math.log(K) / 2, 1.0
    for _ in range(3):
        temperature = adapt_temperature(logits, temperature, aim, 10)[1]
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    seconds = timing.medians(
        {
            **timing.products(dtype),
            "ours": ours,
            "ae": ae,
            "plain": plain.step(peer, x, epsilon=float(network.epsilon), k=K, precision=precision),
            "targets": lambda: [adapt_temperature(logits, temperature, aim, 10) for _ in range(2)],
        },
        rounds=rounds,
    )
    achieved = PASSES * encoder_flops(shape) / seconds["ours"]
    return {
        "rows": f"{BATCH} x {name}",
        "precision": precision,
        "of the limit": achieved / timing.rate(seconds),
        "over AE": seconds["ours"] / seconds["ae"],
        "plain over ours": seconds["plain"] / seconds["ours"],
        "targets": seconds["targets"] / seconds["ours"],
        "GFLOP/s limit": timing.rate(seconds) / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    options = parser.parse_args()
    if "bfloat16" in options.precisions and not has_bfloat16("cpu"):
        print("this processor has no bfloat16 arithmetic: float32 only")
        options.precisions.remove("bfloat16")
    timing.show(
        "step",
        [
            measure(shape, precision, options.rounds)
            for precision in options.precisions
            for shape in options.shapes
        ],
    )


if __name__ == "__main__":
    main()
