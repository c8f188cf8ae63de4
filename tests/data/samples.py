"""Small real files of every kind, written by the libraries that own the formats."""

import gzip
import io
import json
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

rng = np.random.default_rng(0)
ROWS = rng.random((6, 4), dtype=np.float32)


def idx_bytes(array: np.ndarray) -> bytes:
    """An IDX file of bytes, as its specification lays it out."""
    head = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def write_idx(path: Path) -> Path:
    path.write_bytes(gzip.compress(idx_bytes(rng.integers(0, 256, (5, 7, 6))), mtime=0))
    return path


def write_npy(path: Path) -> Path:
    np.save(path, ROWS)
    return path


def write_npz(path: Path) -> Path:
    np.savez_compressed(path, X=ROWS, y=np.arange(6))
    return path


def write_csr(path: Path) -> Path:
    from scipy.sparse import random, save_npz

    save_npz(path, random(9, 7, 0.3, "csr", dtype=np.float32, random_state=0))
    return path


def write_mtx(path: Path) -> Path:
    from scipy.io import mmwrite
    from scipy.sparse import random

    mmwrite(path, random(9, 7, 0.3, "coo", random_state=0))
    return path


def write_csv(path: Path) -> Path:
    lines = ["name,a,b,kind"] + [f"r{i},{i},{i / 3},{'xy'[i % 2]}" for i in range(6)]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_parquet(path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"a": ROWS[:, 0], "b": ROWS[:, 1].astype(np.float64), "n": np.arange(6)}
    pq.write_table(pa.table(columns), path)
    return path


def mixed_frame() -> Any:
    import pandas as pd

    n = 30
    return pd.DataFrame({
        "name": [f"r{i}" for i in range(n)],
        "x": [None if i % 7 == 0 else i * 1.7 for i in range(n)],
        "k": [None if i % 11 == 0 else "abc"[i % 3] for i in range(n)],
        "yes": [i % 2 == 0 for i in range(n)],
        "when": [f"2024-0{1 + i % 9}-1{i % 9}" for i in range(n)],
        "same": ["s"] * n,
    })  # fmt: skip


def write_mixed_csv(path: Path) -> Path:
    mixed_frame().to_csv(path, index=False)
    return path


def write_mixed_parquet(path: Path) -> Path:
    import pandas as pd

    frame = mixed_frame()
    frame["when"] = pd.to_datetime(frame["when"])
    frame.to_parquet(path, index=False)
    return path


def write_text_csv(path: Path) -> Path:
    path.write_text(
        "id,text\n" + "".join(f"{i},the {['cat', 'dog', 'bird'][i % 3]} sat\n" for i in range(9))
    )
    return path


def write_lines(path: Path) -> Path:
    path.write_text("the cat sat on mats\ndogs chase cats daily\n\nbirds sing\nmats and dogs\n")
    return path


def write_vector_parquet(path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"v": ROWS.tolist(), "n": np.arange(len(ROWS))}), path)
    return path


def write_vector_jsonl(path: Path) -> Path:
    path.write_text("".join(json.dumps({"v": row}) + "\n" for row in ROWS.tolist()))
    return path


def write_table_jsonl(path: Path) -> Path:
    lines = [{"a": row[0], "b": row[1], "c": f"k{i % 2}"} for i, row in enumerate(ROWS.tolist())]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def write_jsonl(path: Path) -> Path:
    texts = ["the cat sat on mats", "dogs chase cats daily", "birds sing", "mats and dogs"]
    path.write_text(
        "".join(json.dumps({"text": t, "kind": i % 2}) + "\n" for i, t in enumerate(texts))
    )
    return path


def write_wav(path: Path, *, seconds: float = 0.3, rate: int = 8000) -> Path:
    from scipy.io import wavfile

    t = np.arange(int(seconds * rate)) / rate
    wavfile.write(path, rate, (8000 * np.sin(2 * np.pi * 700 * t * (1 + t))).astype(np.int16))
    return path


def write_image(path: Path, *, size: tuple[int, int] = (9, 7), colour: bool = True) -> Path:
    from PIL import Image

    shape = (size[1], size[0], 3) if colour else (size[1], size[0])
    Image.fromarray(rng.integers(0, 256, shape).astype(np.uint8)).save(path)
    return path


def write_imzml(path: Path, *, mode: str = "processed") -> Path:
    from pyimzml.ImzMLWriter import ImzMLWriter

    generator = np.random.default_rng(1)
    axis = np.sort(generator.uniform(60, 990, 40))
    with ImzMLWriter(str(path.with_suffix("")), mode=mode) as writer:
        for x in range(1, 4):
            for y in range(1, 3):
                mz = axis if mode == "continuous" else np.sort(generator.uniform(40, 1010, 30))
                writer.addSpectrum(mz, generator.random(mz.size) * 100, (x, y, 1))
    return path


def write_tar(path: Path) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (("a/1.txt", b"one"), ("a/2.txt", b"two")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def write_h5(path: Path) -> Path:
    import h5py

    with h5py.File(path, "w", track_order=False) as file:
        file["tables/rows"] = ROWS
        file["tables/kind"] = np.arange(6) % 2
        file["names"] = [f"r{i}" for i in range(6)]
    return path


def write_zarr(path: Path) -> Path:
    import zarr

    group = zarr.open_group(path, mode="w")
    group.create_array("rows", data=ROWS, chunks=(4, 4))
    group.create_array("kind", data=np.arange(6) % 2)
    return path


def cells(*, sparse: bool = True) -> object:
    """A small AnnData with all that a single-cell file has."""
    import anndata
    import pandas as pd
    from scipy.sparse import random

    counts = random(9, 5, 0.5, "csr", dtype=np.float32, random_state=0)
    obs = pd.DataFrame(
        {
            "type": pd.Categorical([*"TBTNBTNT", None]),
            "donor": [f"d{i % 3}" for i in range(9)],
            "depth": np.arange(9.0),
        },
        index=[f"cell{i}" for i in range(9)],
    )
    data = anndata.AnnData(
        counts if sparse else counts.toarray(),
        obs=obs,
        var=pd.DataFrame(index=[f"gene{i}" for i in range(5)]),
    )
    data.layers["twice"] = 2 * data.X
    data.obsm["X_pca"] = counts.toarray()[:, :3] + 1
    return data


def write_h5ad(path: Path, *, sparse: bool = True) -> Path:
    cells(sparse=sparse).write_h5ad(path)  # type: ignore[attr-defined]
    return path


def write_xlsx(path: Path) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["name", "a", "b", "kind"])
    for i in range(6):
        book.active.append([f"r{i}", i, i / 3, "xy"[i % 2]])
    book.save(path)
    return path


def write_pt(path: Path) -> Path:
    import torch

    torch.save({"rows": torch.from_numpy(ROWS), "kind": torch.arange(6) % 2}, path)
    return path


def write_safetensors(path: Path) -> Path:
    from safetensors.numpy import save_file

    save_file({"rows": ROWS, "kind": np.arange(6) % 2}, path)
    return path


def write_feather(path: Path) -> Path:
    """As pandas writes it, packed, with a column of categories."""
    frame = mixed_frame()
    frame.to_feather(path, compression="zstd")  # type: ignore[attr-defined]
    return path


def write_csv_gz(path: Path) -> Path:
    path.write_bytes(gzip.compress(write_mixed_csv(path).read_bytes(), mtime=0))
    return path


def write_json(path: Path) -> Path:
    mixed_frame().to_json(path, orient="records")  # type: ignore[attr-defined]
    return path
