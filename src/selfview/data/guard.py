"""Opening files that may be damaged or hostile: what goes wrong is an error naming the file."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

from selfview.errors import FileFormatError, InputError, MissingDependencyError, SelfViewError

logger = logging.getLogger("selfview.data")

IN_MEMORY = 64 * 2**20
"""Arrays up to this many bytes are read into memory; larger ones are mapped."""


def regular_file(path: str | os.PathLike[str]) -> Path:
    """The path, once it is sure to be a readable, non-empty, ordinary file."""
    path = Path(path)
    try:
        mode = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = "no such file" if isinstance(error, FileNotFoundError) else _reason(error)
        raise InputError(f"{path}: {reason}") from error
    if stat.S_ISDIR(mode.st_mode):
        raise InputError(f"{path} is a folder, a file is needed here")
    if not stat.S_ISREG(mode.st_mode):  # a FIFO would block, a device may never end
        raise InputError(f"{path} is not an ordinary file")
    if mode.st_size == 0:
        raise FileFormatError(f"{path} is empty")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path} can't be read: permission denied")
    return path


@contextmanager
def reading(path: str | os.PathLike[str], what: str = "") -> Iterator[None]:
    """Turn whatever a parser throws at a damaged file into a `FileFormatError` naming it.

    Parsers of other projects raise nearly anything on hostile input (a mutated imzML gives
    AttributeError, a mutated png SyntaxError), so every `Exception` is translated here; the
    original stays attached as the cause.
    """
    try:
        yield
    except SelfViewError:
        raise
    except MemoryError as error:
        raise FileFormatError(f"{path} declares more than fits in memory") from error
    except PermissionError as error:
        raise InputError(f"{path} can't be read: permission denied") from error
    except Exception as error:
        kind = f" as {what}" if what else ""
        raise FileFormatError(f"{path} can't be read{kind}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8 text; save it as UTF-8"
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:200] + " ..."


def physical_memory() -> int:
    """Bytes of memory this machine has (a guess of 16 GiB where the system doesn't tell)."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 16 * 2**30


def check_allocation(path: str | os.PathLike[str], nbytes: int) -> None:
    """Refuse a declared size that this machine can't hold, before anything is allocated."""
    if nbytes > physical_memory():
        raise FileFormatError(
            f"{path} declares {nbytes / 2**30:,.1f} GiB, more than this machine's "
            f"{physical_memory() / 2**30:,.1f} GiB of memory"
        )


def need(module: str, extra: str = "data") -> ModuleType:
    """An optional package, or the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"this needs {module.partition('.')[0]}: pip install 'selfview[{extra}]'"
        ) from error


def settle_bad_rows(
    path: str | os.PathLike[str], bad: Sequence[str], total: int, skip_bad: bool
) -> tuple[str, ...]:
    """The message about rows left out, or an error that names them."""
    if not bad:
        return ()
    shown = "; ".join(map(_cut, bad[:5])) + (f"; and {len(bad) - 5:,} more" if len(bad) > 5 else "")
    if not skip_bad:
        raise FileFormatError(
            f"{path}: {len(bad):,} of {total:,} rows can't be read: {shown}. "
            "Mend them, or leave them out with --skip-bad (skip_bad=True)"
        )
    if len(bad) >= total:
        raise FileFormatError(f"{path}: none of its {total:,} rows can be read: {shown}")
    return (tell(f"{path}: left out {len(bad):,} of {total:,} rows: {shown}"),)


def _cut(reason: str) -> str:
    """A reason without its middle if it is long: a hostile file can name a field of any length."""
    return reason if len(reason) <= 300 else f"{reason[:180]} ... {reason[-100:]}"


def tell(message: str) -> str:
    """Log a message for the user (one line on standard error unless logging is set up)."""
    logger.warning(message)
    return message
