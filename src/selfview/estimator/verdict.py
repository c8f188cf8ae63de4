"""The verdict on a fit: the rules, and what a model says of itself from a sample of its rows.

Two questions decide. Do the rows hold anything beyond what PCA describes? And does the embedding
separate a row's nearest rows from other rows better than as many principal components do? A
network also memorises the neighbours of noise, so a fit is sound only if both answers are yes.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from selfview import health
from selfview.errors import CollapseWarning
from selfview.estimator.plan import FitPlan
from selfview.estimator.recipes import RECIPES
from selfview.networks.encoders import EncodingNetwork
from selfview.rows.base import Rows
from selfview.training.state import History, loss_of, steps_of

HEALTH_ROWS = 4096  # at most, from which the verdict is found
HEALTH_ENTRIES = 1 << 25  # of rows whose distances are compared
BATCH_SIZE = 256  # the paper's

MIN_STRUCTURE = 1.05
MIN_GAIN = 0.1  # nats by which nearest rows must be kept better than with PCA; thrice in short fits
ENOUGH_ROWS = 200  # without structure, so many are noise; fewer may only be too few
ENOUGH_STEPS = 50  # of the optimiser: what epochs="auto" plans for as few rows as show something
MIN_PROTOTYPE_USE = 0.1
MIN_EFFECTIVE_RANK = 1.5
FAR_OFF = 10.0  # times its usual value, or a tenth: a setting to suspect


@dataclass(frozen=True)
class Setting:
    """A parameter that can spoil a fit: what it was, and what it usually is for such rows."""

    name: str
    value: float
    usual: float

    @property
    def times(self) -> float:
        return self.value / self.usual

    @property
    def far_off(self) -> bool:
        return not 1 / FAR_OFF < self.times < FAR_OFF

    @property
    def remedy(self) -> str:
        change = "Lower" if self.times > 1 else "Raise"
        return f"{change} {self.name}: it is {self.value:.3g}, and usually {self.usual:.3g}"


@dataclass(frozen=True)
class Verdict:
    """What a fit came to: the outcome, and words that say why and what to change."""

    outcome: str
    words: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.words}"


SOUND = "sound"
DIVERGED = "diverged"
COLLAPSED = "collapsed"
TOO_SHORT = "too short to tell"
TOO_FEW = "too few rows to tell"
NOTHING = "nothing beyond PCA"
BAD = (DIVERGED, COLLAPSED, NOTHING)
_NO_NEARER = "nearest rows are no nearer than in noise that has the same principal components"


def verdict(
    found: Mapping[str, float],
    *,
    dim: int,
    n_features: int,
    steps: int,
    highest_loss: float = math.inf,
    settings: Sequence[Setting] = (),
) -> Verdict:
    """What a fit came to.

    Parameters
    ----------
    found : mapping
        `neighbour_metrics`, `effective_rank`, `loss`; `prototype_use` where there are prototypes.
    dim, n_features : int
        Columns of the embedding, and of the data.
    steps : int
        Optimiser steps done.
    highest_loss : float, default infinity
        That of predictions which say nothing; a loss above is of confident wrong ones.
    settings : sequence of Setting, default none
        Parameters that may have caused a bad end. The one farthest off is named.
    """
    suspects = [setting for setting in settings if setting.far_off]
    cause = max(suspects, key=lambda setting: abs(math.log(setting.times)), default=None)
    remedy = None if cause is None else cause.remedy
    loss, rank = found["loss"], found["effective_rank"]
    if found["different_rows"] == 1:
        return Verdict(NOTHING, "all rows are equal, so that there is nothing to learn")
    if not all(map(math.isfinite, found.values())) or loss > highest_loss:
        cure = remedy or "Lower learning_rate, or scale the data"
        return Verdict(DIVERGED, f"the loss came to {loss:.3g}. {cure}")
    ours = found.get("neighbour_perplexity", math.inf)
    theirs = found.get("neighbour_perplexity_pca", math.inf)
    if dim > 1 and rank < MIN_EFFECTIVE_RANK and ours >= theirs:
        cure = remedy or "Train for more epochs, or lower epsilon"
        return Verdict(COLLAPSED, f"the embedding fills {rank:.1f} of {dim} directions. {cure}")
    if scarce := _no_structure(found, n_features):
        return scarce
    beside = f"than by PCA (neighbour perplexity {ours:.3g}, PCA's {theirs:.3g})"
    if math.log(theirs / ours) > MIN_GAIN * (1 if steps >= ENOUGH_STEPS else 3):
        return Verdict(SOUND, f"nearest rows are kept better {beside}")
    kept = f"nearest rows are kept no better {beside}"
    if cause is not None and cause.name == "learning_rate":
        return Verdict(DIVERGED if cause.times > 1 else TOO_SHORT, f"{kept}. {remedy}")
    if found.get("prototype_use", 1.0) < MIN_PROTOTYPE_USE:
        cure = remedy or "Lower n_prototypes or epsilon, or raise sinkhorn_iterations"
        return Verdict(
            COLLAPSED, f"the rows share {found['prototype_use']:.0%} of the prototypes. {cure}"
        )
    if cause is None and steps < ENOUGH_STEPS:
        return Verdict(TOO_SHORT, f"{kept} after {steps} steps. Raise epochs")
    return Verdict(NOTHING, f"{kept}. {remedy or 'Compare both on your task'}")


def _no_structure(found: Mapping[str, float], n_features: int) -> Verdict | None:
    """The verdict on rows in which there is nothing for a network to find, or None."""
    n = int(found["different_rows"])
    if "structure" not in found:
        return Verdict(TOO_FEW, f"{n} different rows, {health.MIN_ROWS} show something")
    if found["structure"] > max(MIN_STRUCTURE, 1 + 1 / math.sqrt(n)):
        return None
    enough = max(ENOUGH_ROWS, min(n_features // 2, health.SAMPLE_ROWS))
    if n < min(enough, health.SAMPLE_ROWS * 9 // 10):
        return Verdict(TOO_FEW, f"{_NO_NEARER}, but {n} rows may be too few to show it")
    cure = "Columns that say nothing hide them too: leave such out, or compare both on your task"
    return Verdict(NOTHING, f"{_NO_NEARER}. {cure}")


class VerdictMixin:
    """The part of an estimator that judges its own fit."""

    recipe: str
    batch_size: int
    learning_rate: Any
    network_: EncodingNetwork
    history_: History
    _health: dict[str, Any] | None
    _last_pass: FitPlan | None  # over a stream

    @property
    def health_(self) -> dict[str, Any]:
        """Metrics of the fit and a verdict; of a stream, found when they are asked for."""
        if self._health is None:
            plan = self._last_pass
            assert plan is not None
            assert plan.stream is not None
            self._health = self._examine(self.network_, plan.stream.window, plan, self.history_)
        return self._health

    @torch.no_grad()
    def _examine(
        self,
        network: EncodingNetwork,
        rows: Rows,
        plan: FitPlan,
        history: History,
        stopped: str | None = None,
    ) -> dict[str, Any]:
        """Metrics of the delivered embedding of a sample of the rows, and the verdict on them."""
        among = np.arange(rows.n)
        if plan.groups is not None:  # nearest rows are to be kept within a group, not across
            among = np.flatnonzero(plan.groups == np.bincount(plan.groups).argmax())
        index = np.random.default_rng(plan.seed).permutation(among)[:HEALTH_ROWS]
        x = plan.as_input(rows.pick(index))
        Z = network.encoder(x).float().cpu().numpy()
        few = min(health.SAMPLE_ROWS, max(health.MIN_ROWS, HEALTH_ENTRIES // rows.n_features))
        compared, points = x[:few], Z[:few]
        if plan.links is not None:  # what is to be kept are the user's links
            compared = plan.as_input(rows.pick(plan.links.pairs(few // 2, plan.seed)))
            points = network.encoder(compared).float().cpu().numpy()
        X = compared.flatten(1).float().cpu().numpy() / np.asarray(
            plan.summary.column_stds or 1, np.float32
        )
        how: dict[str, Any] = dict(
            cosine=plan.summary.text_like, seed=plan.seed, paired=plan.links is not None
        )
        found = {
            "loss": loss_of(history),
            "effective_rank": health.effective_rank(Z),
            **health.neighbour_metrics(X, points, **how),
            **self._diagnose(network, x, history),
        }
        result = verdict(
            found,
            dim=Z.shape[1],
            n_features=rows.n_features,
            steps=steps_of(history),
            highest_loss=self._highest_loss(rows, plan),
            settings=self._suspects(plan),
        )
        words = str(result)
        if stopped is not None:
            epochs = steps_of(history) / plan.batches
            words += f"; stopped by {stopped} after {epochs:.3g} of {plan.epochs} epochs"
        healthy = result.outcome == SOUND
        judged = {"healthy": healthy, "outcome": result.outcome, "verdict": words}
        return {**found, **judged, "stopped": stopped}

    def _diagnose(self, network: Any, x: Tensor, history: History) -> dict[str, float]:  # noqa: ARG002
        """Metrics of a method's own, from a sample of the rows."""
        return {}

    def _highest_loss(self, rows: Rows, plan: FitPlan) -> float:  # noqa: ARG002
        """The loss of a network that knows nothing: above it, training has diverged."""
        return math.inf

    def _suspects(self, plan: FitPlan) -> list[Setting]:  # noqa: ARG002
        """Parameters that spoil a fit when they are far from their usual values."""
        rate = RECIPES[self.recipe].learning_rate
        given = rate if self.learning_rate == "auto" else float(self.learning_rate)
        return [
            Setting("learning_rate", given, rate),
            Setting("batch_size", self.batch_size, BATCH_SIZE),
        ]

    def _warn(self) -> None:
        if self.health_["outcome"] in BAD:
            warnings.warn(self.health_["verdict"], CollapseWarning, stacklevel=6)
