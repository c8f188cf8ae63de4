"""Where a dataset's files are: SELFVIEW_DATA, else their official home. The only network code."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from selfview.data.cache import cache_folder
from selfview.data.guard import logger, need
from selfview.errors import DownloadError, InputError

_TIMEOUT = 30  # seconds without a byte


@dataclass(frozen=True)
class RemoteFile:
    """A file's place under SELFVIEW_DATA, its official home and checksum.

    ``checksum`` is ``algorithm:hex`` as its publisher gives it, or None where none is published:
    then the file is pinned to the checksum of its first download.
    """

    name: str
    url: str
    checksum: str | None


@dataclass(frozen=True)
class Found:
    """Files of one dataset and where they were found."""

    paths: tuple[Path, ...]
    source: str


def local_folder() -> Path | None:
    """The folder of SELFVIEW_DATA, or None if the variable isn't set."""
    value = os.environ.get("SELFVIEW_DATA")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise InputError(f"SELFVIEW_DATA names {folder}, which is no folder")
    return folder


def find_local(names: tuple[str, ...]) -> Found | None:
    """All these files under SELFVIEW_DATA, or None if one is missing."""
    folder = local_folder()
    if folder is None or not all((folder / name).is_file() for name in names):
        return None
    return Found(tuple(folder / name for name in names), "SELFVIEW_DATA")


def find_remote(files: tuple[RemoteFile, ...]) -> Found:
    """These files in the download folder, fetched now if they aren't there."""
    return Found(tuple(fetch(file) for file in files), "download")


def downloads() -> Path:
    """The folder that downloads go to."""
    return cache_folder() / "downloads"


def fetch(file: RemoteFile) -> Path:
    """A verified local copy of the file; an interrupted download goes on where it stopped."""
    pooch = need("pooch")
    target = downloads() / file.name
    if target.is_file() and _verified(pooch, target, file):
        return target
    logger.info("downloading %s", file.url)
    try:
        pooch.get_logger().setLevel("WARNING")
        pooch.retrieve(
            file.url,
            known_hash=file.checksum,
            fname=target.name,
            path=target.parent,
            downloader=_Resuming(target.with_name(target.name + ".part")),
        )
    except ValueError as error:  # pooch's word for a wrong checksum; it has removed the file
        raise DownloadError(
            f"{file.url} isn't the file its publisher describes (wrong checksum); nothing of it "
            "was opened. Try again later"
        ) from error
    except (OSError, RuntimeError) as error:
        raise DownloadError(
            f"can't download {file.url}: {_short(error)}. Fetch it by other means and put it at "
            f"{target}, or set SELFVIEW_DATA to a folder that holds {file.name}"
        ) from error
    if file.checksum is None:
        _pin(target).write_text(pooch.file_hash(str(target), alg="sha256"), encoding="ascii")
        logger.warning(
            "%s: its publisher gives no checksum; this copy is pinned from now on", file.url
        )
    return target


def _verified(pooch: Any, target: Path, file: RemoteFile) -> bool:
    expected = file.checksum
    if expected is None and _pin(target).is_file():
        expected = "sha256:" + _pin(target).read_text(encoding="ascii").strip()
    if expected is None:
        return True  # put there by hand, and there is nothing to compare with
    algorithm, _, value = expected.partition(":")
    if pooch.file_hash(str(target), alg=algorithm) == value:
        return True
    raise DownloadError(
        f"{target} isn't the file its publisher describes: its {algorithm} is not {value}. "
        f"Remove it, and it is fetched again from {file.url}"
    )


def _pin(target: Path) -> Path:
    return target.with_name(target.name + ".sha256")


def _short(error: BaseException) -> str:
    if type(error).__name__ in ("ConnectionError", "ConnectTimeout"):  # of requests, at length
        return "no connection"
    text = " ".join(str(error).split())
    return (text if len(text) <= 160 else text[:160] + " ...") or type(error).__name__


class _Resuming:
    """A pooch downloader that keeps what came in a .part file and asks only for the rest."""

    def __init__(self, part: Path) -> None:
        self.part = part

    def __call__(self, url: str, output_file: Any, _pooch: Any) -> None:
        requests = need("requests")
        self.part.parent.mkdir(parents=True, exist_ok=True)
        with self._own_part() as stream:
            have = stream.tell()
            headers = {"Range": f"bytes={have}-"} if have else {}
            with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as response:
                if response.status_code != 416:  # 416: nothing is left to send
                    response.raise_for_status()
                    if response.status_code != 206:  # the server starts over, so do we
                        stream.truncate(0)
                        have = 0
                    _receive(response, stream, have, self.part.stem)
            os.replace(stream.name, output_file)

    def _own_part(self) -> BinaryIO:
        """The .part file, or one of our own while another process writes to that."""
        stream = self.part.open("ab")
        try:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such locks on Windows
            pass
        except OSError:
            stream.close()
            return self.part.with_suffix(f".{os.getpid()}.part").open("wb")
        return stream


def _receive(response: Any, stream: BinaryIO, have: int, name: str) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    length = response.headers.get("Content-Length")
    total = have + int(length) if length and length.isdigit() else None
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(name, total=total, completed=have)
        for block in response.iter_content(2**16):
            stream.write(block)
            progress.advance(task, len(block))
    stream.flush()
    if total is not None and os.fstat(stream.fileno()).st_size < total:
        raise OSError("the connection ended early; run the same command to go on")
