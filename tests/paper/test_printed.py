"""The transcribed numbers are those of the paper's source, cell by cell."""

import os
import re
from pathlib import Path

import pytest

from selfview.paper.printed import PRINTED

LABELS = {
    "table1": "tab: parameters",
    "table2": "tab:supervised knn",
    "table3": "tab:mi",
    "table4": "tab:k-means results",
    "table5": "tab: effect of vat",
    "table6": "tab: bn impact",
}
LABELLED = ["emnist-digits", "fashion-mnist", "reuters", "20news", "fsdd"]
COLUMNS = {
    "table1": [(d, m) for d in ("fashion-mnist", "msi") for m in ("parameters", "seconds")],
    "table2": [(d, "linear") for d in LABELLED] + [(d, "graph") for d in LABELLED],
    "table3": [(d, "mine") for d in [*LABELLED, "msi"]],
    "table4": [(d, m) for d in LABELLED for m in ("acc", "nmi", "ari")] + [("msi", "rss")],
    "table5": [(d, "linear") for d in LABELLED] + [("msi", "rss")],
    "table6": [(d, "linear") for d in LABELLED] + [("msi", "rss")],
}
PLACES = {"yellow": 1, "silver": 2, "brown": 3}


@pytest.fixture(scope="module")
def source():
    data = os.environ.get("SELFVIEW_DATA")
    path = Path(data).parent / "paper" / "paper.tex" if data else None
    if path is None or not path.is_file():
        pytest.skip("the paper's source is not here: no paper/paper.tex beside SELFVIEW_DATA")
    return path.read_text(encoding="utf-8")


def rows_in_source(source, name):
    """Row names and raw cells of the table with a label."""
    end = source.index("\\label{" + LABELS[name] + "}")
    body = source[source.rindex("\\begin{table", 0, end) : end]
    # Cells that are tabulars of their own hold a line break that ends no row.
    body = re.sub(
        r"\\begin\{tabular\}\{@\{\}c@\{\}\}(.*?)\\end\{tabular\}",
        lambda m: m[1].replace("\\\\", " "),
        body,
        flags=re.S,
    )
    for line in body.split("\\\\"):
        cells = line.split("&")
        if len(cells) == len(COLUMNS[name]) + 1:
            title = re.sub(r"\\[ch]line(\{[^}]*\})?", "", cells[0]).split("\n\n")[-1]
            yield " ".join(title.split()).replace("RP+ VAT", "RP+VAT"), cells[1:]


def numbers_of(cell):
    marks = set(re.findall(r"\\colorbox\{(\w+)\}", cell)) & set(PLACES)
    bare = re.sub(r"\\setlength\{\\fboxsep\}\{0\.?(pt)\}|\\colorbox\{\w+\}", "", cell)
    found = [float(number) for number in re.findall(r"\d+\.\d+", bare)]
    return found, PLACES[marks.pop()] if marks else None


@pytest.mark.parametrize("name", list(LABELS))
def test_every_number_is_that_of_the_source(source, name):
    seen = {}
    for title, cells in rows_in_source(source, name):
        for at, cell in zip(COLUMNS[name], cells, strict=True):
            found, place = numbers_of(cell)
            if found:
                seen[title, *at] = (*found, place)
    kept = {
        key: (p.mean, *(() if p.deviation is None else (p.deviation,)), p.place)
        for key, p in PRINTED[name].items()
    }
    assert kept == seen


def test_the_tables_have_all_their_cells():
    assert {name: len(cells) for name, cells in PRINTED.items()} == {
        "table1": 3 * 4,
        "table2": 11 * 10 - 4,  # LLE and Isomap have no number on E-MNIST
        "table3": 11 * 6 - 2,
        "table4": 11 * 16 - 6,
        "table5": 4 * 6,
        "table6": 4 * 6,
    }
