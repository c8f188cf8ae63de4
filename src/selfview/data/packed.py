"""Text files, plain or packed by gzip: read as they are unpacked, and bombs are stopped."""

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from selfview.data import guard
from selfview.errors import FileFormatError

LONGEST = 2**24  # characters of a line
_RATIO = 200  # to which text may unpack: counts that are nearly all zero reach fifty


@contextmanager
def open_text(path: Path, encoding: str = "utf-8", errors: str = "strict") -> Iterator[TextIO]:
    """The text of a file, with its line ends; of one whose name ends in .gz, unpacked."""
    with open_bytes(path) as stream:
        yield io.TextIOWrapper(stream, encoding, errors, newline="")


@contextmanager
def open_bytes(path: Path) -> Iterator[Any]:
    """The bytes of a file; of one whose name ends in .gz, unpacked."""
    if path.suffix.lower() != ".gz":
        with path.open("rb") as plain:
            yield plain
        return
    with gzip.open(path) as packed:
        yield io.BufferedReader(_Unpacked(path, packed))


def lines_of(path: Path, stream: TextIO) -> Iterator[str]:
    """The lines of a text, none of which is so long that it must be a mistake."""
    while line := stream.readline(LONGEST):
        if len(line) == LONGEST:
            raise FileFormatError(f"{path} has a line of more than {LONGEST:,} characters")
        yield line


class _Unpacked(io.RawIOBase):
    """What a packed file unpacks to, as far as that is in proportion to its size."""

    def __init__(self, path: Path, packed: Any) -> None:
        self.path, self._packed = path, packed
        self._left = max(guard.IN_MEMORY, _RATIO * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = int(self._packed.readinto(buffer))
        self._left -= count
        if self._left < 0:
            raise FileFormatError(
                f"{self.path} unpacks to more than {_RATIO} times its size: if it is what you "
                "want to read, unpack it first"
            )
        return count
