"""Draw the figures of docs/method.md into docs/figures/: `python docs/figures.py`."""

import math
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from selfview import SelfView
from selfview.targets import entropy, sinkhorn
from selfview.views import adversarial_perturbation, frozen_batch_norm_stats

BLUE, RED, GREY = "#332288", "#CC6677", "#999999"
STYLE = {
    "font.size": 9,
    "svg.hashsalt": "selfview",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def moons() -> torch.Tensor:
    """Two interleaved half circles: 400 points in the plane."""
    from sklearn.datasets import make_moons

    return torch.tensor(make_moons(400, noise=0.07, random_state=0)[0], dtype=torch.float32)


def draw_views(path: Path) -> None:
    """Steps of equal length: in a random direction, and where the prediction changes most."""
    torch.manual_seed(0)
    X = moons()
    encoder = nn.Sequential(
        nn.Linear(2, 64), nn.BatchNorm1d(64), nn.ReLU(),
        nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 2),
    )  # fmt: skip
    model = SelfView(
        encoder=encoder, n_prototypes=8, epsilon=0.25, neighbours=0, xi=0.1, epochs=150,
        batch_size=400, random_state=0, verbose=0,
    ).fit(X)  # fmt: skip
    network = model.network_
    generator = torch.Generator().manual_seed(0)
    with frozen_batch_norm_stats(network):
        p = torch.softmax(network(X), dim=1).detach()
        step = adversarial_perturbation(network, X, p, epsilon=0.25, xi=0.1, generator=generator)
    chosen = np.random.default_rng(0).permutation(400)[:70]
    figure = Figure(figsize=(7, 2.9), layout="constrained")
    for axes, steps, title in zip(
        figure.subplots(1, 2),
        (nn.functional.normalize(torch.randn(400, 2, generator=generator)) * 0.25, step),
        ("random directions", "where the prediction changes most"),
        strict=True,
    ):
        axes.scatter(*X.T, c=p.argmax(1), s=7, cmap="tab10", linewidths=0)
        axes.quiver(*X[chosen].T, *steps[chosen].T, angles="xy", scale_units="xy", scale=1,
                    width=0.004, color="black")  # fmt: skip
        axes.set(title=title, aspect="equal", xticks=[], yticks=[])
    save(figure, path)


def draw_targets(path: Path) -> None:
    """One row's target at several temperatures."""
    logits = torch.randn(256, 20, generator=torch.Generator().manual_seed(1)) * 1.5
    figure = Figure(figsize=(7, 2.4), layout="constrained")
    axes = figure.subplots(1, 4, sharey=True)
    for place, temperature in zip(axes, (1.0, 0.6, 0.3, 0.1), strict=True):
        q = sinkhorn(logits, temperature, 10)
        share = float(entropy(q)) / math.log(20)
        place.bar(range(20), q[0].sort(descending=True).values, color=BLUE)
        place.set(title=f"λ = {temperature}\nentropy {share:.0%} of log k", xticks=[])
    axes[0].set(ylabel="share of the row")
    figure.supxlabel("prototypes, sorted", fontsize=9)
    save(figure, path)


def draw_transport(path: Path) -> None:
    """Use of the prototypes before and after the transport, for a batch that prefers a few."""
    generator = torch.Generator().manual_seed(2)
    logits = torch.randn(256, 20, generator=generator) + torch.linspace(3, 0, 20)
    plain, moved = torch.softmax(logits, 1), sinkhorn(logits, 1.0, 10)
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    first, second = figure.subplots(1, 2, sharey=True)
    for axes, values, title, colour in (
        (first, plain, "softmax: a few prototypes take all", RED),
        (second, moved, "after the transport: all are used alike", BLUE),
    ):
        axes.bar(range(20), values.mean(0) * 20, color=colour)
        axes.axhline(1, color=GREY, linewidth=1)
        axes.set(title=title, xlabel="prototype", xticks=[])
    first.set(ylabel="use, 1 is an equal share")
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """As SVG without a date, so that the same code draws the same bytes."""
    figure.savefig(path, metadata={"Date": None})


def main(folder: Path) -> None:
    """Draw all."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        draw_views(folder / "views.svg")
        draw_targets(folder / "targets.svg")
        draw_transport(folder / "transport.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "figures")
