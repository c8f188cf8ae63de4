"""What the processes of a fit share; one process runs the same code.

In a process group every process runs the same fit on the same rows, and holds its share of each
batch. What is a sum or a mean over the rows of a batch goes through its `BatchShard`, which
is trivial in one process and an all-reduce in many; random numbers are drawn for the whole batch,
of which each process keeps its rows. So many processes do what one would, up to rounding.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import torch
import torch.distributed as dist

# The functions in it take the group there is on import for a default. Imported later, as by
# PyTorch's compiler, they would keep that group: its threads then run until the interpreter ends.
import torch.distributed.nn.functional
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from selfview import stragglers
from selfview.errors import InputError, SelfViewError

TIMEOUT = timedelta(minutes=30)  # of a process that waits for others; one may prepare data first


class PeerError(SelfViewError):
    """Another process of the group failed, so that this one can't go on."""


class BatchShard:
    """What a process holds of a batch: here all of it, in the one process that there is."""

    rows: slice = slice(None)  # of the batch
    weight: float = 1.0  # part of the batch's rows

    def sum(self, x: Tensor) -> Tensor:
        """Sum of `x` over the processes; gradients pass through."""
        return x

    def mean(self, x: Tensor, dim: int | None = None) -> Tensor:
        """Mean over all entries (or `dim`, 0 being rows) of what all processes hold."""
        return x.mean() if dim is None else x.mean(dim)

    def amax(self, x: Tensor) -> Tensor:
        """The largest of every column over the rows of the whole batch."""
        return x.amax(0)

    def gather(self, x: Tensor, dim: int = 0) -> Tensor:  # noqa: ARG002
        """The rows of all processes in the batch's order, along `dim`; gradients pass through."""
        return x

    def draw(self, sample: Callable[..., Tensor], shape: Sequence[int], **options: Any) -> Tensor:
        """Random numbers for these rows: the ones that one process would draw for them."""
        return sample(tuple(shape), **options)


WHOLE_BATCH = BatchShard()


class DistributedShard(BatchShard):
    """What a process holds of a batch of `n` rows that several share: `start` up to `stop`."""

    def __init__(self, start: int, stop: int, n: int) -> None:
        self.start, self.stop, self.n = start, stop, n
        self.rows = slice(start, stop)
        self.weight = (stop - start) / n

    def sum(self, x: Tensor) -> Tensor:
        return summed(x)

    def mean(self, x: Tensor, dim: int | None = None) -> Tensor:
        return self.sum(super().mean(x, dim) * self.weight)

    def amax(self, x: Tensor) -> Tensor:
        return all_reduce(super().amax(x), dist.ReduceOp.MAX)

    def gather(self, x: Tensor, dim: int = 0) -> Tensor:
        before, after = list(x.shape), list(x.shape)
        before[dim], after[dim] = self.start, self.n - self.stop
        return self.sum(torch.cat([x.new_zeros(before), x, x.new_zeros(after)], dim))

    def draw(self, sample: Callable[..., Tensor], shape: Sequence[int], **options: Any) -> Tensor:
        return sample((self.n, *shape[1:]), **options)[self.rows]


class _Sum(torch.autograd.Function):
    # The objective is the sum of what the processes' losses say, so that the gradient of a sum
    # is the sum of the gradients that arrive at it anywhere.
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ARG004
        return all_reduce(x.clone(memory_format=torch.contiguous_format))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # noqa: ARG004
        return all_reduce(gradients[0].clone(memory_format=torch.contiguous_format))


def summed(x: Tensor) -> Tensor:
    """The sum of `x` over all processes; gradients pass through."""
    total: Tensor = _Sum.apply(x)  # type: ignore[no-untyped-call]
    return total


@contextmanager
def collective() -> Iterator[None]:
    """An operation of all processes: counted, and a PeerError if one of them doesn't come."""
    with stragglers.PROGRESS.collective():
        try:
            yield
        except RuntimeError as error:
            reason = stragglers.PROGRESS.straggler or "the other processes can't be reached"
            raise PeerError(f"{reason}: {error}") from error


