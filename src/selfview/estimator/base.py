"""`fit` for any network: input, device, precision, progress, state on disk.

A method derives from `Embedder` (embedder.py) and says two things: which network (`_network`), and
which phases train it (`_phases`); and, if anything is left to do then, what (`_finish`). The
constructor only remembers; `fit` checks, and sets nothing unless it ends well.
"""

import copy
import math
import time
import zlib
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from selfview.distributed import current
from selfview.errors import InputError
from selfview.estimator import parameters
from selfview.estimator.epoch_end import EpochEnd, asks_to_stop
from selfview.estimator.plan import FitPlan, make_plan
from selfview.estimator.recipes import RECIPES
from selfview.estimator.transform import TransformMixin, map_rows, table_rows
from selfview.estimator.verdict import VerdictMixin
from selfview.labels import group_codes
from selfview.networks import encoders
from selfview.networks.encoders import EncodingNetwork
from selfview.rows.base import Rows
from selfview.rows.conversion import expect_shape
from selfview.rows.stream import Stream
from selfview.saving import model_file
from selfview.saving.checkpoints import Checkpoints
from selfview.tables.preparation import preparation_for
from selfview.training.batch_norm import synchronised
from selfview.training.loop import EpochProgress, Phase, n_batches, train
from selfview.training.progress import Progress
from selfview.training.schedules import stream_rate
from selfview.training.seeding import own_randomness, own_weights
from selfview.training.state import History, TrainingState, seed_of, steps_of


