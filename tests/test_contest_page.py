"""The contest's numbers in the documentation are those of its records."""

import json
import re
import sys
from pathlib import Path
from statistics import mean, median

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import contest  # noqa: E402

RECORDS = contest.read_records(contest.RECORDS)
NAMES = {"**selfview**": "selfview", "PCA": "pca", "UMAP": "umap", "PaCMAP": "pacmap"}


def test_the_page_is_made_from_the_records():
    assert contest.PAGE.read_text() == contest.page(RECORDS)


def test_the_losses_are_those_of_the_records():
    told = contest.WHEN_NOT.read_text().split(contest.MARKS[0])[1].split(contest.MARKS[1])[0]
    assert told == "\n" + contest.losses(RECORDS)


def test_the_readme_has_the_means_of_the_records():
    readme = (ROOT / "README.md").read_text()
    for title, method in NAMES.items():
        sets = [
            {s: mean(v) for (s, m), v in contest.cells(RECORDS, key).items() if m == method}
            for key in (*contest.MEASURES, "seconds")
        ]
        *scores, seconds = [list(values.values()) for values in sets]
        expected = [*map(mean, scores), median(seconds)]
        (row,) = re.findall(rf"^\| {re.escape(title)} \|(.*)\|$", readme, re.M)
        assert re.findall(r"[\d.]+", row) == [f"{value:.1f}" for value in expected]


def test_what_groups_are_worth_is_on_record():
    lines = (ROOT / "results" / "groups.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    page = (ROOT / "docs" / "choosing.md").read_text()
    for unseen in (False, True):
        linear = "linear" if unseen else "linear_accuracy"
        keys = (linear, "kmeans_acc", "kmeans_nmi", "kmeans_ari", "speaker_nmi")
        for grouped in (False, True):
            of = [r for r in records if bool(r["unseen"]) == unseen and r["groups"] == grouped]
            assert len(of) == (6 if unseen else 3)
            cells = [f"{mean(r[key] for r in of):.1f}" for key in keys if key in of[0]]
            assert f"| {'yes' if grouped else 'no'} | {' | '.join(cells)} |" in page
            if not unseen:
                readme = (ROOT / "README.md").read_text()
                assert cells[0] in readme
                assert cells[1] in readme
