"""The verdict on a fit: what a model says of itself, from a sample of its rows."""

import math
import warnings
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
        """Figures of the fit and a verdict; of a stream, found when they are asked for."""
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
        """Figures of the delivered embedding of a sample of the rows, and the verdict on them."""
        among = np.arange(rows.n)
        if plan.groups is not None:  # nearest rows are to be kept within a group, not across
            among = np.flatnonzero(plan.groups == np.bincount(plan.groups).argmax())
        index = np.random.default_rng(plan.seed).permutation(among)[:HEALTH_ROWS]
        x = plan.formed(rows.pick(index))
        Z = network.encoder(x).float().cpu().numpy()
        few = min(health.SAMPLE_ROWS, max(health.MIN_ROWS, HEALTH_ENTRIES // rows.n_features))
        compared, points = x[:few], Z[:few]
        if plan.links is not None:  # what is to be kept are the user's links
            compared = plan.formed(rows.pick(plan.links.pairs(few // 2, plan.seed)))
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
        told = health.verdict(
            found,
            dim=Z.shape[1],
            n_features=rows.n_features,
            steps=steps_of(history),
            highest_loss=self._highest_loss(rows, plan),
            settings=self._suspects(plan),
        )
        words = str(told)
        if stopped is not None:
            epochs = steps_of(history) / plan.batches
            words += f"; stopped by {stopped} after {epochs:.3g} of {plan.epochs} epochs"
        healthy = told.outcome == health.SOUND
        judged = {"healthy": healthy, "outcome": told.outcome, "verdict": words}
        return {**found, **judged, "stopped": stopped}

    def _diagnose(self, network: Any, x: Tensor, history: History) -> dict[str, float]:  # noqa: ARG002
        """Figures of a method's own, from a sample of the rows."""
        return {}

    def _highest_loss(self, rows: Rows, plan: FitPlan) -> float:  # noqa: ARG002
        """The loss of a network that knows nothing: above it, training has diverged."""
        return math.inf

    def _suspects(self, plan: FitPlan) -> list[health.Setting]:  # noqa: ARG002
        """Parameters that spoil a fit when they are far from their usual values."""
        rate = RECIPES[self.recipe].learning_rate
        given = rate if self.learning_rate == "auto" else float(self.learning_rate)
        return [
            health.Setting("learning_rate", given, rate),
            health.Setting("batch_size", self.batch_size, BATCH_SIZE),
        ]

    def _warn(self) -> None:
        if self.health_["outcome"] in health.BAD:
            warnings.warn(self.health_["verdict"], CollapseWarning, stacklevel=6)
