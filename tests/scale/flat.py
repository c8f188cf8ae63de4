"""Run by a test in a process of its own: fit and embed rows on disk, and print the peak memory.

For each kind of file a small one first, which loads what is needed, then one four times as large.
"""

import json
import os
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from torch import nn

from selfview import SelfView
from selfview.data import guard, read
from selfview.neighbours import search
from selfview.rows import base, on_disk, projection

FEATURES = 200
SMALL, LARGE = 16_000, 64_000  # 13 MB and 51 MB


def peak():
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found.group(1)) / 1024


def pieces(n):
    rng = np.random.default_rng(0)
    for _ in range(n // SMALL):
        yield rng.random((SMALL, FEATURES), dtype=np.float32)


def write_npy(path, n):
    with path.open("wb") as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, FEATURES)}
        np.lib.format.write_array_header_1_0(stream, header)
        for piece in pieces(n):
            piece.tofile(stream)


def write_csr(path, n):
    """Every entry stored, piece by piece into an archive."""
    import zipfile

    def member(name, dtype, shape, parts):
        with archive.open(f"{name}.npy", "w") as stream:
            header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(stream, header)
            for part in parts:
                stream.write(np.asarray(part, dtype).tobytes())

    with zipfile.ZipFile(path, "w") as archive:
        columns = np.tile(np.arange(FEATURES, dtype=np.int32), SMALL)
        member("data", "<f4", (n * FEATURES,), pieces(n))
        member("indices", "<i4", (n * FEATURES,), (columns for _ in pieces(n)))
        member("indptr", "<i4", (n + 1,), [np.arange(0, n * FEATURES + 1, FEATURES)])
        member("shape", "<i8", (2,), [[n, FEATURES]])


def write_parquet(path, n):
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"f{i}" for i in range(FEATURES)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for piece in pieces(n):
            writer.write_table(pa.table(dict(zip(names, piece.T, strict=True)), schema))


def write_imzml(path, n):
    """An eighth of the rows, eight times as long: it is the number of spectra that takes time."""
    from pyimzml.ImzMLWriter import ImzMLWriter

    mz = np.linspace(51, 999, 8 * FEATURES)
    with ImzMLWriter(str(path), mode="continuous", intensity_dtype=np.float32) as writer:
        for i, piece in enumerate(pieces(n)):
            for j, row in enumerate(piece.reshape(-1, 8 * FEATURES)):
                writer.addSpectrum(mz, row, (j + 1, i + 1, 1))


WRITE = {
    "rows.npy": write_npy,
    "rows.npz": write_csr,
    "rows.parquet": write_parquet,
    "rows.imzML": write_imzml,
}


def use(path):
    X = read(path, bins=8 * FEATURES).X if path.suffix == ".imzML" else read(path).X
    assert isinstance(X.data if sp.issparse(X) else X, np.memmap)
    model = SelfView(encoder=nn.Linear(X.shape[1], 4), n_prototypes=8, views="none", verbose=0)
    model.set_params(epochs=1, random_state=0, sinkhorn_iterations=1, temperature=0.5)
    Z = model.fit(X).transform(X)
    assert Z.shape == (X.shape[0], 4)
    assert np.isfinite(Z).all()


def main(folder):
    warnings.simplefilter("ignore")
    on_disk.BUFFER_BYTES, on_disk.BLOCK_BYTES = 1 << 21, 1 << 16
    projection.CACHED_ENTRIES = projection.SAMPLE_ENTRIES = 1 << 19
    search.EXACT_ROWS = 1000  # the blocks of an exact search would hide what grows
    guard.IN_MEMORY = base.CHUNK_BYTES = guard.BLOCK = 1 << 20
    files = {(name, n): folder / f"{n}-{name}" for name in WRITE for n in (SMALL, LARGE)}
    writer = os.fork()  # so that the memory of writing is not this process's
    if writer == 0:
        for (name, n), path in files.items():
            WRITE[name](path, n)
        os._exit(0)
    assert os.waitpid(writer, 0)[1] == 0
    grown = {}
    for (name, n), path in files.items():
        before = peak()
        use(path)
        grown[f"{name} {n}"] = peak() - before
    print(json.dumps(grown))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
