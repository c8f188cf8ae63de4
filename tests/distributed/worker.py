"""What every process does under torchrun: named cases in a process group of its own.

Usage: torchrun ... worker.py FOLDER CASE... ; each case leaves FOLDER/CASE-RANK.npz.
"""

import sys
import warnings
from pathlib import Path

import cases
import numpy as np
import torch
import torch.distributed as dist

if __name__ == "__main__":
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    dist.init_process_group("gloo")
    for name in sys.argv[2:]:
        result = getattr(cases, name)()
        np.savez(folder / f"{name}-{dist.get_rank()}.npz", **result)
    dist.destroy_process_group()