def all_reduce(x: Tensor, op: Any = dist.ReduceOp.SUM) -> Tensor:
    """`x` itself, reduced in place over all processes."""
    with collective():
        dist.all_reduce(x, op)
    return x


def laid_out_as(parameter: Tensor, gradient: Tensor) -> Tensor:
    """A gradient in the memory layout of what it is of: convolutions give theirs in another."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


T = TypeVar("T")
Metrics = Mapping[str, float]
Objective = Callable[[Any], tuple[Tensor, Metrics]]


@dataclass(frozen=True)
class Group:
    """The processes that work together: one, or those of PyTorch's default process group."""

    rank: int = 0
    size: int = 1

    @property
    def is_main(self) -> bool:
        """Is this the process that writes files and prints?"""
        return self.rank == 0

    def shard(self, n: int) -> BatchShard:
        """This process's share of a batch of `n` rows; sizes differ by at most one."""
        if self.size == 1:
            return WHOLE_BATCH
        return DistributedShard(self.rank * n // self.size, (self.rank + 1) * n // self.size, n)

    def expect_enough(self, smallest_batch: int) -> None:
        """Raise if a batch has not a row for every process."""
        if smallest_batch < self.size:
            raise InputError(
                f"batches of {smallest_batch} rows can't be shared by {self.size} processes: "
                "start fewer, or raise batch_size"
            )

    def gathered(self, value: T) -> list[T]:
        """The values of all processes, in the order of their ranks."""
        values: list[Any] = [value] * self.size
        if self.size > 1:
            with collective():
                dist.all_gather_object(values, value)
        return values

    def expect_same(self, what: str) -> None:
        """Raise unless all processes come with the same text."""
        if len(set(self.gathered(what))) > 1:
            raise InputError(
                "the processes were given different data or parameters: pass all rows, and the "
                "same arguments, to each; every process takes its own share of them"
            )

    def from_main(self, make: Callable[[], T]) -> T:
        """What `make` returns in the first process, in all of them; it is called only there."""
        made: list[Any] = [None]
        with self.all_or_none():
            if self.is_main:
                made = [make()]
        if self.size > 1:
            with collective():
                dist.broadcast_object_list(made, 0)
        result: T = made[0]
        return result

    def agreed(self, number: int) -> int:
        """The first process's number, in all of them; cheap enough for every step."""
        if self.size == 1:
            return number
        message = torch.tensor([number], device=_device())
        with collective():
            dist.broadcast(message, 0)
        return int(message)

    def restarted(self) -> bool:
        """Has `torchrun` started these processes again, after one of them failed?

        It counts by hosts, of which only the one that has failed may know.
        """
        return max(self.gathered(_restarts())) > 0

    def main_first(self, read: Callable[[], T]) -> T:
        """What `read` returns: called in the first process of each host, then in the others.

        So that what it leaves in a cache is made once.
        """
        if self.size == 1:
            return read()
        first = int(os.environ.get("LOCAL_RANK", self.rank)) == 0
        result: list[T] = []
        for turn in (True, False):
            with self.all_or_none():
                if turn == first:
                    result.append(read())
        return result[0]

    def synchronise(self, network: nn.Module) -> None:
        """Give all processes the first one's weights and buffers."""
        if self.size > 1:
            with collective():
                for tensor in network.state_dict().values():
                    dist.broadcast(tensor, 0)

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Fail in all processes if one fails here, so that none waits for one that is gone."""
        if self.size == 1:
            yield
            return
        try:
            yield
        except Exception:
            self._first_failure(failed=True)
            raise
        first = self._first_failure(failed=False)
        if first < self.size:
            raise PeerError(f"process {first} stopped with an error: see its message")

    def _first_failure(self, failed: bool) -> int:
        first = torch.tensor([self.rank if failed else self.size], device=_device())
        return int(all_reduce(first, dist.ReduceOp.MIN))

    @contextmanager
    def objective(self, loss: Objective, parameters: Sequence[nn.Parameter]) -> Iterator[Objective]:
        """`loss`, such that `gradients` of it are summed up while they are computed."""
        if self.size == 1:
            yield loss
            return
        module = _Loss(loss, parameters)
        hooks = [
            parameter.register_hook(partial(laid_out_as, parameter))  # type: ignore[no-untyped-call]
            for parameter in parameters
            if parameter.requires_grad
        ]
        # A step may leave parameters unused, as SelfView's head.
        shared = DistributedDataParallel(module, find_unused_parameters=True)
        try:
            yield shared
        finally:
            # Its reducer holds the process group. Were it the last to do so, it would wait for the
            # group's threads with Python's lock held, for which one of them may be waiting: a
            # deadlock, or, while the interpreter ends, "terminate called without an active
            # exception". It goes now, since reference cycles keep it for long.
            shared.__dict__.clear()
            for hook in hooks:
                hook.remove()

    def gradients(
        self, loss: Tensor, parameters: Sequence[nn.Parameter], shard: BatchShard
    ) -> Sequence[Tensor | None]:
        """Gradients of the mean over the whole batch of a loss that an `objective` gave."""
        if self.size == 1:
            return torch.autograd.grad(loss, list(parameters), allow_unused=True)
        stragglers.PROGRESS.begun += 1  # DistributedDataParallel's own messages
        # Gradients are averaged over the processes, of which each counts by its rows.
        torch.autograd.backward(loss * (shard.weight * self.size), inputs=list(parameters))
        return [parameter.grad for parameter in parameters]

    def means(self, metrics: Metrics, shard: BatchShard, device: torch.device) -> dict[str, float]:
        """Means of the processes' metrics, weighted by their rows.

        Also how all processes learn that a metric of one is not finite, before they go on.
        """
        if self.size == 1:
            return dict(metrics)
        kind = torch.float32 if device.type == "mps" else torch.float64
        values = torch.tensor(list(metrics.values()), dtype=kind, device=device)
        return dict(zip(metrics, shard.sum(values * shard.weight).tolist(), strict=True))


ALONE = Group()


class _Loss(nn.Module):
    """A loss as a module, whose forward pass DistributedDataParallel can follow."""

    def __init__(self, loss: Objective, parameters: Sequence[nn.Parameter]) -> None:
        super().__init__()
        self.loss = loss
        self.moved = nn.ParameterList(parameters)

    def forward(self, step: Any) -> tuple[Tensor, Metrics]:
        return self.loss(step)


def current() -> Group:
    """The group that this process belongs to: PyTorch's default one, or itself alone."""
    if not (dist.is_available() and dist.is_initialized()):
        return ALONE
    return Group(dist.get_rank(), dist.get_world_size())


@contextmanager
def launched() -> Iterator[Group]:
    """The processes that `torchrun` started, joined for the time being; without it, one alone."""
    if not dist.is_available() or not dist.is_torchelastic_launched() or dist.is_initialized():
        yield current()
        return
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        backend = "cpu:gloo,cuda:nccl"
    store, rank, size = next(rendezvous("env://", timeout=TIMEOUT))
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        # The store outlives the processes, and with it the addresses of those that are gone.
        store = dist.PrefixStore(f"attempt-{_restarts()}", store)  # type: ignore[attr-defined]
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=TIMEOUT)
    try:
        with stragglers.watched(rank, size, _own_store()):
            yield current()
    finally:
        dist.destroy_process_group()


def _own_store() -> Any:
    """A further connection to torchrun's store; names in it are those of this attempt."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(host, port, is_master=False, timeout=TIMEOUT)  # type: ignore[attr-defined]
    return dist.PrefixStore(f"stragglers-{_restarts()}", store)  # type: ignore[attr-defined]


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def _device() -> torch.device:
    """Where a message must lie: NCCL alone takes nothing from the processor's memory."""
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
