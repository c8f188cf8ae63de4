"""The paper's Algorithms 1 to 4 as printed, without a trick: what `step.py` compares with.

Separate passes for everything, loops as in the text (with the readings of docs/readings.md), plain
Adam, nothing shared between the two views but the weights.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

TARGET_STEP, TOLERANCE, LOW, HIGH = 0.1, 5e-3, 0.1, 1.0


def sinkhorn(logits: Tensor, temperature: float, iterations: int = 10) -> Tensor:
    kernel = torch.softmax(logits / temperature, dim=1)
    m, k = kernel.shape
    v = torch.ones(k)
    for _ in range(iterations):
        u = (1 / m) / (kernel @ v)
        v = (1 / k) / (kernel.T @ u)
    q = torch.diag(u) @ kernel @ torch.diag(v)
    return q / q.sum(dim=1, keepdim=True)


def adapt_temperature(logits: Tensor, temperature: float, aim: float) -> tuple[Tensor, float]:
    for _ in range(5):
        q = sinkhorn(logits, temperature)
        h = float(-(q * torch.log(q + 1e-12)).sum(dim=1).mean())
        if h - aim > TOLERANCE:
            temperature = max(temperature - TARGET_STEP, LOW)
        elif h - aim < -TOLERANCE:
            temperature = min(temperature + TARGET_STEP, HIGH)
        else:
            break
    return sinkhorn(logits, temperature), temperature


def view(network: nn.Module, x: Tensor, epsilon: float, xi: float, r: Tensor) -> Tensor:
    with torch.no_grad():
        p = torch.softmax(network(x).float(), dim=1)
    r = xi * r / r.flatten(1).norm(dim=1).view(-1, *[1] * (x.ndim - 1))
    r.requires_grad_()
    kl = F.kl_div(F.log_softmax(network(x + r).float(), dim=1), p, reduction="batchmean")
    kl.backward()
    g = r.grad
    g = g / g.flatten(1).norm(dim=1).view(-1, *[1] * (x.ndim - 1))
    network.zero_grad()
    return x + epsilon * g


def step(
    network: nn.Module,
    x: Tensor,
    *,
    epsilon: float,
    k: int,
    precision: str,
    xi: float = 10.0,
    draw: Callable[[Tensor], Tensor] = torch.randn_like,
) -> Callable[[], float]:
    """A training step on the batch `x`, to be called; `draw` gives the views' random starts."""
    optimiser = torch.optim.Adam(network.parameters(), lr=5e-4, foreach=False)
    state = {"temperature": 1.0}

    def call() -> float:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            x1 = view(network, x, epsilon, xi, draw(x))
            x2 = view(network, x, epsilon, xi, draw(x))
            o1 = network(x1).float()
            o2 = network(x2).float()
        with torch.no_grad():
            q1, state["temperature"] = adapt_temperature(o1, state["temperature"], math.log(k) / 2)
            q2, state["temperature"] = adapt_temperature(o2, state["temperature"], math.log(k) / 2)
        loss = F.kl_div(F.log_softmax(o1, dim=1), q2, reduction="batchmean")
        loss = loss + F.kl_div(F.log_softmax(o2, dim=1), q1, reduction="batchmean")
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.item()

    return call
