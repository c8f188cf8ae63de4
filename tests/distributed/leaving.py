"""Leave a group within which PyTorch's compiler was imported, and name the threads that are left.

torchrun ... leaving.py FOLDER
"""

import importlib
import os
import sys
from pathlib import Path

from selfview.distributed import launched

with launched() as group:
    importlib.import_module("torch._dynamo")  # as loading a model does
    group.gathered(0)
names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
Path(sys.argv[1], os.environ["RANK"]).write_text(" ".join(names))
