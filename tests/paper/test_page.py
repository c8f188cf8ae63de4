"""Renders: complete, readable by other programs, the same every time, and without torch."""

import csv
import io
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from selfview.paper import formats
from selfview.paper.figures import crossing
from selfview.paper.grid import TITLES
from selfview.paper.page import gaps, render
from selfview.paper.plan import jobs_of, names_of
from selfview.paper.records import append, read_shelf
from selfview.paper.results import tabulate

ALL = ("md", "csv", "tex", "png", "svg")


def as_text(table):
    return formats.aligned(formats.lines_of(table, formats.signed))


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_everything_is_rendered_from_records_without_torch(full_folder):
    folder, _ = full_folder
    code = f"""
import sys
from pathlib import Path
from selfview.cli import app
try:
    app(["paper", "show", "all", "--budget", "smoke", "--out", {str(folder)!r}])
except SystemExit as stop:
    assert not stop.code, stop.code
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "≠" in done.stdout
    files = contents(folder)
    for name in TITLES:
        kinds = ("md", "csv", "tex") if name.startswith("table") else ("png",)
        home = "tables" if name.startswith("table") else "figures"
        for kind in kinds:
            assert files[f"{home}/{name}.{kind}"]
    page = files["README.md"].decode()
    for name, title in TITLES.items():
        assert title in page
        assert name.startswith("table") or f"figures/{name}.png" in page
    assert "abc" in page  # the commit
    answer = page.index("statements of the paper hold")
    assert answer < page.index("## Figures") < page.index("## Tables")
    assert page.index("## Tables") < page.index("## What doesn't hold, and why")
    assert "## Not run yet" not in page
    for name in ("fig2", "fig4", "fig6"):
        assert files[f"figures/{name}.png"].startswith(b"\x89PNG")


def test_renders_are_the_same_every_time(full_folder):
    folder, choice = full_folder
    names = names_of("table2,fig3,fig5")
    render(names, choice, folder, ALL, whole=True).write()
    first = contents(folder)
    ET.fromstring(first["figures/fig3.svg"])
    render(names, choice, folder, ALL, whole=True).write()
    assert contents(folder) == first


def test_less_than_all_leaves_the_files_of_all_as_they_are(full_folder):
    folder, choice = full_folder
    names, kinds = names_of("table2,fig4"), ("md", "png")
    render(names, choice, folder, kinds, whole=True).write()
    before = contents(folder)
    for narrow in ({"methods": ["pca"]}, {"datasets": ["msi"]}, {"seeds": [0]}):
        less = replace(choice, **narrow)
        assert render(names, less, folder, kinds, whole=True).write()
        assert (folder / "narrowed" / "README.md").is_file()
    now = contents(folder)
    assert {name: now[name] for name in before} == before


def test_a_failed_run_of_a_figure_is_told(full_folder):
    folder, choice = full_folder
    shelf = read_shelf(folder)
    (job,) = [j for j in jobs_of(["fig4"], choice) if j.fit.method == "aae"]
    known = shelf.records[job.fit.key]
    append(folder, replace(known, error="ran out of patience", scores={}))
    (line,) = gaps("fig4", choice, read_shelf(folder))
    assert line.startswith("failed: fsdd aae")
    assert line.endswith("ran out of patience")


@pytest.mark.parametrize("change", [dict(resolved={}), dict(provenance={"machine": {"flags": 5}})])
def test_records_that_lack_something_are_still_rendered(full_folder, change):
    folder, choice = full_folder
    for record in read_shelf(folder).records.values():
        append(folder, replace(record, **change))
    page = render(names_of("table1,fig6"), choice, folder, ("md", "png"), whole=True)
    assert page.files["README.md"]


def test_printed_tables_fit_a_screen_and_hold_every_number(full_folder):
    folder, choice = full_folder
    (shown,) = render(["table4"], choice, folder, ()).shown
    text = formats.printed(*shown)
    heads = [line for line in text.splitlines() if line.startswith(" ")]
    assert len(heads) == 6  # a block of columns for each dataset
    assert max(map(len, heads)) < 110
    assert "34.5±0.3" in text


def test_own_words_stand_in_the_page_as_they_are(full_folder):
    folder, choice = full_folder
    (folder / "reading.md").write_text("Why we *think* so: ünïcode.\n", encoding="utf-8")
    render(["table5"], choice, folder, ("md",), whole=True).write()
    assert "Why we *think* so: ünïcode." in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [n for n in TITLES if n.startswith("table")])
def test_the_formats_agree_with_each_other(full_folder, name):
    folder, choice = full_folder
    table = tabulate(name, choice, read_shelf(folder))
    width, height = len(table.columns), len(table.rows)
    lines = list(csv.DictReader(io.StringIO(formats.comma_separated(table))))
    assert len(lines) == width * height
    markdown = formats.markdown(table).splitlines()
    assert len(markdown) == height + 2
    assert {line.replace("\\|", "").count("|") for line in markdown} == {width + 2}
    latex = formats.latex(table)
    assert latex.count("{") == latex.count("}")
    rows = [line for line in latex.splitlines() if line.endswith("\\\\")]
    assert {row.count("&") for row in rows} <= {width}
    text = as_text(table).splitlines()
    assert len(text) == height + 1
    for line in lines:
        if line["paper_mean"]:
            assert line["paper_mean"].split(".")[0] in "\n".join(text)


def test_the_papers_numbers_stand_beside_ours(full_folder):
    folder, choice = full_folder
    text = as_text(tabulate("table5", choice, read_shelf(folder)))
    assert "86.9±1.3" in text
    assert "N/A" in as_text(tabulate("table2", choice, read_shelf(folder)))


def test_a_page_of_some_records_says_what_is_not_run(full_folder):
    folder, choice = full_folder
    path = folder / "records.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if '"method": "vae"' not in line))
    text = render(names_of("all"), choice, folder, (), whole=True).files["README.md"].decode()
    answer = text[: text.index("## Figures")]
    assert "| Table 3. Mutual information by MINE, nats | 6 | 0 | 0 | 6 |" in answer
    assert "of 10 so far; not run yet: VAE" in text
    assert "not run \\| 63.9±1.3" in text


def test_an_empty_folder_renders_with_commands_and_no_figures(full_folder, tmp_path):
    _, choice = full_folder
    page = render(names_of("all"), choice, tmp_path / "empty", ALL, whole=True)
    assert not any(content for name, content in page.files.items() if "figures" in name)
    text = page.files["README.md"].decode()
    assert "statements of the paper can be checked yet" in text
    out = tmp_path / "empty"
    assert f"selfview paper run table5 --budget smoke --out {out} --datasets fsdd" in text
    assert page.problems == ()


def test_the_crossing_is_found_or_there_is_none():
    assert crossing([0, 1, 2], [0.0, 2.0, 3.0], 1.0) == 0.5
    assert crossing([0, 1], [2.0, 3.0], 1.0) is None
