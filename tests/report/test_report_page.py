"""What goes into a page: its size, its words, and every shape that data can have."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_matrix
from scipy.spatial.distance import pdist
from sklearn.decomposition import PCA

from selfview.data import Dataset, synthetic_msi
from selfview.errors import FileFormatError, InputError, MissingDependencyError
from selfview.report import contents, facts, pictures
from selfview.report.payload import pack, unpack
from selfview.report.plane import lay_out, principal, turned
from selfview.report.run import report_of
from selfview.report.scores import score_table, tabulate_scores

from .conftest import payload_text, write_page, write_records

MEGABYTE = 1_000_000


def read_page(path):
    html = path.read_text(encoding="utf-8")
    return html, *unpack(payload_text(html))


def page(folder, dataset, Z, **options):
    records = facts.read_records(folder)
    return report_of(dataset, Z, np.zeros(len(dataset)), records=records, **options)


def rows(n, dim=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


@settings(max_examples=30)
@given(
    st.dictionaries(
        st.text(max_size=5),
        st.sampled_from([np.uint8, np.uint16, np.int32, np.float32]).flatmap(
            lambda dtype: hnp.arrays(dtype, hnp.array_shapes(max_dims=2, max_side=5, min_side=0))
        ),
        max_size=4,
    ),
    st.text(),
)
def test_what_is_packed_comes_back(arrays, text):
    known, found = unpack(pack({"text": text, "nothing": float("nan")}, arrays))
    assert known == {"text": text, "nothing": None}
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_principal_components_are_those_of_scikit_learn():
    X = rows(50) @ rows(6, 6, seed=1)
    parts, share = principal(X.astype(np.float64), 2)
    other = PCA(2).fit(X)
    np.testing.assert_allclose(np.abs(parts), np.abs(other.transform(X)), atol=1e-4)
    assert share == pytest.approx(other.explained_variance_ratio_.sum(), rel=1e-5)


def test_a_map_is_turned_so_that_it_fills_its_frame():
    line = np.column_stack([np.arange(50.0), 0.1 * rows(50, 1)[:, 0]])
    found = turned(line)
    assert np.ptp(found, axis=0).min() > 0.9 * np.ptp(found, axis=0).max()
    np.testing.assert_allclose(pdist(found), pdist(line))


def test_many_rows_stand_among_their_neighbours(monkeypatch):
    monkeypatch.setattr("selfview.report.plane.TSNE_ROWS", 60)
    pytest.importorskip("openTSNE")
    labels = np.repeat([0, 1], 60)
    Z = rows(120) + 20 * labels[:, None]
    plane = lay_out(Z, "tsne")
    assert "60 rows drawn at random" in plane.note
    centres = np.stack([np.median(plane.points[labels == k], axis=0) for k in (0, 1)])
    nearest = ((plane.points[:, None] - centres) ** 2).sum(-1).argmin(1)
    assert (nearest == labels).mean() > 0.97


@pytest.mark.parametrize(
    "dataset",
    [
        Dataset("two rows", rows(2)),
        Dataset("equal rows", np.ones((30, 4), np.float32)),
        Dataset("one label", rows(40), y=np.zeros(40, np.int64), classes=("only",)),
        Dataset("1,000 labels", rows(1000), y=np.arange(1000)),
        Dataset("one column", rows(30, 1), y=np.arange(30) % 2),
        Dataset("Ünïcode 漢字 🐁", rows(25), ids=np.array([f"рядок {i} 🧪" for i in range(25)])),
        Dataset("sparse", csr_matrix(np.abs(rows(30)))),
        Dataset("colour", np.random.default_rng(0).random((30, 3, 40, 50), np.float32)),
        Dataset("numbers as labels", rows(60), y=np.linspace(0, 1, 60)),
        Dataset("labels that miss", rows(40), y=np.arange(40) % 4 - 1, classes=("a", "b", "c")),
        Dataset("a line", rows(30), coordinates=np.stack([np.arange(30), np.zeros(30)], 1)),
        Dataset("far apart", rows(30), coordinates=10_000 * np.arange(60).reshape(30, 2)),
        synthetic_msi(width=8, height=8, bins=16, peaks=8),
    ],
    ids=lambda dataset: dataset.name,
)
def test_every_shape_of_data_gets_a_page(dataset, tmp_path):
    matrix = dataset.X.toarray() if hasattr(dataset.X, "toarray") else np.asarray(dataset.X)
    Z = matrix.reshape(len(dataset), -1)[:, :4]
    html, known, arrays = read_page(write_page(tmp_path, dataset, Z))
    assert known["n"] == len(arrays["points"]) == len(arrays["embedding"]) == len(dataset)
    assert dataset.name in html
    np.testing.assert_array_equal(arrays["embedding"], Z.astype(np.float32))


def of_kind(kind, n=10_000):
    """Ten thousand rows, as hard to compress as real ones or harder."""
    rng = np.random.default_rng(0)
    if kind == "images":
        noise = rng.random((n, 1, 28, 28), dtype=np.float32)
        return Dataset("images", (noise + np.roll(noise, 1, 2) + np.roll(noise, 1, 3)) / 3)
    if kind == "texts":
        letters = np.array(list("etaoinshrdlu     "))
        texts = np.array(["".join(row) for row in letters[rng.integers(0, 17, (n, 200))]])
        return Dataset("texts", rng.normal(size=(n, 50)), snippets=texts)
    if kind == "spectra":
        pixels = np.stack(np.divmod(np.arange(n), 100), axis=1)
        return Dataset("spectra", rng.random((n, 300), dtype=np.float32), coordinates=pixels)
    return Dataset("table", rng.random((n, 64), dtype=np.float32), y=np.arange(n) % 10)


@pytest.mark.parametrize("kind", ["images", "texts", "spectra", "table"])
def test_ten_thousand_rows_take_less_than_eight_megabytes(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("selfview.report.run.score_table", lambda *_: None)  # slow, and small
    assert write_page(tmp_path, of_kind(kind), rows(10_000, 10)).stat().st_size < 8 * MEGABYTE


def test_raw_features_and_pca_are_judged_in_the_units_of_the_model():
    X = np.random.default_rng(0).normal(size=(300, 5))
    y = (X[:, 1] > 0).astype(int)
    unit = np.array([1e6, 1, 1, 1, 1])
    dataset = Dataset("unlike", X * unit, y=y)
    alike = score_table(Dataset("alike", X, y=y), X[:, :2])
    assert score_table(dataset, X[:, :2], unit).table == alike.table
    assert score_table(dataset, X[:, :2]).table != alike.table
    assert "divided by its standard deviation" in score_table(dataset, X[:, :2], unit).note


def test_measurements_are_told_by_a_linear_fit_on_rows_held_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 150))
    y = X[:, 0] + 0.1 * rng.normal(size=200)
    y[::10] = np.nan
    table = score_table(Dataset("measured", X, y=y), X[:, :2]).table
    assert table.headings == ("Features", "Linear R² %", "Trustworthiness %")
    found = [float(row[1].text) for row in table.rows]
    assert found[2] > 97  # two features, one of them the label's
    assert found[0] < 90  # 150 features fit 144 rows by heart, which on those rows would be 100


def test_pictures_are_the_pixels_when_they_fit(tmp_path):
    image = pytest.importorskip("PIL.Image")
    import io

    images = np.random.default_rng(0).integers(0, 256, (20, 5, 7)) / 255
    sheets = pictures.draw_sheets(images, (5, 7), 10**6)
    sheet = np.asarray(image.open(io.BytesIO(sheets.sheets[0])))[..., 0]
    for i, picture in enumerate(images):
        top, left = 5 * (i // sheets.across), 7 * (i % sheets.across)
        np.testing.assert_array_equal(sheet[top : top + 5, left : left + 7], 255 * picture)


def test_pictures_over_the_budget_are_kept_for_some_rows():
    noise = np.random.default_rng(0).random((3000, 3, 16, 16))
    sheets = pictures.draw_sheets(noise, (3, 16, 16), 100_000)
    assert sum(map(len, sheets.sheets)) <= 110_000
    assert 50 < len(sheets.rows) < 3000
    assert contents._share("A picture", len(sheets.rows), 3000)[0].startswith("A picture is kept")


def test_the_page_says_what_was_done(tmp_path):
    dataset = Dataset("table", rows(60), y=np.arange(60) % 3)
    html = write_page(tmp_path, dataset).read_text(encoding="utf-8")
    for words in (
        "No collapse",
        "fills 3.25 of its 4 directions",
        "Raw features (6)",
        "PCA (4)",
        "selfview (4)",
        "Linear probe %",
        "selfview fit rows.csv",
        "--label kind",
        "--prototypes 100",
        "epsilon = 0.7",
        "4 → 1",
    ):
        assert words in html, words
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", html.split('id="library"')[0])


def test_a_collapsed_run_is_told_in_words(tmp_path):
    health = {"healthy": False, "verdict": "collapsed: <b>lower</b> epsilon"}
    write_records(tmp_path, metrics={"health": health})
    html = page(tmp_path, Dataset("d", rows(30)), rows(30, 4), layout="pca")
    assert "<strong>Collapsed.</strong> &lt;b&gt;lower&lt;/b&gt; epsilon." in html


def test_the_command_is_shown_as_it_was_typed(tmp_path):
    write_records(tmp_path, config={"command": "selfview fit 'a b.csv' --label kind"})
    html = page(tmp_path, Dataset("d", rows(30)), rows(30, 4), layout="pca")
    assert "selfview fit &#39;a b.csv&#39; --label kind" in html


@pytest.mark.parametrize("name", ["config.json", "metrics.json", "history.csv"])
@pytest.mark.parametrize("content", [None, b"\xff{", b"[1]", b"epoch,loss\n1,x\n"])
def test_damaged_records_are_named(name, content, tmp_path):
    write_records(tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    if name == "history.csv" and content == b"[1]":
        return  # a table of one column and no rows
    with pytest.raises(FileFormatError, match=re.escape(name)):
        facts.read_records(tmp_path)


def test_wrong_numbers_of_rows_and_clusters_are_refused(tmp_path):
    write_records(tmp_path)
    dataset = Dataset("d", rows(10))
    with pytest.raises(InputError, match="10 rows need as many"):
        page(tmp_path, dataset, rows(9))
    with pytest.raises(InputError, match="clusters must be between 1 and the 10 rows, got 11"):
        page(tmp_path, dataset, rows(10), clusters=11)
    with pytest.raises(InputError, match="not finite"):
        page(tmp_path, dataset, np.full((10, 2), np.nan))


def test_more_rows_than_fit_are_drawn_at_random(tmp_path, monkeypatch):
    monkeypatch.setattr("selfview.report.run.MOST_ROWS", 50)
    dataset = Dataset("d", rows(80), y=np.arange(80) % 4, ids=np.arange(80), test=np.arange(8))
    html, known, arrays = read_page(write_page(tmp_path, dataset))
    assert known["n"] == 50
    assert "50 of the 80 rows are shown" in html
    ids = np.array(known["ids"], dtype=int)
    np.testing.assert_array_equal(arrays["embedding"], dataset.X[ids, :4])
    np.testing.assert_array_equal(dataset.take(ids).y, dataset.y[ids])


def test_without_plotly_the_error_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    write_records(tmp_path)
    with pytest.raises(MissingDependencyError, match=r"pip install 'selfview\[plots\]'"):
        page(tmp_path, Dataset("d", rows(9)), rows(9), layout="pca")


def test_a_page_is_made_without_torch(tmp_path):
    write_records(tmp_path)
    code = (
        "import sys, pathlib, numpy as np; from selfview.report.run import report_of; "
        "from selfview.report.facts import read_records; from selfview.data import Dataset; "
        f"X = np.arange(40.0).reshape(10, 4); folder = pathlib.Path({str(tmp_path)!r}); "
        "report_of(Dataset('d', X), X, np.zeros(10), records=read_records(folder)); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_records_that_people_edited_still_give_a_page(tmp_path):
    write_records(tmp_path)
    odd = {"health": ["?"], "epochs": "many", "seconds": None}
    (tmp_path / "metrics.json").write_text(json.dumps(odd))
    (tmp_path / "config.json").write_text('{"parameters": 3, "options": "x", "environment": []}')
    (tmp_path / "history.csv").write_text("")
    html = page(tmp_path, Dataset("d", rows(30)), rows(30, 4), layout="pca")
    assert "No history was kept" in html


def test_a_column_called_as_one_of_ours_stands_beside_it(tmp_path):
    further = {"cluster": np.arange(30) % 2, "other": np.linspace(0, 1, 30)}
    dataset = Dataset("d", rows(30), y=np.arange(30) % 3, further=further)
    _, known, _ = read_page(write_page(tmp_path, dataset))
    names = [column["name"] for column in known["columns"]]
    assert names == ["label", "cluster", "prototype", "cluster (data)", "other"]


def test_wide_data_offers_a_list_that_can_be_read(tmp_path):
    pixels = np.stack(np.divmod(np.arange(30), 6), axis=1)
    X = np.random.default_rng(0).random((30, 6000), dtype=np.float32)
    html, known, arrays = read_page(write_page(tmp_path, Dataset("d", X, coordinates=pixels)))
    assert len(known["features"]) == 512 == len(arrays["features"])
    assert "512 of the 6,000 columns are kept" in html


def test_scores_that_print_alike_are_bold_alike():
    scores = {"raw": 0.9251, "PCA": 0.9249, "selfview": 0.9244}
    found = {name: {"linear_accuracy": s, "trustworthiness": s} for name, s in scores.items()}
    rows = tabulate_scores(found).rows
    assert [row[1].best for row in rows] == [True, True, False]
    assert [row[2].best for row in rows] == [False, True, False]


def test_a_score_far_below_nothing_can_be_the_best():
    rows = tabulate_scores({"raw": {"regression_r2": -9.0}, "PCA": {}}).rows
    assert [(row[1].text, row[1].best) for row in rows] == [("-900.0", True), ("-", False)]


def test_a_score_of_nearly_nothing_has_no_sign():
    found = {name: {"kmeans_ari": value} for name, value in {"a": -1e-5, "b": -0.2}.items()}
    assert [row[1].text for row in tabulate_scores(found).rows] == ["0.0", "-20.0"]


def test_lines_of_values_tell_how_much_a_point_stands_for():
    X = np.random.default_rng(0).random((30, 200), dtype=np.float32)
    assert contents.content_of(Dataset("a", X)).notes[-1].endswith("the highest of about 1.6.")


def test_options_of_several_values_are_listed_without_brackets():
    assert facts.lines_of({"options": {"image_size": [24, 16]}}, "options")[0].value == "24, 16"
