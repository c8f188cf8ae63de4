"""Hostile files: no pickles, nothing outside an archive, no allocation that a header asks for."""

import gzip
import io
import os
import pickle
import resource
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import samples

from selfview import InputError
from selfview.data import load_preparation, read
from selfview.data.guard import tar_members, zip_member
from selfview.errors import FileFormatError, SelfViewError


@pytest.fixture(autouse=True)
def _little_memory() -> Iterator[None]:
    """An allocation of many gigabytes fails the test instead of the machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as stream:
        now = int(stream.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 3 * 2**30, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("/tmp/selfview-was-here",)


def npy_header(shape: tuple[int, ...], descr: str = "<f4") -> bytes:
    stream = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def test_pickled_arrays_are_refused_unopened(tmp_path: Path) -> None:
    evil = np.empty(1, object)
    evil[0] = Evil()
    np.save(tmp_path / "evil.npy", evil, allow_pickle=True)
    np.savez(tmp_path / "evil.npz", X=evil)
    (tmp_path / "pickle.npy").write_bytes(pickle.dumps(Evil()))
    for name in ("evil.npy", "evil.npz", "pickle.npy"):
        with pytest.raises(FileFormatError, match=name):
            read(tmp_path / name)
    assert not Path("/tmp/selfview-was-here").exists()


@pytest.mark.parametrize("shape", [(10**12, 100), (2**62, 4), (2**64, 2**64), (-5, 3), (0, 5)])
def test_an_npy_that_declares_terabytes_is_an_error(shape: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy_header(shape) + b"\0" * 1000)
    with pytest.raises(SelfViewError, match=r"a\.npy"):
        read(tmp_path / "a.npy")


@pytest.mark.parametrize("lie", [False, True])
def test_an_npz_that_declares_terabytes_is_an_error(lie: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", npy_header((10**9, 1000)) + b"\0" * 1000)
    if lie:  # the archive's directory claims the size too
        content = path.read_bytes()
        size = struct.pack("<I", 1128)
        assert content.count(size) == 4
        path.write_bytes(content.replace(size, b"\xfe\xff\xff\xff"))
    with pytest.raises(FileFormatError, match=r"a\.npz"):
        read(path)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape", [(2**32 - 1,) * 3, (60_000, 28_000, 28_000), (10, 28, 29)])
def test_an_idx_that_declares_terabytes_is_an_error(
    shape: tuple[int, ...], packed: bool, tmp_path: Path
) -> None:
    content = struct.pack(">4B3I", 0, 0, 8, 3, *shape) + b"\0" * 28 * 28 * 10
    path = tmp_path / "images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(FileFormatError, match=r"images-idx3-ubyte\.gz declares"):
        read(path)


def test_more_idx_values_than_declared_are_an_error(tmp_path: Path) -> None:
    content = struct.pack(">4B3I", 0, 0, 8, 3, 1, 2, 2) + b"\0" * 100
    (tmp_path / "a-ubyte.gz").write_bytes(gzip.compress(content))
    with pytest.raises(FileFormatError, match="holds more"):
        read(tmp_path / "a-ubyte.gz")


def test_a_gzip_bomb_stops_at_the_declared_size(tmp_path: Path) -> None:
    path = tmp_path / "bomb-idx3-ubyte.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(struct.pack(">4B3I", 0, 0, 8, 3, 4, 2, 2))
        for _ in range(64):
            stream.write(b"\0" * 2**24)  # 1 GiB
    with pytest.raises(FileFormatError, match="holds more"):
        read(path)


def test_a_matrix_market_file_that_declares_terabytes_is_an_error(tmp_path: Path) -> None:
    banner = "%%MatrixMarket matrix coordinate real general\n"
    for sizes in ("9999999999 99999999999 2", "5 5 99999999999", "99999999999999 1 1"):
        (tmp_path / "a.mtx").write_text(f"{banner}{sizes}\n1 1 1\n2 2 1\n")
        with pytest.raises(FileFormatError, match=r"a\.mtx"):
            read(tmp_path / "a.mtx")


def test_a_png_that_declares_gigapixels_is_an_error(tmp_path: Path) -> None:
    content = bytearray(samples.write_image(tmp_path / "a.png").read_bytes())
    content[16:24] = struct.pack(">2I", 60_000, 60_000)
    import zlib

    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(FileFormatError, match="60000"):
        read(tmp_path / "a.png")


def test_a_wav_that_declares_gigabytes_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = samples.write_wav(tmp_path / "a.wav")
    whole = read(path).X
    content = bytearray(path.read_bytes())
    content[40:44] = b"\xff\xff\xff\x7f"
    path.write_bytes(content)
    np.testing.assert_array_equal(read(path).X, whole)


@pytest.mark.parametrize(
    "name", ["../evil.txt", "/etc/evil.txt", "a/../../evil.txt", "..\\evil.txt"]
)
def test_a_member_that_points_outside_is_refused(name: str, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo(name)
        info.size = 3
        archive.addfile(info, io.BytesIO(b"abc"))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        zipped.writestr(name, "abc")
    with pytest.raises(FileFormatError, match="points outside"):
        list(tar_members(tmp_path / "a.tar", lambda _: True))
    with pytest.raises(FileFormatError, match="points outside"):
        zip_member(tmp_path / "a.zip", zipfile.ZipFile(tmp_path / "a.zip").namelist()[0])


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_an_archive_are_refused(kind: bytes, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("link")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(FileFormatError, match="link or device"):
        list(tar_members(tmp_path / "a.tar", lambda _: True))


def test_a_member_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="declares"):
        list(tar_members(samples.write_tar(tmp_path / "a.tar"), lambda _: True, limit=2))


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".wav", ".png", ".jsonl", ".imzML"])
def test_odd_files_give_our_errors(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    with pytest.raises(InputError, match="no such file"):
        read(path)
    path.write_bytes(b"")
    with pytest.raises(SelfViewError, match="empty"):
        read(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match=r"folder|holds no"):
        read(path)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(SelfViewError, match="not an ordinary file"):
        read(path)
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="no such file"):
        read(path)
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(InputError, match="can't be read"):
        read(path)


def test_an_unreadable_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = samples.write_npy(tmp_path / "a.npy")
    monkeypatch.setattr(os, "access", lambda *_: False)  # the superuser can read everything
    with pytest.raises(InputError, match="permission denied"):
        read(path)


def test_names_that_no_file_can_have_are_said() -> None:
    for name in ("nul\0byte.npy", "x" * 5000 + ".npy", "", None, 5):
        with pytest.raises(InputError):
            read(name)  # type: ignore[arg-type]


def test_an_entity_bomb_in_imzml_is_an_error(tmp_path: Path) -> None:
    path = samples.write_imzml(tmp_path / "a.imzML")
    text = path.read_text(encoding="iso-8859-1")
    entities = '<!ENTITY a0 "lollollol">' + "".join(
        f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12)
    )
    head, _, rest = text.partition("?>")
    bomb = f"{head}?><!DOCTYPE mzML [{entities}]>{rest}".replace(
        "<fileContent>", "<fileContent>&a11;"
    )
    path.write_text(bomb, encoding="iso-8859-1")
    with pytest.raises(FileFormatError, match=r"a\.imzML"):
        read(path)


def test_a_hostile_preparation_is_an_error(tmp_path: Path) -> None:
    how = read(samples.write_jsonl(tmp_path / "a.jsonl")).preparation
    assert how is not None
    how.save(tmp_path)
    (tmp_path / "preparation.safetensors").write_bytes(struct.pack("<Q", 2**60) + b"{}")
    with pytest.raises(SelfViewError, match="preparation"):
        load_preparation(tmp_path)
    (tmp_path / "preparation.json").write_text("[" * 100_000)
    with pytest.raises(SelfViewError, match="preparation"):
        load_preparation(tmp_path)
