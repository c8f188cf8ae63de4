"""torch's global random state, borrowed; and initial weights that don't depend on it.

All threads of a process share the global state. Our code draws from generators of its own while
training. Only layers that draw by themselves, as dropout in a custom encoder does, use the global
state: fits of those in several threads at once disturb one another.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_guard = threading.Lock()
_borrowers = 0
_loan = ExitStack()  # gives the caller's state back


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Within it, torch's global random state is ours; after it, it is the caller's again.

    Of several in different threads, the last to end gives it back.
    """
    global _borrowers
    with _guard:
        if not _borrowers:
            _loan.enter_context(torch.random.fork_rng(range(torch.cuda.device_count())))
        _borrowers += 1
        torch.manual_seed(seed)
    try:
        yield
    finally:
        with _guard:
            _borrowers -= 1
            if not _borrowers:
                _loan.close()


def seed_layers(seed: int) -> None:
    """`torch.manual_seed` without its search for devices, which costs as much as a small step."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


@contextmanager
def own_weights(seed: int) -> Iterator[None]:
    """Within it, the seed alone decides the weights of new layers, whatever other threads do.

    They are the ones that torch draws after `torch.manual_seed(seed)`.
    """
    with own_randomness(seed), _Drawing(torch.Generator().manual_seed(seed)):
        yield


class _Drawing(TorchFunctionMode):
    """In this thread, random numbers for tensors on the processor come from `generator`."""

    DRAWS = (
        *(Tensor.uniform_, Tensor.normal_),
        *(nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_),
    )

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        given = dict(kwargs or {})
        if func in self.DRAWS and given.get("generator") is None:
            tensor = args[0] if args else given["tensor"]
            if tensor.is_cpu:
                given["generator"] = self.generator
        return func(*args, **given)
