"""Members of tar and zip archives, read in memory: nothing is ever extracted to a path."""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from selfview.data.guard import reading, regular_file
from selfview.errors import FileFormatError

MEMBER_LIMIT = 512 * 2**20
TOTAL_LIMIT = 4 * 2**30
_MAX_DEFLATE = 1032


def check_name(path: Path, name: str) -> None:
    """Refuse an archive with a member of this name if it points outside the archive."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or "\0" in name:
        raise FileFormatError(f"{path} holds a member that points outside it: {name!r}")


def tar_members(
    source: str | os.PathLike[str], wanted: Callable[[str], bool], *, limit: int = MEMBER_LIMIT
) -> Iterator[tuple[str, bytes]]:
    """Name and content of the wanted members, in the archive's order; links are refused."""
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
        if info.file_size > min(limit, _MAX_DEFLATE * info.compress_size + 1024):
            raise FileFormatError(f"{path}: member {name!r} declares {info.file_size:,} bytes")
        with archive.open(info) as stream:
            content = stream.read(limit + 1)
        if len(content) != info.file_size:
            raise FileFormatError(f"{path}: member {name!r} isn't of its declared size")
        return content
