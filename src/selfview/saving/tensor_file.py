"""Named tensors and a JSON description in one safetensors file, checked before it is used.

The file is written beside its place, flushed to the disk and renamed, so that at any moment it is
the old one or the new one. Nothing is pickled.
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from selfview.errors import FileFormatError
from selfview.saving.files import write_bytes

FORMAT = 1
_MAX_HEADER = 100 << 20  # bytes; the limit of the safetensors library itself


def write_state(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Write tensors and JSON-able `meta` to one file, atomically."""
    # Clones: safetensors refuses tensors that share memory, as tied weights do.
    plain = {name: t.detach().cpu().contiguous().clone() for name, t in tensors.items()}
    header = {"format": str(FORMAT), "meta": json.dumps(meta, allow_nan=True)}
    write_bytes(path, save_tensors(plain, metadata=header))


def read_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and `meta` of a file that `write_state` made.

    FileFormatError if it is missing, cut short, damaged, of a newer format, or not of this kind.
    """
    if path.exists() and not path.is_file():  # a pipe would block, a device may never end
        raise FileFormatError(f"{path} is not an ordinary file")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{path} can't be read: {error.strerror or error}") from error
    header = _header(path, data)
    version = header.get("format", "")
    if not (version.isdecimal() and len(version) < 10) or "meta" not in header:
        raise FileFormatError(f"{path} was not written by selfview")
    if int(version) > FORMAT:
        raise FileFormatError(
            f"{path} has format {version}; this selfview reads up to {FORMAT}. Update selfview"
        )
    try:
        meta = json.loads(header["meta"])
        tensors = load_tensors(data)
    except (SafetensorError, ValueError, RecursionError, RuntimeError, KeyError) as error:
        raise FileFormatError(f"{path} is damaged: {str(error)[:300]}") from error
    if not isinstance(meta, dict):
        raise FileFormatError(f"{path} is damaged: its description is not an object")
    return tensors, meta


def _header(path: Path, data: bytes) -> dict[str, str]:
    """The `__metadata__` of a safetensors file, with every size checked before it is used."""
    if len(data) < 8:
        raise FileFormatError(f"{path} is cut short: {len(data)} bytes")
    (length,) = struct.unpack("<Q", data[:8])
    if length > min(_MAX_HEADER, len(data) - 8):
        raise FileFormatError(f"{path} is cut short or damaged: its header claims {length} bytes")
    try:
        header = json.loads(data[8 : 8 + length])
        metadata = header.get("__metadata__", {})
        if not all(isinstance(value, str) for value in metadata.values()):
            raise ValueError("its header is not of the safetensors form")
    except (ValueError, RecursionError, AttributeError) as error:
        raise FileFormatError(f"{path} is damaged: {str(error)[:300]}") from error
    return dict(metadata)


def numbers_of(row: dict[str, float]) -> dict[str, float]:
    """A dict of numbers from a file, which may hold anything."""
    for value in row.values():
        if type(value) not in (int, float) or (type(value) is int and abs(value) > 2**53):
            raise TypeError("a value is not a number, or an absurd one")
    return dict(row)
