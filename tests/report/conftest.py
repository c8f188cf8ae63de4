"""Pages for the report's tests, and a real browser to open them in."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from selfview.report.facts import read_records
from selfview.report.run import report_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
# No GPU, no sandbox (containers have neither), nothing of the browser's own on the network.
ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")


def write_records(folder, **changes):
    """The records that `selfview fit` leaves in a run folder, of three epochs."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "selfview": "0.1.0",
        "data": "rows.csv",
        "command": "selfview fit rows.csv --label kind --prototypes 100",
        "options": {"label": "kind"},
        "parameters": {"n_components": 4, "n_prototypes": 100, "epochs": 3, "random_state": 0},
    }
    health = {"healthy": True, "verdict": "sound: no collapse", "effective_rank": 3.25}
    metrics = {"epochs": 3, "seconds": 1.5, "epsilon": 0.7, "health": health, "scores": {}}
    (folder / "config.json").write_text(json.dumps(config | changes.get("config", {})))
    (folder / "metrics.json").write_text(json.dumps(metrics | changes.get("metrics", {})))
    with (folder / "history.csv").open("w", newline="") as file:
        rows = [["epoch", "loss", "entropy"], [1, 4.0, 4.6], [2, 2.0, 3.0], [3, 1.0, 2.3]]
        csv.writer(file).writerows(rows)
    return folder


def write_page(folder, dataset, Z=None, **options):
    """The page of a dataset whose embedding is its first four columns, or `Z`."""
    if Z is None:
        Z = np.asarray(dataset.X).reshape(len(dataset), -1)[:, :4].astype(np.float32)
    write_records(folder)
    options = {"records": read_records(folder), "layout": "pca"} | options
    html = report_of(dataset, Z, np.arange(len(dataset)) % 7, **options)
    (folder / "report.html").write_text(html, encoding="utf-8")
    return folder / "report.html"


def payload_text(html):
    return re.search(r'id="payload">([^<]*)<', html).group(1)


class Page:
    """A page in the browser, with all that it complained about and asked for."""

    def __init__(self, browser, path: Path, **context):
        self.context = browser.new_context(viewport={"width": 1200, "height": 1000}, **context)
        self.page = self.context.new_page()
        self.errors, self.requests = [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console",
            lambda message: self.errors.append(message.text) if message.type == "error" else None,
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: (self.errors.append("alert"), dialog.dismiss()))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=true]", state="attached", timeout=90_000)

    def run(self, code):
        return self.page.evaluate(code)

    def places(self):
        """Where each row's point is, in pixels of the window, once the map is in the window."""
        self.page.locator("#plot").scroll_into_view_if_needed()
        found = self.run(
            """() => { const g = selfview.map.plot, b = g.getBoundingClientRect();
            const {xaxis, yaxis} = g._fullLayout, p = selfview.map.points;
            return Array.from({length: p.length / 2}, (_, row) =>
                [b.left + xaxis._offset + xaxis.d2p(p[2 * row]),
                 b.top + yaxis._offset + yaxis.d2p(p[2 * row + 1])]); }"""
        )
        return np.array(found)

    def close(self):
        self.context.close()


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt install chromium")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()
