"""Memory that a training asks for again and again stays with the process while it trains."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

# Parameters of glibc's mallopt, and the values that its own adjustment goes up to.
_TRIM, _MAP = -1, -3
_USUAL = {_MAP: 32 << 20, _TRIM: 64 << 20}
_KEPT = {_MAP: 1 << 30, _TRIM: (1 << 31) - 1}


@contextmanager
def kept_memory() -> Iterator[None]:
    """Blocks that are freed in here are not given back to the system before the end.

    Every step allocates activations of many MiB. glibc maps blocks of that size anew each time, and
    the system clears every page of them. Elsewhere than on glibc nothing is changed.
    """
    libc = _glibc()
    if libc is None:
        yield
        return
    try:
        for parameter, value in _KEPT.items():
            libc.mallopt(parameter, value)
        yield
    finally:
        for parameter, value in _USUAL.items():
            libc.mallopt(parameter, value)
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018 (musl and others have none)
        libc.malloc_trim.argtypes = [ctypes.c_size_t]
    except (AttributeError, OSError, TypeError):
        return None
    return libc
