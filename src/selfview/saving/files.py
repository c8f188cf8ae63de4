"""Atomic writes, and folders that one owner at a time may write to."""

import contextlib
import errno
import io
import itertools
import json
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock, Timeout

from selfview.errors import CheckpointError, FileFormatError

LOCK = ".lock"
ATTEMPTS = 1000  # to take a lock whose owner is just leaving
TEMPORARY = ".selfview.tmp"  # how the names of half-written files end
UNSUPPORTED = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL}
REMEDIES = {
    errno.ENOSPC: "Free some space there, or name another folder",
    errno.EDQUOT: "Free some space there, or name another folder",
    errno.EFBIG: "Raise the limit of a file's size (ulimit -f), or name another folder",
    errno.ENAMETOOLONG: "Name a folder with a shorter name",
    errno.ENOTDIR: "A file is in the way: name another folder",
    errno.EEXIST: "A file is in the way: name another folder",
}


def read_object(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileFormatError(f"{path} can't be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise FileFormatError(f"{path} is damaged: it holds no object")
    return content


def write_object(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that people can read; what JSON can't hold is written as its text."""
    text = json.dumps(content, indent=2, default=str, ensure_ascii=False)
    write_bytes(path, (text + "\n").encode())


def unwritable(path: Path, error: OSError) -> CheckpointError:
    """The error that says what can't be written, why, and what to do."""
    reason = error.strerror or str(error)
    remedy = REMEDIES.get(error.errno or 0, "Name a folder that can be written to")
    return CheckpointError(f"{path} can't be written: {reason}. {remedy}")


def write_bytes(path: Path, data: bytes) -> None:
    """Put `data` at `path` so that a reader, or a crash, sees all of it or nothing."""
    with atomic_write(path) as file:
        file.write(data)


def write_array(path: Path, array: Any) -> None:
    """Put an .npy file at `path`, whole or not at all."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    write_bytes(path, content.getvalue())


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which appears at `path` once all is written and on the disk.

    If that fails, what was at `path` before is still there, and a CheckpointError says what to do.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=TEMPORARY, dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise unwritable(path, error) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    # The rename itself is durable only once the folder is.
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in UNSUPPORTED:  # some file systems sync no folders
                raise
        finally:
            os.close(handle)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """A folder that is ours alone: made if need be, cleared of what a killed owner left half done.

    The system drops the lock with the process that holds it, however that ends, so there is
    nothing to clean up by hand. Threads of one process exclude each other too. If another has the
    folder, a CheckpointError says who.
    """
    made = not folder.exists()
    lock = _acquired(folder)
    try:
        for left in folder.glob(f".*{TEMPORARY}"):
            left.unlink(missing_ok=True)
        yield
    finally:
        # Removed while it is held: whoever opened it meanwhile sees that it is gone.
        (folder / LOCK).unlink(missing_ok=True)
        lock.release()
        if made:
            with contextlib.suppress(OSError):  # unless something was written
                folder.rmdir()


def _acquired(folder: Path) -> FileLock:
    """The lock of `folder`, held, with our name in its file."""
    path = folder / LOCK
    lock = FileLock(path, blocking=False)
    for attempt in itertools.count(1):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
            path.write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
            return lock
        except Timeout as error:
            raise CheckpointError(
                f"{folder} is in use by {_owner(path)}, which writes to it: wait until it has "
                "ended, or name another folder"
            ) from error
        except OSError as error:
            lock.release()
            # The owner before us may just be removing the folder.
            going = isinstance(error, FileNotFoundError | FileExistsError)
            if not going or attempt == ATTEMPTS:
                raise unwritable(folder, error) from error
    raise AssertionError


def _owner(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace").strip() or "another process"
    return "another process"
