"""The plan of one fit: what a method may know when it builds its network and phases."""

import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from selfview.distributed import current
from selfview.errors import InputError
from selfview.estimator import parameters
from selfview.estimator.devices import resolve_device, resolve_precision
from selfview.estimator.recipes import USUAL_NORM, Kind, Settings, by_angle, input_scale
from selfview.neighbours.across_groups import GroupNeighbours, without_differences
from selfview.neighbours.precomputed import LinkedNeighbours, LinkedRows
from selfview.neighbours.search import Neighbours, searchable
from selfview.networks import encoders
from selfview.rows.base import Rows, Summary
from selfview.rows.projection import ProjectedRows, Projection, principal_components
from selfview.rows.stream import Stream
from selfview.saving.checkpoints import load_or_make
from selfview.tables.preparation import TablePreparation
from selfview.training.loop import n_batches

# Of an "auto" fit: minutes on two cores, of which a step of convolutions takes many times as much
# as one of a perceptron.
AUTO_STEPS = (300, 2000)  # at least and at most
AUTO_PRODUCTS = 1.1e12  # multiplications of forward passes; a step's work is nine times that


@dataclass(frozen=True)
class FitPlan:
    """What a method may know of a fit when it builds its network and phases."""

    shape: tuple[int, ...]  # of a row as it enters the network
    summary: Summary
    epochs: int
    seed: int
    device: torch.device
    encoder: str | nn.Module = "mlp"
    precision: str = "float32"
    n: int = 0  # rows
    n_features: int = 0  # of a row
    batches: int = 1  # in an epoch
    searchable: bool = True  # can neighbours be searched for?
    stream: Stream | None = None  # of which this is a pass
    table: TablePreparation | None = None  # which made the rows, of a mixed data frame
    groups: NDArray[np.int64] | None = None  # of every row: what is not to be learned
    links: LinkedRows | None = None  # neighbours that the user is_precomputed
    neighbours: Neighbours | LinkedNeighbours | None = None  # of which second views are drawn
    projected: ProjectedRows | None = None  # what the network sees, if not the rows themselves
    settings: Settings = field(default_factory=Settings)  # of SelfView
    started: float = 0.0  # when the fit began, by time.monotonic

    @property
    def alone(self) -> bool:
        """Are the rows one set, neither in groups nor a stream?"""
        return self.groups is None and self.stream is None

    def seen(self, rows: Rows) -> Rows:
        """What the network sees of the rows: their components, or the rows themselves."""
        return rows if self.projected is None else self.projected

    def batch(self, rows: Rows, index: NDArray[np.intp] | slice) -> Tensor:
        """The rows of the given numbers, as the network takes them."""
        return self.as_input(rows.take(index))

    def as_input(self, x: Tensor) -> Tensor:
        """Rows as the network takes them: shape, device, layout in memory."""
        layout = torch.channels_last if len(self.shape) == 3 else torch.contiguous_format
        return x.reshape(-1, *self.shape).to(self.device).contiguous(memory_format=layout)

    def describe(self, rows: Rows, batch_size: int) -> str:
        """One line that says what will be done."""
        steps = n_batches(rows.n, batch_size)
        return (
            f"{rows.n:,} rows of {'x'.join(map(str, rows.shape))}, "
            f"{self.epochs:,} epochs of {steps:,} steps ({self.epochs * steps:,} in all), "
            f"{self.precision} on {self.device}"
        )


def make_plan(
    rows: Rows,
    *,
    shape: tuple[int, ...],
    encoder: str | nn.Module,
    epochs: str | int,
    batch_size: int,
    random_state: Any,
    device: str | torch.device,
    precision: str,
    stream: Stream | None = None,
) -> FitPlan:
    """The plan for fitting `rows`, with every "auto" decided; the rows are checked on the way."""
    started = time.monotonic()
    if rows.n < 2:
        raise InputError(
            "fit needs at least 2 rows, got n_samples = 1: one row can't be told from others"
        )
    steps = n_batches(rows.n, batch_size)
    place = resolve_device(device)
    return FitPlan(
        shape=shape,
        encoder=encoder,
        summary=rows.summary(),
        epochs=auto_epochs(encoder, shape, rows.n, steps) if epochs == "auto" else int(epochs),
        seed=parameters.seed("random_state", random_state),
        device=place,
        precision=resolve_precision(precision, place),
        n=rows.n,
        n_features=rows.n_features,
        batches=steps,
        searchable=searchable(rows),
        stream=stream,
        started=started,
    )


def auto_epochs(
    encoder: str | nn.Module, shape: tuple[int, ...], n: int, steps_an_epoch: int
) -> int:
    """As many epochs as take minutes: fewer if a step costs more; of a custom encoder, unknown."""
    fewest, most = AUTO_STEPS
    steps = float(most)
    if not isinstance(encoder, nn.Module):
        steps = AUTO_PRODUCTS / (encoders.products(encoder, shape) * n / steps_an_epoch)
    return max(1, round(min(max(steps, fewest), most) / steps_an_epoch))


def projected_rows(
    rows: Rows,
    summary: Summary,
    kind: Kind,
    folder: Path | None,
    groups: NDArray[np.int64] | None = None,
) -> ProjectedRows:
    """The rows in their leading principal components; the same in all processes of a fit.

    With `groups`, what differs between them counts less. The components are kept in `folder`, if
    there is one, for a fit that goes on.
    """
    path = None if folder is None else folder / "projection.safetensors"
    about = {"rows": rows.n, "shape": rows.shape, **asdict(kind), **asdict(summary)}
    if groups is not None:
        about["groups"] = zlib.crc32(groups.tobytes())

    def find() -> dict[str, Tensor]:
        scale = input_scale(summary)
        given = dict(whitening=kind.whitening, length=USUAL_NORM)
        found = principal_components(rows, kind.components, scale=scale, **given)
        if groups is not None:
            angle = by_angle(summary, rows.n_features)
            among = ProjectedRows(rows, found)
            found = without_differences(
                among, groups, angle=angle, power=kind.whitening, length=USUAL_NORM
            )
        return found.tensors()

    tensors = current().from_main(lambda: load_or_make(path, about, find))
    return ProjectedRows(rows, Projection.of_tensors(tensors))


def with_neighbours(
    plan: FitPlan,
    rows: Rows,
    groups: NDArray[np.int64] | None,
    metric: str,
    folder: Path | None,
) -> FitPlan:
    """The plan with neighbours, if its settings ask for any; they are found when first drawn."""
    settings, stream = plan.settings, plan.stream
    if not settings.neighbours:
        return plan
    among = stream.window if stream else plan.seen(rows)

    def take(index: NDArray[np.intp]) -> Tensor:
        return plan.as_input(among.pick(index))

    if plan.links is not None:
        return replace(plan, neighbours=LinkedNeighbours(plan.links, take))
    as_they_are = metric != "auto" or not settings.search_components
    make: Callable[..., Neighbours] = Neighbours
    if groups is not None:
        make = partial(GroupNeighbours, groups=groups)
    neighbours = make(
        rows if as_they_are and not stream else among,
        take,
        count=settings.neighbours,
        first=rows.n,
        angle=settings.by_angle,
        components=settings.search_components,
        metric=metric,
        scale=input_scale(plan.summary),
        about=asdict(plan.summary),
        folder=folder,
        walk=lambda epoch: settings.walk_at(epoch / max(plan.epochs, 1)),
    )
    return replace(plan, neighbours=neighbours)
