"""Leave a group within which PyTorch's compiler was imported and a fit was broken off, and name the
threads that are left.

torchrun ... leaving.py FOLDER
"""

import importlib
import os
import sys
from pathlib import Path

import cases

from selfview.distributed import launched


class BrokenOffError(Exception):
    """As a user's callback may raise."""


def break_off(_):
    raise BrokenOffError


kept = None
with launched() as group:
    importlib.import_module("torch._dynamo")  # as loading a model does
    group.gathered(0)
    try:
        cases.smooth_model(2, batch_size=20, on_epoch=break_off).fit(cases.rows(40))
    except Exception as error:
        kept = error  # with the frames of the fit, and what they hold
assert kept is not None
names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
Path(sys.argv[1], os.environ["RANK"]).write_text(" ".join(names))
