"""What an estimator that learns by gradient steps offers beside `fit`: a stream, and a forecast."""

import copy
import math
import time
from dataclasses import replace
from functools import partial
from typing import Any, Self

import torch
from torch import nn

from selfview.distributed import current
from selfview.estimator.base import Fit
from selfview.estimator.forecast import (
    TRIAL_STEPS,
    Forecast,
    encoder_name,
    peak_memory,
    timed_rows,
    timed_steps,
)
from selfview.estimator.plan import FitPlan
from selfview.estimator.transform import table_rows
from selfview.rows.base import Rows
from selfview.saving.checkpoints import Checkpoints
from selfview.tables.preparation import preparation_for
from selfview.training.loop import n_batches, train
from selfview.training.optimiser import Adam
from selfview.training.seeding import own_randomness
from selfview.training.state import TrainingState


class Embedder(Fit):
    """Base of all estimators that learn an encoder by gradient steps."""

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn from the next rows of a stream, in one pass; the first call starts it.

        A stream has no known end. `epochs` and `schedule` are therefore not used: the learning rate
        rises in 12 steps, and falls from the 50th by 1 / sqrt(step). `max_seconds` is not used
        either; `on_epoch` is called after every pass. Neighbours are looked for
        among the newest 16,384 rows (64 MiB at most), fewer of them while there are few rows. The
        input's scale is that of the first call's rows. Rows should come in random order, and at
        least `batch_size` at a time.

        After `fit`, it goes on at the learning rate with which `fit` ended.

        Parameters
        ----------
        X : rows as in `fit`
        y : ignored

        Returns
        -------
        self
        """
        started = hasattr(self, "network_")
        rows, plan = self._prepare(X, passes=True)
        plan = self._complete(rows, plan, project=not started)  # a fitted network takes the rows
        keeper = Checkpoints(None, {})
        if not started:
            return self._learn(X, rows, plan, self._start(plan), 1, keeper)
        plan = replace(plan, epochs=self.epochs_, seed=self.seed_)
        # A copy, so that an interrupted pass leaves the model as it was.
        network, optimisers = copy.deepcopy((self.network_, self._optimisers))
        phases = self._phases(network, plan)
        training = TrainingState(network, phases, plan.seed, optimisers, self.history_)
        return self._learn(X, rows, plan, training, len(self.history_) + 1, keeper)

    def forecast(self, X: Any) -> Forecast:
        """What `fit(X)` would do, with its seconds and memory; the model stays unfitted.

        Parameters
        ----------
        X : rows as in `fit`
        """
        self.check_parameters()
        rows = table_rows(X, preparation_for(X))
        plan = self._complete(rows, self._plan(rows))
        network = self._new_network(plan)
        steps = plan.epochs * n_batches(rows.n, self.batch_size)
        each = self._seconds_per_step(rows, plan, network)
        spent = time.monotonic() - plan.started
        take = partial(plan.batch, plan.seen(rows))
        embedding = timed_rows(network.eval().encoder, take, min(rows.n, 1024))
        epsilon = getattr(network, "epsilon", None)
        weights = sum(p.numel() * p.element_size() for p in network.parameters())
        peak = peak_memory()
        return Forecast(
            rows=rows.n,
            shape=rows.shape,
            rescaled=bool(plan.summary.column_stds),
            encoder=encoder_name(network.encoder),
            parameters=sum(p.numel() for p in network.parameters()),
            epsilon=None if epsilon is None else float(epsilon),
            epochs=plan.epochs,
            steps=steps,
            device=str(plan.device),
            precision=plan.precision,
            threads=torch.get_num_threads(),
            seconds=None if each is None else spent + each * steps + embedding * rows.n,
            # What a few steps took, a second copy of weights and moments in a checkpoint being
            # written, and the embedding.
            memory=None if peak is None else peak + 6 * weights + 4 * rows.n * self.n_components,
        )

    def _seconds_per_step(self, rows: Rows, plan: FitPlan, network: nn.Module) -> float | None:
        """Seconds of an optimiser step, measured on a copy of `network`."""
        if current().size > 1:  # all processes would have to join in
            return None
        trial = copy.deepcopy(network).train()
        phases = self._phases(trial, plan)
        size = math.ceil(rows.n / n_batches(rows.n, self.batch_size))
        middle = plan.epochs // 2  # where warm-ups are over
        with own_randomness(plan.seed):
            return timed_steps(
                train(
                    phases,
                    [Adam(phase.parameters) for phase in phases],
                    partial(plan.batch, plan.seen(rows)),
                    size,  # rows of the trial, so that its epochs are of one step
                    epochs=range(middle, middle + TRIAL_STEPS + 1),
                    batch_size=size,
                    seed=plan.seed,
                    device=plan.device,
                    precision=plan.precision,
                )
            )
