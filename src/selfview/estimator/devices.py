"""Which device and which precision: decided by what the machine is, never by a stopwatch.

So the same machine always decides the same way, and the same seed gives the same bits.
"""

import functools
import platform
import warnings
from pathlib import Path

import torch

from selfview.errors import InputError, SelfViewWarning
from selfview.estimator import parameters

# Processor flags of units that multiply bfloat16 directly. Without one of them PyTorch emulates
# it, a hundred times slower than float32.
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16", "svebf16"}


def resolve_device(device: str | torch.device) -> torch.device:
    """The device of that name; "auto" is the first CUDA device, or the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.empty(0, device=resolved)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise InputError(
            f"device must be 'auto', 'cpu' or one that torch has here, got {device!r}"
        ) from error
    return resolved


def resolve_precision(precision: str, device: torch.device) -> str:
    """ "float32" or "bfloat16": "auto" takes the latter where the hardware multiplies with it."""
    parameters.one_of("precision", precision, ("auto", "float32", "bfloat16"))
    direct = has_bfloat16(device.type)
    if precision == "auto":
        return "bfloat16" if direct else "float32"
    if precision == "bfloat16" and not direct:
        warnings.warn(
            "this processor has no bfloat16 arithmetic: it is emulated, and far slower than "
            "precision='float32'",
            SelfViewWarning,
            stacklevel=2,
        )
    return precision


@functools.cache
def has_bfloat16(kind: str) -> bool:
    """Does the device of this kind multiply bfloat16 directly?"""
    if kind == "cuda":
        # Ampere and later; before, it is emulated.
        return torch.cuda.get_device_capability() >= (8, 0)
    # PyTorch may be held to fewer instructions than the processor has (ATEN_CPU_CAPABILITY).
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    if x86 and not torch.backends.cpu.get_cpu_capability().startswith("AVX512"):
        return False
    return kind == "cpu" and not BFLOAT16_FLAGS.isdisjoint(_processor_flags())


def _processor_flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:  # not Linux
        return set()
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return set(flags.partition(":")[2].split())
