"""All that a page draws, as one text that can't be mistaken for markup: gzip in base64."""

import base64
import gzip
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selfview.paper.records import plain

# The types that a browser reads without a copy.
TYPES = {"u1": "Uint8Array", "u2": "Uint16Array", "i4": "Int32Array", "f4": "Float32Array"}
_ALIGNMENT = 8


def pack(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Facts that JSON can hold, and arrays of uint8, uint16, int32 or float32, in one text.

    Before compression: the length of a JSON head (4 bytes), the head, and the arrays' bytes, each
    starting at a multiple of 8. The head names every array's type, shape and place.

    >>> unpack(pack({"n": 2}, {"x": np.array([1, 2], np.uint8)}))
    ({'n': 2}, {'x': array([1, 2], dtype=uint8)})
    """
    table, parts, place = {}, [], 0
    for name, array in arrays.items():
        code = array.dtype.str[1:]
        if code not in TYPES:
            raise TypeError(f"{name} is of {array.dtype}, which has no typed array in a browser")
        data = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        data += bytes(-len(data) % _ALIGNMENT)
        table[name] = [TYPES[code], list(array.shape), place]
        parts.append(data)
        place += len(data)
    head = json.dumps({"facts": plain(facts), "arrays": table}, allow_nan=False).encode()
    head += b" " * (-(4 + len(head)) % _ALIGNMENT)
    return compressed(len(head).to_bytes(4, "little") + head + b"".join(parts))


def compressed(data: bytes) -> str:
    """gzip in base64, the same text for the same bytes."""
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()


def unpack(text: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `pack` packed, as the page's own script reads it."""
    data = gzip.decompress(base64.b64decode(text))
    start = 4 + int.from_bytes(data[:4], "little")
    head = json.loads(data[4:start])
    codes = {name: code for code, name in TYPES.items()}
    arrays = {
        name: np.frombuffer(data, codes[kind], math.prod(shape), start + place).reshape(shape)
        for name, (kind, shape, place) in head["arrays"].items()
    }
    return head["facts"], arrays
