"""Records on disk survive crashes, many writers and damaged lines."""

import json
import math
import subprocess
import sys

import pytest

from selfview.errors import CheckpointError
from selfview.paper.metrics import VERSIONS
from selfview.paper.records import RECORDS, Record, append, read_shelf

FIT = {"dataset": "d", "method": "m", "settings": [], "seed": 0, "epochs": 1, "rows": None}


def record(key="k", **changes):
    return Record(key=key, fit=FIT, budget="smoke", **changes)


def test_what_is_written_is_read_back(tmp_path):
    score = {"version": VERSIONS["linear"], "values": {"linear_accuracy": 0.5}}
    append(tmp_path, record(scores={"linear": score}, notes=("a", "ü")))
    shelf = read_shelf(tmp_path)
    assert shelf.problems == ()
    assert shelf.records["k"].value("linear", "linear_accuracy") == 0.5
    assert shelf.records["k"].notes == ["a", "ü"]


def test_numbers_that_json_lacks_become_null(tmp_path):
    append(tmp_path, record(health={"a": math.nan, "b": math.inf, "c": 1.0}))
    line = (tmp_path / RECORDS).read_text()
    assert "NaN" not in line
    assert "Infinity" not in line
    assert read_shelf(tmp_path).records["k"].health == {"a": None, "b": None, "c": 1.0}


def test_the_newest_record_of_a_key_counts(tmp_path):
    append(tmp_path, record(error="no luck"))
    append(tmp_path, record())
    assert read_shelf(tmp_path).records["k"].error == ""


def test_a_half_written_line_is_reported_and_harms_no_other(tmp_path):
    append(tmp_path, record("a"))
    path = tmp_path / RECORDS
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    append(tmp_path, record("b"))
    shelf = read_shelf(tmp_path)
    assert set(shelf.records) == {"a", "b"}
    (problem,) = shelf.problems
    assert "line 2" in problem
    assert "counts as not run" in problem


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\x00binary",
        b"[]",
        b"7",
        b"{}",
        b'{"format": 99}',
        b'{"format": 1, "key": 3, "fit": {}, "budget": ""}',
        b'{"format": 1, "key": "k", "fit": [], "budget": ""}',
        b'{"format": 1, "key": "k", "budget": "", "surprise": 1}',
        b"[" * 100_000,
        b'{"format": 1, "key": "k", "fit": %b, "budget": "", "scores": {"linear": 3}}'
        % json.dumps(FIT).encode(),
    ],
    ids=range(10),
)
def test_hostile_lines_are_reported_and_not_fatal(tmp_path, line):
    (tmp_path / RECORDS).write_bytes(line + b"\n")
    append(tmp_path, record("good"))
    shelf = read_shelf(tmp_path)
    assert set(shelf.records) == {"good"}
    assert len(shelf.problems) == 1


def test_a_missing_folder_is_an_empty_shelf(tmp_path):
    assert read_shelf(tmp_path / "nowhere").records == {}


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="file"):
        append(tmp_path / "file", record())


WRITER = """
import sys
from pathlib import Path
from selfview.paper.records import Record, append
fit = {"dataset": "d", "method": "m", "settings": [], "seed": 0, "epochs": 1, "rows": None}
for i in range(20):
    notes = ("x" * 5000,)
    append(Path(sys.argv[1]), Record(key=f"{sys.argv[2]}-{i}", fit=fit, budget="", notes=notes))
"""


def test_many_processes_write_whole_lines(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(number)]) for number in range(4)]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    shelf = read_shelf(tmp_path)
    assert shelf.problems == ()
    assert len(shelf.records) == 80
