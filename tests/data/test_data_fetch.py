"""Downloads from a server of our own: verified, resumed, and explained when there is no network."""

import hashlib
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from selfview import load_dataset
from selfview.data import homes
from selfview.data.fetch import RemoteFile, downloads, fetch
from selfview.data.named import DATASETS
from selfview.errors import DownloadError, InputError

CONTENT = bytes(range(256)) * 3000
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves CONTENT; may cut the answer off, and knows ranges unless told otherwise."""

    cut: int | None = None
    ranges = True
    asked: list[str | None]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append(wanted)
        if self.path == "/missing":
            self.send_error(404)
            return
        start = int(wanted[6:-1]) if wanted and self.server.ranges else 0
        if start >= len(CONTENT):
            self.send_response(416)
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start : self.server.cut])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("SELFVIEW_CACHE", str(tmp_path))
    server = Server(("127.0.0.1", 0), Handler)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def remote(server: Server, checksum: str | None = MD5, path: str = "file.bin") -> RemoteFile:
    return RemoteFile("some/file.bin", f"http://127.0.0.1:{server.server_port}/{path}", checksum)


def test_a_file_is_fetched_once(server: Server) -> None:
    path = fetch(remote(server))
    assert path == downloads() / "some" / "file.bin"
    assert path.read_bytes() == CONTENT
    assert fetch(remote(server)) == path
    assert len(server.asked) == 1


def test_an_interrupted_download_goes_on_where_it_stopped(server: Server) -> None:
    server.cut = 500_000
    with pytest.raises(DownloadError, match="can't download"):
        fetch(remote(server))
    have = (downloads() / "some" / "file.bin.part").stat().st_size
    assert 0 < have <= 500_000
    assert not (downloads() / "some" / "file.bin").exists()
    server.cut = None
    assert fetch(remote(server)).read_bytes() == CONTENT
    assert server.asked == [None, f"bytes={have}-"]
    assert not (downloads() / "some" / "file.bin.part").exists()


def test_a_server_without_ranges_starts_over(server: Server) -> None:
    server.cut, server.ranges = 500_000, False
    with pytest.raises(DownloadError):
        fetch(remote(server))
    server.cut = None
    assert fetch(remote(server)).read_bytes() == CONTENT


def test_a_whole_part_is_taken_as_it_is(server: Server) -> None:
    part = downloads() / "some" / "file.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT)
    assert fetch(remote(server)).read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing_behind(server: Server) -> None:
    with pytest.raises(DownloadError, match="isn't the file its publisher describes"):
        fetch(remote(server, "md5:" + "0" * 32))
    assert list((downloads() / "some").iterdir()) == []


def test_a_file_that_changed_on_disk_is_not_opened(server: Server) -> None:
    path = fetch(remote(server))
    path.write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(DownloadError, match=r"its md5 is not .*Remove it"):
        fetch(remote(server))


def test_a_file_without_published_checksum_is_pinned(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "selfview.data"):
        path = fetch(remote(server, None))
    assert "gives no checksum" in caplog.text
    path.write_bytes(b"something else")
    with pytest.raises(DownloadError, match="its sha256 is not"):
        fetch(remote(server, None))


def test_a_missing_page_names_the_address_and_the_place(server: Server) -> None:
    with pytest.raises(DownloadError) as caught:
        fetch(remote(server, path="missing"))
    assert f"http://127.0.0.1:{server.server_port}/missing" in str(caught.value)
    assert str(downloads() / "some" / "file.bin") in str(caught.value)


def test_a_file_that_another_process_fetches_is_fetched_apart(server: Server) -> None:
    fcntl = pytest.importorskip("fcntl")
    part = downloads() / "some" / "file.bin.part"
    part.parent.mkdir(parents=True)
    with part.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write(b"what the other has so far")
        other.flush()
        assert fetch(remote(server)).read_bytes() == CONTENT


@pytest.mark.parametrize("name", [n for n, entry in DATASETS.items() if entry.remote])
def test_without_network_the_message_says_what_to_put_where(name: str, offline: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        load_dataset(name)
    file = DATASETS[name].remote[0]
    assert file.url in str(caught.value)
    assert str(offline / "downloads" / file.name) in str(caught.value)


def test_every_remote_file_has_a_checksum_or_is_known_to_have_none() -> None:
    files = [file for entry in DATASETS.values() for file in entry.remote]
    without = {file.name for file in files if file.checksum is None}
    assert without == {file.name for file in (*homes.FSDD, *homes.BLADDER)}
    for file in files:
        assert file.checksum is None or file.checksum.partition(":")[0] in ("md5", "sha256")


def test_a_selfview_data_that_is_no_folder_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SELFVIEW_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"SELFVIEW_DATA names .*nowhere, which is no folder"):
        load_dataset("fsdd")
