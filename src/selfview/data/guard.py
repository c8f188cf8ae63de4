"""Opening files that may be damaged or hostile: every failure is an error that names the file.

Members of archives are read in memory; nothing is ever extracted to a path.
"""

import logging
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path, PurePosixPath
from types import ModuleType

from selfview.errors import FileFormatError, InputError, MissingDependencyError, SelfViewError

logger = logging.getLogger("selfview.data")

IN_MEMORY = 64 * 2**20  # bytes; larger arrays are memory-mapped
BLOCK = 2**24  # bytes of a mapped array that are processed at a time
MAX_DEFLATE = 1032  # the largest ratio by which deflate can expand
MEMBER_LIMIT, TOTAL_LIMIT = 512 * 2**20, 4 * 2**30  # bytes, of one and of all members


def regular_file(path: str | os.PathLike[str]) -> Path:
    """The path, after checking that it is a readable, non-empty, ordinary file."""
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
    """Turn whatever a parser raises on a damaged file into a `FileFormatError` that names it.

    Other projects' parsers raise nearly anything on hostile input (a mutated imzML gives
    AttributeError, a mutated png SyntaxError), so every `Exception` is translated here.
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
    """Bytes of memory of this machine; 16 GiB where the system doesn't say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 16 * 2**30


def check_allocation(path: str | os.PathLike[str], nbytes: int) -> None:
    """Raise FileFormatError for a declared size that exceeds this machine's memory."""
    if nbytes > physical_memory():
        raise FileFormatError(
            f"{path} declares {nbytes / 2**30:,.1f} GiB, more than this machine's "
            f"{physical_memory() / 2**30:,.1f} GiB of memory"
        )


def need(module: str, extra: str = "data") -> ModuleType:
    """An optional package, or an error with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(
            f"this needs {module.partition('.')[0]}: pip install 'selfview[{extra}]'"
        ) from error


REMEDY = "Mend them, or leave them out with --skip-bad (skip_bad=True)"


def report_bad_rows(
    path: str | os.PathLike[str],
    bad: Sequence[str],
    total: int,
    skip_bad: bool,
    remedy: str = REMEDY,
) -> tuple[str, ...]:
    """The message about rows that were left out, or an error that names them."""
    if not bad:
        return ()
    none = len(bad) >= total
    first = bad[: 1 if none else 5]  # what is wrong with all rows is wrong with the first
    # A hostile file can name a field of any length, so long reasons lose their middle.
    short = [b if len(b) <= 300 else f"{b[:180]} ... {b[-100:]}" for b in first]
    shown = "; ".join(short) + f"; and {len(bad) - len(first):,} more" * (len(bad) > len(first))
    if none and remedy == REMEDY:  # there is nothing to leave out
        raise FileFormatError(f"{path}: none of its {total:,} rows can be read: {shown}")
    if not skip_bad:
        raise FileFormatError(
            f"{path}: {len(bad):,} of {total:,} rows can't be read: {shown}. {remedy}"
        )
    return (notify(f"{path}: left out {len(bad):,} of {total:,} rows: {shown}"),)


def notify(message: str) -> str:
    """Log a message for the user: a line on standard error unless logging is set up."""
    logger.warning(message)
    return message


def check_name(path: Path, name: str) -> None:
    """Raise FileFormatError for a member whose name points outside its archive."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or "\0" in name:
        raise FileFormatError(f"{path} holds a member that points outside it: {name!r}")


def tar_members(
    source: str | os.PathLike[str], wanted: Callable[[str], bool], *, limit: int = MEMBER_LIMIT
) -> Iterator[tuple[str, bytes]]:
    """Name and content of the wanted members, in the archive's order; links are an error."""
    path = regular_file(source)
    left = TOTAL_LIMIT
    with reading(path, "a tar archive"), tarfile.open(path) as archive:
        for member in archive:
            if not wanted(member.name):
                continue
            check_name(path, member.name)
            if not member.isreg():
                raise FileFormatError(f"{path}: member {member.name!r} is a link or device")
            left -= member.size
            if member.size > limit or left < 0:
                raise FileFormatError(
                    f"{path}: member {member.name!r} declares {member.size:,} bytes"
                )
            stream = archive.extractfile(member)
            content = stream.read(limit + 1) if stream else b""
            if len(content) != member.size:
                raise FileFormatError(f"{path}: member {member.name!r} is cut off")
            yield member.name, content


def zip_member(source: str | os.PathLike[str], name: str, *, limit: int = MEMBER_LIMIT) -> bytes:
    """The content of one member of a zip archive."""
    path = regular_file(source)
    with reading(path, "a zip archive"), zipfile.ZipFile(path) as archive:
        if name not in archive.namelist():
            raise FileFormatError(f"{path} has no member {name!r}")
        check_name(path, name)
        info = archive.getinfo(name)
        if info.file_size > min(limit, MAX_DEFLATE * info.compress_size + 1024):
            raise FileFormatError(f"{path}: member {name!r} declares {info.file_size:,} bytes")
        with archive.open(info) as stream:
            content = stream.read(limit + 1)
        if len(content) != info.file_size:
            raise FileFormatError(f"{path}: member {name!r} isn't of its declared size")
        return content
