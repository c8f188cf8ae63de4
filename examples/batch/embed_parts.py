"""A batch job: an exported model embeds the parts of a large set, each part in a process of Dask.

python examples/batch/embed_parts.py encoder.onnx 'part-*.npy' embedded [processes]

Parts that are embedded already are left out: a job that was stopped goes on.
"""

import glob
import os
import sys
from pathlib import Path

import dask.bag
import numpy as np
import onnxruntime

BLOCK = 65_536  # rows in memory at a time; of a part, its embedding is held whole


def embed_part(part: Path, model: str, folder: Path) -> bool:
    """Write the embedding of a part's rows under its name; False if it is there already."""
    out = folder / part.name
    if out.exists():
        return False
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the processes share the machine
    session = onnxruntime.InferenceSession(model, options)
    rows = np.load(part, mmap_mode="r")
    blocks = [
        session.run(["embedding"], {"rows": rows[start : start + BLOCK].astype(np.float32)})[0]
        for start in range(0, len(rows), BLOCK)
    ]
    unfinished = out.with_suffix(".tmp")
    with unfinished.open("wb") as file:
        np.save(file, np.concatenate(blocks))
    os.replace(unfinished, out)  # whole or not there
    return True


if __name__ == "__main__":
    model, pattern, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    processes = int(sys.argv[4]) if len(sys.argv) > 4 else os.cpu_count()
    parts = sorted(map(Path, glob.glob(pattern)))
    folder.mkdir(parents=True, exist_ok=True)
    job = dask.bag.from_sequence(parts, npartitions=len(parts)).map(embed_part, model, folder)
    done = job.compute(scheduler="processes", num_workers=processes)
    there = len(done) - sum(done)
    print(f"{sum(done)} of {len(parts)} parts embedded, {there} were there: {folder}")
