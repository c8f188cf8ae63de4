"""The command: wrong calls, and one whole way from nothing to a table."""

import pytest
from typer.testing import CliRunner

from selfview.cli import app

runner = CliRunner()


def paper(*words):
    return runner.invoke(app, ["paper", *words])


@pytest.mark.parametrize(
    "words",
    [
        ("run", "table9"),
        ("run", "table5", "--budget", "desktop"),
        ("run", "table5", "--datasets", "cifar"),
        ("run", "table5", "--datasets", ","),
        ("run", "table5", "--methods", "tsne"),
        ("run", "table5", "--methods", "pca"),  # no row of that table
        ("run", "table5", "--seeds", "many"),
        ("show", "table0"),
        ("show", "table2", "--format", "docx"),
        ("list", "everything"),
    ],
)
def test_wrong_calls_exit_with_two(words):
    assert paper(*words).exit_code == 2


def test_the_list_estimates_every_cell_and_the_total(tmp_path):
    done = paper("list", "--budget", "converged", "--out", str(tmp_path))
    assert done.exit_code == 0
    for word in ("table1", "fig7", "in total", "seeds", "ISOMAP"):
        assert word in done.output


def test_from_nothing_to_a_table(tmp_path):
    narrow = ["--datasets", "digits", "--budget", "smoke", "--out", str(tmp_path / "out")]
    done = paper("run", "table5", *narrow, "--work", str(tmp_path / "work"))
    assert done.exit_code == 0, done.output
    assert "4 done now" in done.output
    shown = paper("show", "table6", *narrow)
    assert shown.exit_code == 0
    assert "missing: 3 runs on digits" in shown.output
    rest = paper("run", "table6", *narrow, "--work", str(tmp_path / "work"))
    assert "3 done now, 1 before" in rest.output
    shown = paper("show", "table6", *narrow)
    assert "missing" not in shown.output
    assert (tmp_path / "out" / "narrowed" / "tables" / "table6.md").is_file()


def test_without_records_nothing_is_written(tmp_path):
    done = paper("show", "all", "--out", str(tmp_path / "typo"))
    assert done.exit_code == 1
    assert "no records" in done.output
    assert not (tmp_path / "typo").exists()
