"""What the data extra is needed for, and what works without it."""

import subprocess
import sys
from pathlib import Path

import pytest
import samples

from selfview.data import read
from selfview.errors import MissingDependencyError


@pytest.mark.parametrize(
    ("write", "name", "package"),
    [
        (samples.write_wav, "a.wav", "soundfile"),
        (samples.write_image, "a.png", "PIL"),
        (samples.write_parquet, "a.parquet", "pyarrow"),
        (samples.write_imzml, "a.imzML", "pyimzml"),
        (samples.write_h5, "a.h5", "h5py"),
        (samples.write_xlsx, "a.xlsx", "openpyxl"),
    ],
)
def test_a_missing_package_names_the_command_that_installs_it(
    write: object, name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / name)  # type: ignore[operator]
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'selfview\[data\]'"):
        read(path)


def test_a_zarr_store_needs_the_extra_of_anndata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = samples.write_zarr(tmp_path / "a.zarr")
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'selfview\[anndata\]'"):
        read(path)


def test_digits_and_arrays_need_none_of_the_extra(tmp_path: Path) -> None:
    samples.write_npy(tmp_path / "a.npy")
    samples.write_csv(tmp_path / "a.csv")
    code = f"""
import sys
for name in ("pooch", "requests", "pyarrow", "PIL", "pyimzml", "soundfile", "pandas"):
    sys.modules[name] = None
import selfview
from selfview.data import read
assert selfview.load_dataset("digits").X.shape == (1797, 64)
assert read({str(tmp_path / "a.npy")!r}).X.shape == (6, 4)
assert read({str(tmp_path / "a.csv")!r}, id="name", label="kind").X.shape == (6, 2)
assert "torch" not in sys.modules, "data doesn't need torch"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_command_line_starts_without_loading_data() -> None:
    code = "import sys, selfview.cli; assert 'numpy' not in sys.modules, 'numpy'"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
