"""How the page is laid out: what a designer would look at, in a real browser."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from selfview.data import Dataset, load_dataset, synthetic_msi
from selfview.data.anndata_files import AnnDataPreparation
from selfview.report.comparison import Cell, Table
from selfview.report.facts import Records, parameter_lines
from selfview.report.side_by_side import comparison_page

from .conftest import Page, write_page


@pytest.fixture(scope="module")
def digits(browser, tmp_path_factory):
    dataset = load_dataset("digits").take(np.arange(0, 1797, 6))
    Z = np.random.default_rng(0).normal(size=(10, 6)).astype(np.float32)[dataset.y]
    Z += 0.3 * np.random.default_rng(1).normal(size=Z.shape).astype(np.float32)
    page = Page(browser, write_page(tmp_path_factory.mktemp("digits"), dataset, Z))
    yield page
    page.close()


def test_there_is_one_verdict(digits):
    assert digits.page.locator(".verdict").count() == 1
    assert (
        digits.page.content().count("no collapse") + digits.page.content().count("No collapse") == 1
    )


def test_parameters_show_what_auto_became():
    config = {"parameters": {"width": "auto", "epochs": "auto", "axes": "auto", "n_components": 10}}
    config["parameters"]["n_clusters"] = "auto"
    metrics = {"epochs": 62, "decided": {"width": 256}}
    lines = {line.name: line for line in parameter_lines(Records(config, metrics, {}), 4)}
    assert (lines["width"].value, lines["width"].meaning) == ("256", "auto")
    assert (lines["epochs"].value, lines["epochs"].meaning) == ("62", "auto")
    assert (lines["axes"].value, lines["axes"].meaning) == ("auto", "")  # an older run's
    assert (lines["n_components"].value, lines["n_components"].meaning) == ("10", "")
    assert (lines["n_clusters"].value, lines["n_clusters"].meaning) == ("4", "auto")


def test_a_run_keeps_what_auto_became(tmp_path, blobs):
    from selfview import SelfView

    model = SelfView(3, epochs=2, random_state=0, verbose=0, contrast=0.5).fit(blobs[0])
    assert model.decided_["width"] > 0
    assert "contrast" not in model.decided_
    assert "epochs" not in model.decided_
    assert "auto" not in map(str, model.decided_.values())
    json.dumps(model.decided_)
    given = {
        name
        for name, value in model.get_params().items()
        if isinstance(value, str) and value == "auto"
    }
    assert given - {"metric"} <= {*model.decided_}


def test_the_map_fills_its_frame(digits):
    places = digits.places()
    box = digits.page.locator("#frame").bounding_box()
    spread = np.ptp(places, axis=0) / (box["width"], box["height"])
    assert spread.max() > 0.9
    assert spread.min() > 0.6  # one axis may be stretched by half, no more


def test_after_a_selection_the_panel_shows_it(digits):
    digits.run("document.querySelector('.panel').scrollTop = 0")
    digits.run("selfview.change({focus: 3})")
    digits.run("selfview.change({selected: [1, 2, 3, 4]})")
    top, low, high = digits.run(
        """(() => { const box = (id) => document.querySelector(id).getBoundingClientRect();
        const panel = box(".panel");
        return [box("#selected-count").top, panel.top, panel.bottom]; })()"""
    )
    assert low - 1 <= top < high
    digits.run("selfview.change({selected: null, focus: null})")


def test_training_curves_are_folded_until_they_are_asked_for(digits):
    assert digits.run("document.querySelector('#curves').open") is False
    digits.page.click("#curves summary")
    digits.page.wait_for_selector("#curve-0 .main-svg", state="attached")
    assert digits.run("document.querySelector('#curve-0').data[0].y") == [4, 2, 1]
    assert digits.errors == []


def test_on_a_phone_the_map_comes_first_and_wide_tables_say_so(digits):
    def top(selector):
        return digits.page.locator(selector).bounding_box()["y"]

    digits.page.set_viewport_size({"width": 390, "height": 844})
    digits.page.wait_for_timeout(300)
    assert top("#frame") < top(".toolbar") < top(".verdict")
    assert top("#frame") < 300
    assert digits.run("document.documentElement.scrollWidth") <= 390
    assert digits.page.locator(".scroll.scrolls + .sideways").first.is_visible()
    digits.page.set_viewport_size({"width": 1200, "height": 1000})
    digits.page.wait_for_timeout(300)
    assert not digits.page.locator(".sideways").first.is_visible()
    assert top(".verdict") < top("#frame")


def test_the_spectrum_of_the_tissue_follows_a_selection(browser, tmp_path):
    dataset = synthetic_msi(width=24, height=18, bins=64, peaks=20)
    Z = np.eye(6, dtype=np.float32)[dataset.y] + 0.01 * dataset.X[:, :6]
    page = Page(browser, write_page(tmp_path, dataset, Z))
    chosen = np.flatnonzero(dataset.y == 3)
    page.run(f"selfview.change({{selected: {chosen.tolist()}}})")
    assert f"the {len(chosen)} selected rows" in page.page.inner_text("#spectrum-title")
    drawn = np.array(page.run("[...document.getElementById('spectrum').data[1].y]"))
    scale = dataset.preparation.maxima
    expected = dataset.X[chosen].mean(axis=0, dtype=np.float64) * scale
    np.testing.assert_allclose(drawn, expected, atol=scale.max() / 255)  # kept in 8 bits
    page.run("selfview.change({selected: null})")
    assert "all pixels" in page.page.inner_text("#spectrum-title")
    assert page.errors == []
    page.close()


def test_a_text_is_whole_in_the_panel(browser, tmp_path):
    text = " ".join(f"word{i}" for i in range(300))
    X = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    page = Page(browser, write_page(tmp_path, Dataset("texts", X, snippets=np.array([text] * 30))))
    page.run("selfview.change({focus: 2})")
    assert page.page.inner_text("#details .content .snippet") == text
    page.close()


def test_embeddings_side_by_side_show_the_same_row(browser, tmp_path):
    rng = np.random.default_rng(0)
    table = Table(
        ("method", "Linear", *["clustering"] * 6),
        (
            (Cell("PCA"), Cell("90.0"), *[Cell("10.0")] * 6),
            (Cell("SelfView"), Cell("95.0", True), *[Cell("10.0")] * 6),
        ),
        (),
    )
    maps = {"PCA": rng.normal(size=(80, 2)), "Self<b>View": rng.normal(size=(80, 2))}
    path = tmp_path / "page.html"
    path.write_text(
        comparison_page("rows", table, maps, np.arange(80) % 3, ("a", "b", "</script>"))
    )
    page = Page(browser, path)
    x, y = page.run(
        """(() => { const b = document.getElementById('map-0').getBoundingClientRect(), s = b.width;
        const p = selfview.maps.arrays.points0;
        const [px, py] = [p[10], p[11]].map((v) => 10 + v / 65535 * (s - 20));
        return [b.left + px, b.top + s - py]; })()"""
    )
    page.page.mouse.move(x, y)
    page.page.wait_for_function("selfview.maps.row !== null")
    row = page.run("selfview.maps.row")
    assert page.page.inner_text("#pointed").startswith(f"row {row}: ")
    page.page.click("#legend .chip >> nth=1")
    assert page.run("selfview.maps.chosen") == 1
    assert page.page.locator("td.best").count() == 1
    assert not page.page.locator(".sideways").is_visible()
    page.page.set_viewport_size({"width": 390, "height": 844})
    page.page.wait_for_selector(".sideways", state="visible")
    assert page.errors == []
    page.close()


def test_on_a_phone_the_first_column_of_a_wide_table_stays(digits):
    digits.page.set_viewport_size({"width": 390, "height": 844})
    digits.page.wait_for_timeout(300)
    digits.run("document.querySelector('.scroll.scrolls').scrollLeft = 120")
    box = digits.page.locator(".scroll.scrolls").first.bounding_box()
    first = digits.page.locator(".scroll.scrolls tr.own th").first.bounding_box()
    assert abs(first["x"] - box["x"]) < 2
    nav = digits.page.locator(".top nav").bounding_box()
    last = digits.page.locator(".top nav a").last.bounding_box()
    assert last["x"] + last["width"] <= nav["x"] + nav["width"] + 1  # no link is cut off
    digits.page.set_viewport_size({"width": 1200, "height": 1000})
    digits.page.wait_for_timeout(300)


def test_a_typical_row_that_is_clicked_is_shown(digits):
    for width, seen in ((1200, "#frame"), (390, "#row-title")):
        digits.page.set_viewport_size({"width": width, "height": 900})
        digits.page.wait_for_timeout(300)
        digits.page.locator(".cluster .row, .cluster .tile").last.click()
        digits.page.wait_for_function(
            f"(b => b.top >= 0 && b.top < 400)"
            f"(document.querySelector('{seen}').getBoundingClientRect())",
            timeout=5000,
        )
        digits.run("selfview.change({focus: null})")
    digits.page.set_viewport_size({"width": 1200, "height": 1000})


def test_names_on_a_narrow_map_are_short_and_columns_keep_theirs(browser, tmp_path):
    rng = np.random.default_rng(0)
    classes = ("T cell CD8+ memory", "Monocyte (classical)")
    y, further = np.arange(60) % 2, {"n_counts": rng.normal(size=60)}
    Z = rng.normal(size=(60, 4)).astype(np.float32)
    path = write_page(tmp_path, Dataset("cells", Z, y=y, classes=classes, further=further), Z)
    page = Page(browser, path)
    assert "n_counts" in page.page.locator("#colour option").all_inner_texts()
    page.page.set_viewport_size({"width": 390, "height": 844})
    page.page.reload()
    page.page.wait_for_selector("html[data-ready=true]", state="attached")
    names = page.page.locator("#plot .annotation text").all_text_contents()
    assert len(names) == 2
    assert all(len(name) < 16 for name in names)
    assert page.page.locator("#legend .name").all_inner_texts() == list(classes)
    page.close()


@pytest.mark.parametrize("sparse", [True, False])
def test_cells_in_their_places_show_their_genes(sparse, browser, tmp_path):
    rng = np.random.default_rng(0)
    kind = np.arange(120) % 3
    counts = csr_matrix(rng.poisson(0.2 + 4 * (np.arange(9) // 3 == kind[:, None])).astype("f4"))
    genes = tuple(f"GENE{i}" for i in range(9))
    places = rng.uniform(0, 1000, (120, 2)) + 0.25  # as in a tissue: on no grid
    how = AnnDataPreparation(9, genes)
    values = counts if sparse else counts.toarray()
    dataset = Dataset("cells", values, y=kind, coordinates=places, preparation=how)
    page = Page(browser, write_page(tmp_path, dataset, np.eye(3, dtype=np.float32)[kind]))
    chosen = np.flatnonzero(kind == 1).tolist()
    page.run(f"selfview.change({{selected: {chosen}}})")
    leading = {page.page.inner_text(f"#peaks tbody tr:nth-child({i}) th") for i in (1, 2, 3)}
    assert leading == {"GENE3", "GENE4", "GENE5"}
    page.run(f"selfview.change({{focus: {chosen[0]}}})")
    highest = page.page.inner_text("#details .content .snippet").split(", ")[0]
    assert counts[chosen[0]].toarray()[0][genes.index(highest)] == counts[chosen[0]].max()
    assert page.page.locator("#ion option").all_inner_texts() == list(genes)
    assert page.errors == []
    page.close()
