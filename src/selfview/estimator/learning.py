"""From a plan to a fitted estimator: training, delivery, and what the estimator then knows."""

import copy
import math
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from functools import cache, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from selfview.distributed import current
from selfview.estimator.epoch_end import EpochEnd, asks_to_stop
from selfview.estimator.plan import FitPlan
from selfview.estimator.transform import TransformMixin, map_rows, table_rows
from selfview.estimator.verdict import VerdictMixin
from selfview.networks import encoders
from selfview.networks.encoders import EncodingNetwork
from selfview.rows.base import Rows
from selfview.rows.conversion import expect_shape
from selfview.saving.checkpoints import Checkpoints
from selfview.training.batch_norm import synchronised
from selfview.training.loop import EpochProgress, n_batches, train
from selfview.training.progress import Progress
from selfview.training.seeding import own_randomness
from selfview.training.state import History, TrainingState


class LearnMixin(VerdictMixin, TransformMixin):
    """The part of an estimator that trains a network. Nothing is set unless that ends well."""

    max_seconds: float | None
    on_epoch: Callable[[EpochEnd], object] | None
    verbose: int
    _recent: Tensor | None  # of a stream, the newest rows

    def _learn(
        self,
        X: Any,
        rows: Rows,
        plan: FitPlan,
        training: TrainingState,
        until: int,
        keeper: Checkpoints,
    ) -> Self:
        """Train until so many epochs are done, and only then change the estimator."""
        group = current()
        network = training.network
        deadline = math.inf
        if self.max_seconds is not None and plan.stream is None:
            deadline = plan.started + self.max_seconds - training.seconds

        def time_is_up() -> bool:
            return deadline < math.inf and bool(group.agreed(int(time.monotonic() > deadline)))

        epochs = range(len(training.history), until)
        if epochs and training.place > (0, 0) and time_is_up():  # a stopped fit, called again
            training.stopped, epochs = "max_seconds", range(0)
        network.train()
        group.synchronise(network)
        progress = Progress(
            self._headline(rows, plan, network),
            epochs=epochs,
            steps=n_batches(rows.n, self.batch_size),
            verbose=self.verbose if group.is_main else 0,
            started=plan.started,
        )
        with (
            progress,
            own_randomness(plan.seed),
            synchronised(network, group),
            keeper.watch(training) as save_if_due,
        ):

            def after_step(part: EpochProgress) -> bool:
                training.part = part
                progress.after_step()
                if time_is_up():
                    training.stopped = "max_seconds"
                    return True
                with group.all_or_none():
                    save_if_due()
                return False

            with closing(self._train(rows, plan, training, epochs, after_step)) as epochs_done:
                for row in epochs_done:
                    training.end_epoch(row)
                    progress.after_epoch(row)
                    asked = self._asks_to_stop(rows, plan, training)
                    if len(training.history) < until and (asked or time_is_up()):
                        training.stopped = "on_epoch" if asked else "max_seconds"
                        break
                    with group.all_or_none():
                        save_if_due()
            training.check()
            with group.all_or_none():
                if epochs:
                    keeper.keep(training)
            training.end_part()
        self._end(X, rows, plan, training)
        return self

    def _train(
        self,
        rows: Rows,
        plan: FitPlan,
        training: TrainingState,
        epochs: range,
        after_step: Callable[[EpochProgress], bool],
    ) -> Generator[dict[str, float], None, None]:
        """The metrics of each epoch, which is trained when they are asked for."""
        seen = plan.seen(rows)
        return train(
            training.phases,
            training.optimisers,
            partial(plan.batch, seen),
            seen.n,
            epochs=epochs,
            batch_size=self.batch_size,
            seed=plan.seed,
            device=plan.device,
            precision=plan.precision,
            start=training.part,
            after_step=after_step,
            group=current(),
            blocks=seen.blocks,
        )

    def _asks_to_stop(self, rows: Rows, plan: FitPlan, training: TrainingState) -> bool:
        """Does `on_epoch` return True? The first process calls it, and all do as it says."""
        if self.on_epoch is None:
            return False

        @cache
        def delivered() -> tuple[EncodingNetwork, FitPlan]:
            network = copy.deepcopy(training.network).eval()
            return network, self._deliver(network, rows, plan)

        def transform(X: Any) -> NDArray[np.float32]:
            given = table_rows(X, plan.table)
            expect_shape(given, rows.shape, type(self).__name__)
            network, ready = delivered()
            width = self._embedding_dim(network.encoder, ready)
            own = not isinstance(self.encoder, str)
            return map_rows(network.encoder, given, ready, width, fill_up=not own)

        group, history, stop = current(), training.history, False
        with group.all_or_none():
            if group.is_main:
                end = EpochEnd(len(history), plan.epochs, dict(history[-1]), transform, rows)
                stop = asks_to_stop(self.on_epoch(end))
        return bool(group.agreed(int(stop)))

    def _deliver(self, network: EncodingNetwork, rows: Rows, plan: FitPlan) -> FitPlan:
        """Finish a trained network; the plan for rows as they enter it from now on."""
        newest = rows if plan.stream is None else plan.stream.window
        self._finish(network, plan.seen(newest), plan)
        if plan.projected is None:
            return plan
        shape = encoders.input_shape(rows.shape, self.encoder)
        return replace(plan, shape=shape, projected=None)

    def _finish(self, network: Any, rows: Rows, plan: FitPlan) -> None:
        """What is left to do to a trained network: nothing, unless a method says so."""

    def _end(self, X: Any, rows: Rows, plan: FitPlan, training: TrainingState) -> None:
        network, history = training.network.eval(), training.history
        seen = rows if plan.stream is None else plan.stream.window
        if plan.projected is not None:
            training.optimisers = []  # of weights that will be gone
        plan = self._deliver(network, rows, plan)
        examined = None
        if plan.stream is None:
            examined = self._examine(network, seen, plan, history, training.stopped)
        validate_data(self, X, skip_check_array=True, ensure_2d=False)  # remembers column names
        self._set_fitted_state(network, rows.shape, plan, history, examined)
        self.decided_ = self._decided(plan)
        self._conclude(rows, plan)
        self._optimisers = training.optimisers or None
        if plan.stream is None:
            self._warn()
        else:
            self._recent, self._last_pass = plan.stream.recent(), plan

    def _conclude(self, rows: Rows, plan: FitPlan) -> None:
        """What a fitted model finds out about its rows: nothing, unless a method says so."""

    def _decided(self, plan: FitPlan) -> dict[str, Any]:
        """What every parameter that was "auto" became in this fit."""
        values = {"epochs": plan.epochs, "precision": plan.precision, "device": str(plan.device)}
        return {name: v for name, v in values.items() if getattr(self, name, None) == "auto"}

    def _set_fitted_state(
        self,
        network: EncodingNetwork,
        shape_in: tuple[int, ...],
        plan: FitPlan,
        history: History,
        examined: dict[str, Any] | None,
    ) -> None:
        self.network_ = network
        self.shape_in_ = shape_in
        self.preparation_ = plan.table
        self.n_features_in_ = plan.table.n_features_in_ if plan.table else math.prod(shape_in)
        self.embedding_dim_ = self._embedding_dim(network.encoder, plan)
        self.epochs_ = 0 if plan.stream else plan.epochs
        self.seed_ = plan.seed
        self.history_ = history
        self._health = examined
        self._optimisers = self._recent = self._last_pass = None

    def _headline(self, rows: Rows, plan: FitPlan, network: Any) -> str:  # noqa: ARG002
        return f"{type(self).__name__}: {plan.describe(rows, self.batch_size)}"

    def _embedding_dim(self, encoder: nn.Module, plan: FitPlan) -> int:
        if isinstance(self.encoder, nn.Module):
            return encoders.output_size(encoder, plan.shape)
        return self.n_components