class Fit(VerdictMixin, TransformMixin):
    """`fit`, from rows to a trained network."""

    recipe: str
    epochs: str | int
    batch_size: int
    learning_rate: Any
    precision: str
    device: str | torch.device
    random_state: Any
    checkpoint: Any
    on_epoch: Callable[[EpochEnd], object] | None
    max_seconds: float | None
    verbose: int
    schedule: str
    history_: History
    _health: dict[str, Any] | None
    _recent: Tensor | None  # of a stream, the newest rows
    _last_pass: FitPlan | None  # over a stream

    _checks: ClassVar[parameters.Checks] = {
        "n_components": partial(parameters.integer, at_least=1),
        "batch_size": partial(parameters.integer, at_least=2),
        "learning_rate": partial(parameters.positive_or, word="auto"),
        "precision": partial(parameters.one_of, options=("auto", "float32", "bfloat16")),
        "encoder": parameters.encoder,
        "epochs": partial(parameters.integer_or, word="auto", at_least=1),
        "on_epoch": parameters.callable_or_none,
        "max_seconds": parameters.positive_or_none,
        "verbose": parameters.level,
    }

    def _network(self, plan: FitPlan) -> EncodingNetwork:
        """A network whose part `encoder` gives the embedding."""
        raise NotImplementedError

    def _phases(self, network: Any, plan: FitPlan) -> list[Phase]:
        """What happens in a step, in order."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn the embedding of `X`.

        Parameters
        ----------
        X : ndarray, memmap, sparse matrix, Tensor, DataFrame or torch Dataset
            Rows of features (n, n_features), or images (n, channels, height, width). A data frame
            of mixed columns goes through a `TablePreparation`, `preparation_`.
        y : ignored
            Labels are never looked at.

        Returns
        -------
        self
        """
        return self._fit(X)

    def _fit(self, X: Any, groups: Any = None) -> Self:
        rows, plan = self._prepare(X, groups=groups)
        group = current()
        with ExitStack() as stack:
            with group.all_or_none():
                folder = self.checkpoint if group.is_main else None
                keeper = stack.enter_context(Checkpoints(folder, self._identity(rows, plan)))
            plan = self._complete(rows, plan)
            state = group.from_main(keeper.latest)
            if state is not None:
                plan = replace(plan, seed=seed_of(state))
            training = self._start(plan)
            if state is not None:
                training.resume(state)
            return self._learn(X, rows, plan, training, plan.epochs, keeper)

    def _prepare(self, X: Any, passes: bool = False, groups: Any = None) -> tuple[Rows, FitPlan]:
        """Rows and plan of a fit or of a pass, checked; the same in all processes that share it."""
        group = current()
        go_on = passes and hasattr(self, "network_")
        with group.all_or_none():
            self.check_parameters()
            table = self.preparation_ if go_on else preparation_for(X)
            rows = self._rows(X) if go_on else table_rows(X, table)
            plan = self._plan(rows, self._stream(rows) if passes else None)
            plan = replace(plan, table=table)
            if groups is not None:
                plan = replace(plan, groups=group_codes(groups, rows.n)[0])
            group.expect_enough(rows.n // n_batches(rows.n, self.batch_size))
        about = [self._identity(rows, plan), plan.precision, plan.device.type, go_on]
        group.expect_same(str(about))
        return rows, replace(plan, seed=group.agreed(plan.seed))

    def _stream(self, rows: Rows) -> Stream | None:
        """The stream of which `rows` come next; None after a `fit`, which had an end."""
        started = hasattr(self, "network_")
        if started and self.epochs_:
            return None
        history = self.history_ if started else []
        return Stream.pass_over(
            rows,
            getattr(self, "_recent", None),
            passes=len(history),
            steps=steps_of(history),
            batches=n_batches(rows.n, self.batch_size),
        )

    def _rate(self, plan: FitPlan) -> Callable[[float], float]:
        """Learning rate as a function of the epoch."""
        recipe, stream = RECIPES[self.recipe], plan.stream
        if stream is None:
            return recipe.rate(self.learning_rate, self.schedule, plan.epochs)
        peak = recipe.peak(self.learning_rate)
        return lambda epoch: stream_rate(peak, stream.step(epoch))

    def _start(self, plan: FitPlan) -> TrainingState:
        network = self._new_network(plan)
        return TrainingState(network, self._phases(network, plan), plan.seed)

    def _new_network(self, plan: FitPlan) -> EncodingNetwork:
        try:
            with own_weights(plan.seed):
                return self._network(plan).to(plan.device)
        except (RuntimeError, MemoryError, OverflowError) as error:
            raise InputError(
                f"the network can't be made: {model_file.reason(error)}. Lower n_components or the "
                "other sizes"
            ) from error

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
        seen = rows if plan.projected is None else plan.projected
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
            keeper.watch(training) as offer,
        ):

            def after_step(part: EpochProgress) -> bool:
                training.part = part
                progress.after_step()
                if time_is_up():
                    training.stopped = "max_seconds"
                    return True
                with group.all_or_none():
                    offer()
                return False

            epochs_done = train(
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
                group=group,
                blocks=seen.blocks,
            )
            with closing(epochs_done):
                for row in epochs_done:
                    training.end_epoch(row)
                    progress.after_epoch(row)
                    asked = self._asks_to_stop(rows, plan, training)
                    if len(training.history) < until and (asked or time_is_up()):
                        training.stopped = "on_epoch" if asked else "max_seconds"
                        break
                    with group.all_or_none():
                        offer()
            training.check()
            with group.all_or_none():
                if epochs:
                    keeper.keep(training)
            training.end_part()
        self._end(X, rows, plan, training)
        return self

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
        seen = rows if plan.stream is None else plan.stream.window
        self._finish(network, seen if plan.projected is None else plan.projected, plan)
        if plan.projected is None:
            return plan
        shape = encoders.input_shape(rows.shape, self.encoder)
        return replace(plan, shape=shape, projected=None)

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

    def _finish(self, network: Any, rows: Rows, plan: FitPlan) -> None:
        """What is left to do to a trained network: nothing, unless a method says so."""

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

    def _plan(self, rows: Rows, stream: Stream | None = None) -> FitPlan:
        return make_plan(
            rows,
            stream=stream,
            encoder=self._encoder_for(rows.shape),
            epochs=self.epochs,
            batch_size=self.batch_size,
            random_state=self.random_state,
            device=self.device,
            precision=self.precision,
        )

    def _complete(self, rows: Rows, plan: FitPlan, project: bool = True) -> FitPlan:  # noqa: ARG002
        """What of the plan all processes find together: nothing, unless a method says so."""
        return plan

    def _encoder_for(self, shape: tuple[int, ...]) -> str | nn.Module:
        """The encoder for rows of `shape`: the recipe's for images, if it is left to us."""
        if self.encoder == "auto" and len(shape) in (2, 3):
            return RECIPES[self.recipe].images
        return self.encoder

    def _identity(self, rows: Rows, plan: FitPlan) -> dict[str, Any]:
        """What must be the same for a checkpoint to be of this run."""
        given = model_file.plain_parameters(self)
        for name in ("checkpoint", "on_epoch", "max_seconds", "verbose", "device"):
            given.pop(name)
        about = {"number": rows.n, "shape": rows.shape, **asdict(plan.summary)}
        told = {f"the rows' {name}": value for name, value in about.items()}
        if plan.groups is not None:
            told["the rows' groups"] = zlib.crc32(plan.groups.tobytes())
        return {"class": type(self).__name__, **given, **told}

    def _headline(self, rows: Rows, plan: FitPlan, network: Any) -> str:  # noqa: ARG002
        return f"{type(self).__name__}: {plan.describe(rows, self.batch_size)}"

    def _embedding_dim(self, encoder: nn.Module, plan: FitPlan) -> int:
        if isinstance(self.encoder, nn.Module):
            return encoders.output_size(encoder, plan.shape)
        return self.n_components

    def check_parameters(self) -> None:
        """Raise InputError if a parameter is not what it may be."""
        for name, check in self._checks.items():
            check(name, getattr(self, name))
        if not isinstance(self.checkpoint, str | Path | None):
            raise InputError(f"checkpoint must be a folder or None, got {self.checkpoint!r}")
