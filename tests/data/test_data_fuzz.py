"""Mutated real files: whatever a reader is given, it gives rows or one of our own errors."""

import gzip
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import samples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from selfview.data import read
from selfview.errors import SelfViewError


def _plain_idx(path: Path) -> Path:
    path.write_bytes(gzip.decompress(samples.write_idx(path).read_bytes()))
    return path


# Name of the file, who writes it, how many bytes are most worth changing, how many cases.
CASES: dict[str, tuple[Callable[[Path], Path], int, int]] = {
    "images-idx3-ubyte": (_plain_idx, 16, 350),
    "images-idx3-ubyte.gz": (samples.write_idx, 40, 200),
    "rows.npy": (samples.write_npy, 128, 350),
    "rows.npz": (samples.write_npz, 400, 250),
    "sparse.npz": (samples.write_csr, 1200, 250),
    "rows.mtx": (samples.write_mtx, 80, 150),
    "rows.csv": (samples.write_csv, 100, 150),
    "rows.parquet": (samples.write_parquet, 2000, 150),
    "mixed.csv": (samples.write_mixed_csv, 1200, 150),
    "mixed.parquet": (samples.write_mixed_parquet, 6000, 150),
    "mixed.csv.gz": (samples.write_csv_gz, 1000, 120),
    "mixed.feather": (samples.write_feather, 8000, 250),
    "mixed.json": (samples.write_json, 600, 120),
    "texts.jsonl": (samples.write_jsonl, 100, 100),
    "rows.jsonl": (samples.write_table_jsonl, 300, 100),
    "texts.csv": (samples.write_text_csv, 200, 80),
    "texts.txt": (samples.write_lines, 200, 60),
    "vectors.parquet": (samples.write_vector_parquet, 2000, 120),
    "vectors.jsonl": (samples.write_vector_jsonl, 300, 100),
    "sound.wav": (samples.write_wav, 48, 250),
    "picture.png": (samples.write_image, 60, 150),
    "picture.jpg": (samples.write_image, 400, 150),
    "picture.webp": (samples.write_image, 400, 100),
    "picture.bmp": (samples.write_image, 60, 100),
    "image.imzML": (samples.write_imzml, 20_000, 200),
    "rows.h5": (samples.write_h5, 4000, 200),
    "cells.h5ad": (samples.write_h5ad, 40_000, 100),
    "rows.xlsx": (samples.write_xlsx, 6000, 100),
    "rows.pt": (samples.write_pt, 2000, 150),
    "rows.safetensors": (samples.write_safetensors, 200, 200),
}


def test_the_suite_holds_at_least_two_thousand_cases() -> None:
    assert sum(cases for _, _, cases in CASES.values()) >= 2000


@st.composite
def mutations(draw: st.DrawFn, content: bytes, header: int) -> bytes:
    """The content with a few bytes set, cut out, put in, or its end cut off."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, min(header, len(data)) or 1))
        match draw(st.sampled_from(("set", "set", "big", "cut", "insert", "end"))):
            case "set":
                data[place : place + 1] = bytes((draw(st.integers(0, 255)),))
            case "big":
                data[place : place + 4] = draw(
                    st.sampled_from((b"\xff" * 4, b"\x7f" + b"\xff" * 3, b"9999"))
                )
            case "cut":
                del data[place : place + draw(st.integers(1, 16))]
            case "insert":
                data[place:place] = draw(st.binary(min_size=1, max_size=8))
            case "end":
                del data[draw(st.integers(0, len(data))) :]
    return bytes(data)


OPTIONS = {
    "texts.csv": {"text": "text"},
    "vectors.parquet": {"vector": "v"},
    "vectors.jsonl": {"vector": "v"},
}


def _rows_or_error(path: Path) -> tuple[Any, str]:
    try:
        return read(path, skip_bad=True, **OPTIONS.get(path.name, {})).X, ""
    except SelfViewError as error:
        return None, str(error)


@pytest.mark.parametrize("name", CASES)
def test_a_mutated_file_gives_rows_or_our_own_error(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write, header, cases = CASES[name]
    path = write(tmp_path / name)
    content = path.read_bytes()
    caplog.set_level("ERROR", logger="selfview.data")

    @settings(
        max_examples=cases * int(os.environ.get("FUZZ_TIMES", "1")),
        deadline=None,
        database=None,
        derandomize=not os.environ.get("FUZZ_RANDOM"),  # the same cases every time, or new ones
        suppress_health_check=list(HealthCheck),
    )
    @given(mutations(content, header))
    def one(mutated: bytes) -> None:
        path.write_bytes(mutated)
        rows, error = _rows_or_error(path)
        if rows is None:
            assert str(tmp_path) in error, f"names no file: {error}"
        else:
            assert rows.shape[0] > 0
            held = rows.nbytes if isinstance(rows, np.ndarray) else rows.data.nbytes
            assert held < 2**24

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=ResourceWarning)
        one()


def test_a_mutated_zarr_store_gives_rows_or_our_own_error(tmp_path: Path) -> None:
    path = samples.write_zarr(tmp_path / "rows.zarr")
    files = sorted(file for file in path.rglob("*") if file.is_file())
    kept = {file: file.read_bytes() for file in files}

    @settings(max_examples=150, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    @given(st.data())
    def one(data: st.DataObject) -> None:
        file = data.draw(st.sampled_from(files))
        file.write_bytes(data.draw(mutations(kept[file], 600)))
        try:
            rows, error = _rows_or_error(path)
            assert rows is not None or str(tmp_path) in error
        finally:
            file.write_bytes(kept[file])

    one()
