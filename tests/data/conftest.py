"""A cache of its own for these tests, and the real files where there are some."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Prepared rows are shared by the tests of one run, and never touch the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SELFVIEW_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def real() -> Path:
    """The folder of real files."""
    folder = os.environ.get("SELFVIEW_DATA")
    if not folder:
        pytest.skip("needs the real files: set SELFVIEW_DATA")
    return Path(folder)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No SELFVIEW_DATA, an empty cache, and no way out to the network."""
    import socket

    def refuse(*_: object, **__: object) -> None:
        raise OSError("the network is off in tests")

    monkeypatch.delenv("SELFVIEW_DATA", raising=False)
    monkeypatch.setenv("SELFVIEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr("time.sleep", lambda _: None)  # between two attempts
    return tmp_path / "cache"
