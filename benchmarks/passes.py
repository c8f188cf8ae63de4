"""What each way to make passes cheap is worth: a step without it, over a step with it.

    python benchmarks/passes.py [--rounds 15] [--shapes 784 28x28] [--precisions float32]

A whole step of SelfView is timed, by its own recipe and by the paper's, with one way at a time
switched off: "products" (gradients of convolutions as matrix products), "layout" (images with their
channels last; without it there are no products either), "views" (both views of a batch in one pass
through linear layers), "gradients" (none of the weights while perturbations are found). Below 1.1,
a way isn't worth its code.
"""

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

import timing
from selfview import SelfView
from selfview.estimator.devices import has_bfloat16
from selfview.networks.convolution import Convolution
from selfview.networks.forward import per_view
from step import BATCH, SHAPES, step_of


def without_products(layer: nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
    return nn.Conv2d.forward(layer, x.contiguous(memory_format=torch.channels_last))


def one_after_another(layers: nn.Sequential, x: torch.Tensor, parts: int) -> torch.Tensor:
    return per_view(partial(nn.Sequential.forward, layers), x, parts)


WITHOUT = {
    "products": patch.object(Convolution, "forward", without_products),
    "layout": patch.object(Convolution, "forward", nn.Conv2d.forward),
    "views": patch("selfview.networks.encoders.forward_views", one_after_another),
    "gradients": patch("selfview.estimator.pairs.without_weight_grad", lambda _: nullcontext()),
}


def measure(name: str, recipe: str, precision: str, rounds: int) -> dict[str, object]:
    X = np.random.default_rng(0).random((BATCH, *SHAPES[name]), dtype=np.float32)
    common = dict(epochs=100, batch_size=BATCH, precision=precision, random_state=0, verbose=0)
    given = {} if recipe == "paper" else dict(neighbours=0, contrast=1.0, adversarial_share=1.0)
    call, _ = step_of(SelfView(recipe=recipe, encoder="auto", **given, **common), X)

    def without(way: str) -> Callable[[], None]:
        def contender() -> None:
            with WITHOUT[way]:
                call()

        return contender

    seconds = timing.medians(
        {"ours": call, **{way: without(way) for way in WITHOUT}}, rounds=rounds
    )
    ratios = {way: seconds[way] / seconds["ours"] for way in WITHOUT}
    return {"rows": f"{BATCH} x {name}", "recipe": recipe, "precision": precision, **ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--shapes", nargs="+", default=["784", "28x28"], choices=list(SHAPES))
    parser.add_argument("--precisions", nargs="+", default=["float32", "bfloat16"])
    options = parser.parse_args()
    if "bfloat16" in options.precisions and not has_bfloat16("cpu"):
        print("this processor has no bfloat16 arithmetic: float32 only")
        options.precisions.remove("bfloat16")
    rows = [
        measure(shape, recipe, precision, options.rounds)
        for precision in options.precisions
        for recipe in ("selfview", "paper")
        for shape in options.shapes
    ]
    timing.show("passes: seconds without over seconds with", rows)


if __name__ == "__main__":
    main()
