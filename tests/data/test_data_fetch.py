"""Downloads from a local server: verified, tried again, and explained without a network."""

import gc
import hashlib
import logging
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from selfview import load_dataset
from selfview.data.downloads import BLADDER, FSDD, RemoteFile, downloads, fetch
from selfview.data.named import DATASETS
from selfview.errors import DownloadError, InputError

CONTENT = bytes(range(256)) * 3000
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves CONTENT, the first `cut` times only a part of it."""

    cut = 0
    asked = 0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked += 1
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[: 500_000 if self.server.asked <= self.server.cut else None])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("SELFVIEW_CACHE", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda _: None)  # between two attempts
    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
    with warnings.catch_warnings():  # pooch leaves a broken connection to the collector
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def remote(server: Server, checksum: str | None = MD5, path: str = "file.bin") -> RemoteFile:
    return RemoteFile("some/file.bin", f"http://127.0.0.1:{server.server_port}/{path}", checksum)


def test_a_file_is_fetched_once(server: Server) -> None:
    path = fetch(remote(server))
    assert path == downloads() / "some" / "file.bin"
    assert path.read_bytes() == CONTENT
    assert fetch(remote(server)) == path
    assert server.asked == 1


def test_a_download_that_breaks_off_is_tried_again(server: Server) -> None:
    server.cut = 2
    assert fetch(remote(server)).read_bytes() == CONTENT
    assert server.asked == 3


def test_a_download_that_keeps_breaking_off_leaves_nothing_behind(server: Server) -> None:
    server.cut = 99
    with pytest.raises(DownloadError, match="can't download"):
        fetch(remote(server))
    assert list((downloads() / "some").iterdir()) == []


def test_a_wrong_checksum_leaves_nothing_behind(server: Server) -> None:
    with pytest.raises(DownloadError, match="isn't the file its publisher describes"):
        fetch(remote(server, "md5:" + "0" * 32))
    assert list((downloads() / "some").iterdir()) == []


def test_a_file_that_changed_on_disk_is_fetched_again(server: Server) -> None:
    path = fetch(remote(server))
    path.write_bytes(CONTENT[:-1] + b"!")
    assert fetch(remote(server)).read_bytes() == CONTENT
    assert server.asked == 2


def test_a_file_that_changed_and_can_not_be_fetched_again_is_named(server: Server) -> None:
    path = fetch(remote(server))
    path.write_bytes(b"something else")
    server.cut = 99
    with pytest.raises(DownloadError, match=r"file\.bin isn't the file .*, and can't download"):
        fetch(remote(server))


def test_a_file_without_published_checksum_keeps_the_one_of_its_first_download(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "selfview.data"):
        path = fetch(remote(server, None))
    assert "gives no checksum" in caplog.text
    path.write_bytes(b"something else")
    assert fetch(remote(server, None)).read_bytes() == CONTENT


def test_a_missing_page_names_the_address_and_the_place(server: Server) -> None:
    with pytest.raises(DownloadError) as caught:
        fetch(remote(server, path="missing"))
    assert f"http://127.0.0.1:{server.server_port}/missing" in str(caught.value)
    assert str(downloads() / "some" / "file.bin") in str(caught.value)


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
    assert without == {file.name for file in (*FSDD, *BLADDER)}
    for file in files:
        assert file.checksum is None or file.checksum.partition(":")[0] in ("md5", "sha256")


def test_a_selfview_data_that_is_no_folder_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SELFVIEW_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"SELFVIEW_DATA names .*nowhere, which is no folder"):
        load_dataset("fsdd")
