"""`fit` for any network: input, device, precision, progress, state on disk.

A method derives from `Embedder` (embedder.py) and says two things: which network (`_network`), and
which phases train it (`_phases`); and, if anything is left to do then, what (`_finish`). The
constructor only remembers; `fit` checks, and sets nothing unless it ends well.
"""

import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import torch
from torch import nn

from selfview.distributed import current
from selfview.errors import InputError
from selfview.estimator import parameters
from selfview.estimator.epoch_end import EpochEnd
from selfview.estimator.learning import LearnMixin
from selfview.estimator.plan import FitPlan, make_plan
from selfview.estimator.recipes import RECIPES, SCHEDULES
from selfview.estimator.transform import table_rows
from selfview.labels import group_codes
from selfview.networks import encoders
from selfview.networks.encoders import EncodingNetwork
from selfview.rows.base import Rows
from selfview.rows.stream import Stream
from selfview.saving import model_file
from selfview.saving.checkpoints import Checkpoints
from selfview.tables.preparation import preparation_for
from selfview.training.loop import Phase, n_batches
from selfview.training.schedules import stream_rate
from selfview.training.seeding import own_weights
from selfview.training.state import TrainingState, seed_of, steps_of


@dataclass(eq=False, repr=False, kw_only=True)
class Fit(LearnMixin):
    """`fit`, from rows to a plan; and the parameters of every method that trains a network."""

    n_components: int = field(default=10, kw_only=False)
    recipe: str = "selfview"
    epochs: str | int = "auto"
    batch_size: int = 256
    learning_rate: str | float = "auto"
    schedule: str = "auto"
    precision: str = "auto"
    device: str | torch.device = "auto"
    random_state: Any = None
    checkpoint: Any = None
    on_epoch: Callable[[EpochEnd], object] | None = None
    max_seconds: float | None = None
    verbose: int = 1

    _checks: ClassVar[parameters.Checks] = {
        "n_components": partial(parameters.integer, at_least=1),
        "recipe": partial(parameters.one_of, options=list(RECIPES)),
        "schedule": partial(parameters.one_of, options=["auto", *SCHEDULES]),
        "batch_size": partial(parameters.integer, at_least=2),
        "learning_rate": partial(parameters.positive_or, word="auto"),
        "precision": partial(parameters.one_of, options=("auto", "float32", "bfloat16")),
        "encoder": parameters.encoder,
        "epochs": partial(parameters.integer_or, word="auto", at_least=1),
        "checkpoint": parameters.folder_or_none,
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
        X : rows as in `SelfView.fit`
        y : ignored

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

    def _plan(self, rows: Rows, stream: Stream | None = None) -> FitPlan:
        return make_plan(
            rows,
            stream=stream,
            shape=encoders.input_shape(rows.shape, self.encoder),
            encoder=self._encoder_for(rows.shape, None if stream else rows.n),
            epochs=self.epochs,
            batch_size=self.batch_size,
            random_state=self.random_state,
            device=self.device,
            precision=self.precision,
        )

    def _complete(self, rows: Rows, plan: FitPlan, project: bool = True) -> FitPlan:  # noqa: ARG002
        """What of the plan all processes find together: nothing, unless a method says so."""
        return plan

    def _encoder_for(self, shape: tuple[int, ...], n: int | None) -> str | nn.Module:
        """The encoder for `n` rows of `shape`, or a stream: the recipe's, if it is left to us."""
        if self.encoder == "auto":
            return RECIPES[self.recipe].encoder(shape, n)
        return self.encoder

    def _identity(self, rows: Rows, plan: FitPlan) -> dict[str, Any]:
        """What must be the same for a checkpoint to be of this run."""
        given = model_file.plain_parameters(self)
        for name in ("checkpoint", "on_epoch", "max_seconds", "verbose", "device"):
            given.pop(name)
        about = {"number": rows.n, "shape": rows.shape, **asdict(plan.summary)}
        about_rows = {f"the rows' {name}": value for name, value in about.items()}
        if plan.groups is not None:
            about_rows["the rows' groups"] = zlib.crc32(plan.groups.tobytes())
        return {"class": type(self).__name__, **given, **about_rows}

    def check_parameters(self) -> None:
        """Raise InputError if a parameter is not what it may be."""
        parameters.check_all(self, self._checks)
