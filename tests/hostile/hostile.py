"""What the tests of hostile files share: a small model on disk, and ways to lie about it."""

import json
import os
import struct
from pathlib import Path

import numpy as np

FIXTURES = Path(__file__).parents[1] / "fixtures"
FIXTURE = FIXTURES / "model-v1"


def encoder():
    """The architecture of the fixture's own encoder."""
    from torch import nn

    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, sentinel):
        self.sentinel = str(sentinel)

    def __reduce__(self):
        return os.mkdir, (self.sentinel,)


def split(data):
    """Header and body of a safetensors file."""
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def join(header, body):
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", len(text)) + text + body


def described(path, change):
    """Rewrite the description in a model file by `change`, which may also give it whole as text."""
    header, body = split(path.read_bytes())
    meta = json.loads(header["__metadata__"]["meta"])
    changed = change(meta)
    text = changed if isinstance(changed, str) else json.dumps(meta)
    header["__metadata__"]["meta"] = text
    path.write_bytes(join(header, body))


def objects(sentinel):
    array = np.empty(2, object)
    array[0] = Evil(sentinel)
    return array
