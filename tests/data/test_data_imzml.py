"""imzML: binned as numpy's histogram does, both modes, out of core, damaged files named."""

import os
import tarfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import samples
from pyimzml.ImzMLParser import ImzMLParser
from pyimzml.ImzMLWriter import ImzMLWriter

from selfview import InputError
from selfview.data import guard, read
from selfview.errors import FileFormatError


def by_hand(path: Path, mz_range: tuple[float, float], bins: int) -> np.ndarray:
    """What numpy and pyimzML make of the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ImzMLParser(str(path)) as parser:
            rows = []
            for i in range(len(parser.coordinates)):
                mz, intensity = parser.getspectrum(i)
                rows.append(np.histogram(mz, bins, mz_range, weights=intensity)[0])
    X = np.array(rows)
    return X / np.where(X.max(axis=0) > 0, X.max(axis=0), 1)


@pytest.mark.parametrize("mode", ["processed", "continuous"])
def test_bins_are_those_of_numpys_histogram(mode: str, tmp_path: Path) -> None:
    path = samples.write_imzml(tmp_path / "a.imzML", mode=mode)
    dataset = read(path, mz_range=(50, 1000), bins=64)
    np.testing.assert_allclose(dataset.X, by_hand(path, (50, 1000), 64), rtol=1e-5)
    assert dataset.coordinates is not None
    assert dataset.coordinates.tolist() == [[x, y] for x in (1, 2, 3) for y in (1, 2)]
    assert read(path).X.shape == (6, 1024)


@pytest.mark.parametrize("name", ["Example_Continuous", "Example_Processed"])
def test_the_consortiums_examples_are_read(name: str, real: Path, tmp_path: Path) -> None:
    with tarfile.open(real / "msi" / "imzml_3x3_examples.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    dataset = read(tmp_path / f"{name}.imzML", mz_range=(100, 800), bins=128)
    assert dataset.messages == ()
    expected = by_hand(tmp_path / f"{name}.imzML", (100, 800), 128)
    np.testing.assert_allclose(dataset.X, expected, rtol=1e-5, atol=1e-7)
    assert dataset.coordinates is not None
    assert sorted(map(tuple, dataset.coordinates.tolist())) == [
        (x, y) for x in (1, 2, 3) for y in (1, 2, 3)
    ]


def test_new_files_are_divided_by_the_maxima_of_the_fit(tmp_path: Path) -> None:
    fitted = read(samples.write_imzml(tmp_path / "a.imzML"), bins=32)
    with ImzMLWriter(str(tmp_path / "new"), mode="processed") as writer:
        writer.addSpectrum(np.array([500.0]), np.array([1.0]), (1, 1, 1))
    assert fitted.preparation is not None
    row = np.asarray(fitted.preparation.read(tmp_path / "new.imzML").X[0])
    bin_ = int((500 - 50) / 950 * 32)
    assert row[bin_] == pytest.approx(1 / fitted.preparation.maxima[bin_])
    assert np.count_nonzero(row) == 1


def test_peaks_of_a_new_image_are_found_within_the_tolerance(real: Path, tmp_path: Path) -> None:
    from selfview import load_dataset

    how = load_dataset("msi").preparation
    assert how is not None
    first, second = how.mz[3], how.mz[40]
    with ImzMLWriter(str(tmp_path / "new"), mode="processed") as writer:
        mz = np.array([first * (1 + 4e-6), first * (1 + 4e-5), second])
        writer.addSpectrum(mz, np.array([10.0, 99.0, 20.0]), (1, 1, 1))
    row = np.asarray(how.read(tmp_path / "new.imzML").X[0])
    assert row[3] == pytest.approx(10 / how.maxima[3])
    assert row[40] == pytest.approx(20 / how.maxima[40])
    assert np.count_nonzero(row) == 2


def test_what_is_large_is_mapped_and_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = samples.write_imzml(tmp_path / "a.imzML")
    small = read(path)
    monkeypatch.setenv("SELFVIEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("selfview.data.guard.IN_MEMORY", 0)
    monkeypatch.setattr(guard, "BLOCK", 1)
    large = read(path)
    assert isinstance(large.X, np.memmap)
    np.testing.assert_array_equal(large.X, small.X)


def test_binned_spectra_are_found_again_and_damage_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SELFVIEW_CACHE", str(tmp_path / "cache"))
    path = samples.write_imzml(tmp_path / "a.imzML")
    first = read(path)
    (kept,) = (tmp_path / "cache" / "binned").iterdir()
    written = (kept / "X.npy").stat()
    np.testing.assert_array_equal(read(path).X, first.X)
    assert os.path.samestat((kept / "X.npy").stat(), written)
    (kept / "X.npy").write_bytes((kept / "X.npy").read_bytes()[:-9])
    np.testing.assert_array_equal(read(path).X, first.X)
    read(path, bins=7)
    assert len(list((tmp_path / "cache" / "binned").iterdir())) == 2


def test_a_cache_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = samples.write_imzml(tmp_path / "a.imzML")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SELFVIEW_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"cache folder .*set SELFVIEW_CACHE"):
        read(path)


def test_a_spectrum_that_points_outside_is_named_or_left_out(tmp_path: Path) -> None:
    path = samples.write_imzml(tmp_path / "a.imzML")
    ibd = path.with_suffix(".ibd")
    ibd.write_bytes(ibd.read_bytes()[:-40])
    with pytest.raises(FileFormatError, match=r"1 of 6.*spectrum 5 \(x 3, y 2\): points outside"):
        read(path)
    dataset = read(path, skip_bad=True)
    assert dataset.X.shape == (5, 1024)
    assert dataset.coordinates is not None
    assert len(dataset.coordinates) == 5


def test_a_missing_or_foreign_ibd_is_said(tmp_path: Path) -> None:
    path = samples.write_imzml(tmp_path / "a.imzML")
    other = samples.write_imzml(tmp_path / "b.imzML")
    path.with_suffix(".ibd").write_bytes(other.with_suffix(".ibd").read_bytes())
    assert "different identifiers" in read(path).messages[0]
    path.with_suffix(".ibd").unlink()
    with pytest.raises(InputError, match=r"needs its binary file a\.ibd"):
        read(path)


@pytest.mark.parametrize(
    "wrong", [{"mz_range": (500, 100)}, {"bins": 0}, {"mz_range": (0, np.inf)}]
)
def test_a_wrong_range_is_refused(wrong: dict[str, object], tmp_path: Path) -> None:
    path = samples.write_imzml(tmp_path / "a.imzML")
    with pytest.raises(InputError, match=r"mz_range must|bins must"):
        read(path, **wrong)  # type: ignore[arg-type]
