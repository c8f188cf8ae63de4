"""`selfview data` as a user types it."""

from collections.abc import Callable
from pathlib import Path

import pytest

Call = Callable[..., tuple[int, str, str]]


def test_list_shows_every_dataset_without_network(offline: Path, call: Call) -> None:
    code, out, _ = call("data", "list")
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert "to be downloaded" in lines["fsdd"]
    assert "CC BY-SA 4.0" in lines["fsdd"]
    assert "scikit-learn" in lines["digits"]
    assert len(lines) == 10
    assert not offline.exists()


def test_get_tells_what_it_got(call: Call) -> None:
    code, out, _ = call("data", "get", "digits")
    assert code == 0
    assert "1,797 rows of 8 x 8, 10 classes, from scikit-learn" in out
    assert "licence: CC BY 4.0" in out


def test_a_wrong_name_is_one_line_and_exit_code_1(call: Call) -> None:
    for command in ("get", "check"):
        code, _, err = call("data", command, "cifar")
        assert code == 1
        assert err.startswith("selfview: no dataset is called 'cifar'")
        assert err.count("\n") == 1


def test_a_wrong_call_is_exit_code_2(call: Call) -> None:
    assert call("data", "get")[0] == 2
    assert call("data", "steal")[0] == 2


def test_check_passes_on_what_is_here(call: Call) -> None:
    code, out, _ = call("data", "check", "digits")
    assert code == 0
    assert "ok" in out
    assert "mean norm 3.864" in out


def test_check_finds_wrong_files(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fsdd").mkdir()
    (tmp_path / "fsdd" / "fsdd_recordings.tar.gz").write_bytes(b"not an archive")
    monkeypatch.setenv("SELFVIEW_DATA", str(tmp_path))
    code, out, _ = call("data", "check", "fsdd")
    assert code == 1
    assert "WRONG" in out


def test_check_of_what_is_not_here_says_how_to_get_it(offline: Path, call: Call) -> None:
    code, out, _ = call("data", "check", "fsdd")
    assert code == 1
    assert "selfview data get fsdd" in out


def test_the_help_has_an_example(call: Call) -> None:
    for command in ("list", "get", "check"):
        code, out, _ = call("data", command, "--help")
        assert code == 0
        assert f"selfview data {command}" in out
