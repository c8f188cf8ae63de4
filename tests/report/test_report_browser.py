"""The report as people meet it: in a real browser, from a file, without a network."""

import io
from pathlib import Path

import numpy as np
import pytest
from scipy.io import wavfile
from sklearn.neighbors import NearestNeighbors

from selfview.data import Dataset, load_dataset, read, synthetic_msi

from .conftest import ARGUMENTS, CHROMIUM, Page, write_page

HOSTILE = "</script><img src=x onerror=alert(1)><b>&amp; 'é\u202e漢 \"{{7*7}}"


@pytest.fixture(scope="module")
def digits(browser, tmp_path_factory):
    dataset = load_dataset("digits").take(np.arange(0, 1797, 6))
    Z = np.random.default_rng(0).normal(size=(10, 6)).astype(np.float32)[dataset.y]
    Z += 0.3 * np.random.default_rng(1).normal(size=Z.shape).astype(np.float32)
    page = Page(browser, write_page(tmp_path_factory.mktemp("digits"), dataset, Z))
    page.dataset, page.Z = dataset, Z
    yield page
    page.close()


@pytest.fixture(scope="module")
def tissue(browser, tmp_path_factory):
    dataset = synthetic_msi(width=24, height=18, bins=64, peaks=20)
    Z = np.eye(6, dtype=np.float32)[dataset.y] + 0.01 * dataset.X[:, :6]
    page = Page(browser, write_page(tmp_path_factory.mktemp("msi"), dataset, Z))
    page.dataset = dataset
    yield page
    page.close()


def test_it_opens_without_errors_and_asks_for_nothing(digits):
    assert digits.errors == []
    assert {url.split(":")[0] for url in digits.requests} <= {"file", "blob", "data"}
    assert sum(url.startswith("file:") for url in digits.requests) == 1


def test_a_mixed_table_is_coloured_by_its_own_columns(browser, tmp_path):
    lines = [
        f"r{i},{'Ulm' if i % 2 else 'Bonn'},{i / 7 if i % 5 else ''},2024-03-{1 + i % 30:02}"
        for i in range(60)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["name,city,size,day", *lines]))
    page = Page(browser, write_page(tmp_path / "page", read(tmp_path / "t.csv")))
    options = "[...document.querySelectorAll('#colour optgroup[label=Data] option')]"
    assert page.run(f"{options}.map((o) => o.textContent)") == ["city", "size", "day"]

    def legend(title):
        page.page.locator("#colour").select_option(label=title)
        return page.page.locator("#legend").inner_text()

    assert "Ulm" in legend("city")
    assert "Grey: no value (12)." in legend("size")
    assert "2024-03-01" in legend("day")
    assert "2024-03-30" in legend("day")
    page.run("selfview.change({ focus: 1 })")
    values = page.page.locator("#details").inner_text()
    assert values.index("Values") < values.index("Nearest neighbours")
    typical = page.page.locator("#cluster-cards .snippet").first.inner_text()
    assert typical.split(", ")[0] in ("Ulm", "Bonn")
    assert "Ulm" in values
    assert "0.1429" in values
    assert "2024-03-02" in values
    assert page.errors == []
    page.close()


def test_every_row_is_a_point(digits):
    assert digits.run("selfview.map.plot.data[0].x.length") == len(digits.dataset)
    assert digits.run("new Set(selfview.map.plot.data[0].x).size") > 100


def test_hovering_shows_the_row_and_its_picture(digits):
    places = digits.places()
    x, y = places[17]
    under = np.flatnonzero(np.hypot(*(places - (x, y)).T) < 12).tolist()
    digits.page.mouse.move(x - 40, y - 40)
    digits.page.mouse.move(x, y, steps=4)
    # Hovering is told a little later, and of points on the way too.
    digits.page.wait_for_function(
        "rows => rows.includes(Number(document.querySelector('#tip:not([hidden])')?.dataset.row))",
        arg=under,
    )
    row = int(digits.run("document.querySelector('#tip').dataset.row"))
    tip = digits.page.inner_text("#tip")
    assert f"row {row}" in tip
    assert f"Label: {digits.dataset.y[row]}" in tip
    digits.page.wait_for_timeout(200)
    pixels = digits.run(
        "[...document.querySelector('#tip canvas').getContext('2d').getImageData(0,0,8,8).data]"
    )
    grey = np.array(pixels).reshape(8, 8, 4)[..., 0]
    np.testing.assert_allclose(grey, 255 * digits.dataset.X[row].reshape(8, 8), atol=1)


def test_colouring_changes_the_colours(digits):
    def colours():
        digits.page.mouse.move(5, 5)
        return digits.page.locator("#plot").screenshot()

    digits.page.select_option("#colour", label="Label")
    by_label = colours()
    digits.page.select_option("#colour", label="Cluster")
    assert "cluster 0" in digits.page.inner_text("#legend")
    assert colours() != by_label
    digits.page.select_option("#colour", label="Dimension 3")
    values = digits.run("[...selfview.map.plot.data[0].marker.color]")
    np.testing.assert_allclose(values, digits.Z[:, 2], rtol=1e-6)
    digits.page.select_option("#colour", label="Label")
    assert digits.page.locator("#legend .entry").count() == 10


def test_the_number_of_clusters_can_be_changed_and_clusters_named(digits):
    page = digits.page
    found = digits.run("selfview.clusters.found")
    assert page.locator("#cluster-cards article").count() == found
    before = digits.run("[...selfview.clusters.column.codes]")
    page.fill("#cluster-number", str(found + 2))
    page.press("#cluster-number", "Enter")
    after = digits.run("[...selfview.clusters.column.codes]")
    assert page.locator("#cluster-cards article").count() == found + 2
    assert page.locator("#legend .entry").count() == found + 2
    assert len({*zip(after, before, strict=True)}) == found + 2  # nested
    page.fill("#cluster-number", "99")
    page.press("#cluster-number", "Enter")
    most = digits.run("selfview.clusters.levels.length")
    assert page.input_value("#cluster-number") == str(most)
    page.fill("#cluster-number", str(found))
    page.press("#cluster-number", "Enter")
    assert digits.run("[...selfview.clusters.column.codes]") == before
    page.locator(".cluster-name").first.fill("round ones")
    page.locator(".cluster-name").first.press("Enter")
    assert "round ones" in page.inner_text("#legend")
    shown = page.locator("#cluster-cards article").first
    assert shown.locator(".typical .tile").count() == 6
    shown.locator("button:has-text('Show')").click()
    code = digits.run("selfview.clusters.column.names.indexOf('round ones')")
    assert digits.run("selfview.map.selected") == [i for i, c in enumerate(before) if c == code]
    page.keyboard.press("Escape")
    page.click("#selection button:has-text('Clear')")
    with page.expect_download() as saved:
        page.click("#cluster-save")
    lines = Path(saved.value.path()).read_text().splitlines()
    assert lines[0] == "row,id,cluster"
    assert sum("round ones" in line for line in lines) == before.count(code)
    page.select_option("#colour", label="Label")


def test_the_lasso_selects_what_it_surrounds(digits):
    digits.page.click("#tool-lasso")
    places = digits.places()
    threes = places[digits.dataset.y == 3]
    (left, top), (right, bottom) = threes.min(axis=0) - 4, threes.max(axis=0) + 4
    mouse = digits.page.mouse
    mouse.move(left, top)
    mouse.down()
    for corner in ((right, top), (right, bottom), (left, bottom), (left, top)):
        mouse.move(*corner, steps=4)
    mouse.up()
    digits.page.wait_for_selector("#selected-count")
    selected = set(digits.run("selfview.map.selected"))
    inside = ((places >= (left, top)) & (places <= (right, bottom))).all(axis=1)
    assert set(np.flatnonzero(digits.dataset.y == 3)) <= selected
    assert len(selected ^ set(np.flatnonzero(inside))) <= 2  # points on the line
    assert f"{len(selected)} rows selected" in digits.page.inner_text("#selection")
    digits.page.click("#selection button:has-text('Clear')")
    assert digits.run("selfview.map.selected") is None
    digits.page.click("#tool-pan")


def test_clicking_a_point_lists_the_neighbours_that_scikit_learn_finds(digits):
    x, y = digits.places()[40]
    digits.page.mouse.move(x - 40, y - 40)
    digits.page.mouse.move(x, y, steps=4)
    digits.page.wait_for_selector("#tip:not([hidden])")  # a busy machine finds the point later
    digits.page.mouse.click(x, y)
    digits.page.wait_for_selector("#details ol.near li")
    row = digits.run("selfview.map.focus")
    found = [near["row"] for near in digits.run("selfview.map.near")]
    search = NearestNeighbors(n_neighbors=10).fit(digits.Z)
    expected = search.kneighbors()[1][row]
    assert found == expected.tolist()
    assert digits.page.locator("#details ol.near li").count() == 10
    digits.page.locator("#details ol.near button").first.click()
    assert digits.run("selfview.map.focus") == expected[0]


def test_it_works_by_keyboard_alone(digits):
    page = digits.page
    page.focus("#frame")
    before = digits.run("[...selfview.map.plot.layout.xaxis.range]")
    page.keyboard.press("+")
    page.wait_for_timeout(150)
    after = digits.run("[...selfview.map.plot.layout.xaxis.range]")
    assert after[1] - after[0] < 0.7 * (before[1] - before[0])
    page.keyboard.press("0")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    assert digits.run("selfview.map.focus") is not None
    page.focus("#find")
    page.keyboard.type("row 123")
    page.keyboard.press("Enter")
    assert digits.run("selfview.map.focus") == 123
    page.focus("#legend .entry")
    page.keyboard.press("Enter")
    label = digits.page.inner_text("#legend .entry[aria-pressed=true] .name")
    assert (
        sorted(digits.run("selfview.map.selected"))
        == np.flatnonzero(digits.dataset.y == int(label)).tolist()
    )


def test_every_control_has_a_name_and_every_table_a_caption(digits):
    nameless = digits.run(
        """[...document.querySelectorAll('button, select, input, canvas, audio')].filter(e =>
        !e.getAttribute('aria-label') && !e.textContent.trim() && !(e.labels && e.labels.length)
        && !e.closest('#plot')).map(e => e.outerHTML)"""
    )
    assert nameless == []
    assert digits.run("[...document.querySelectorAll('table')].every(t => t.caption)")
    assert digits.run("[...document.querySelectorAll('th')].every(t => t.scope)")
    assert digits.run("document.documentElement.lang") == "en"


def test_dark_mode_and_its_switch(digits):
    def background():
        return digits.run("getComputedStyle(document.body).backgroundColor")

    light = background()
    digits.page.emulate_media(color_scheme="dark")
    dark = background()
    assert light != dark
    digits.page.click("#theme")
    assert background() == light
    digits.page.emulate_media(color_scheme="light")
    assert background() == light
    assert digits.errors == []


def test_a_phone_has_no_sideways_scroll(digits):
    digits.page.set_viewport_size({"width": 390, "height": 844})
    digits.page.wait_for_timeout(300)
    assert digits.run("document.documentElement.scrollWidth") <= 390
    digits.page.set_viewport_size({"width": 1200, "height": 1000})


def test_the_tissue_is_drawn_pixel_by_pixel(tissue):
    assert tissue.errors == []

    def pixels(name):
        data = tissue.run(
            f"[...document.getElementById('{name}').getContext('2d').getImageData(0,0,24,18).data]"
        )
        return np.array(data).reshape(18, 24, 4)

    tissue.page.select_option("#regions", label="Label")
    truth = tissue.dataset.y.reshape(18, 24)
    regions = pixels("tissue-regions")[..., :3]
    for label in np.unique(truth):
        assert len(np.unique(regions[truth == label], axis=0)) == 1  # one colour a region
    assert len(np.unique(regions.reshape(-1, 3), axis=0)) == len(np.unique(truth))
    rgb = pixels("tissue-rgb")
    assert (rgb[..., 3] == 255).all()
    assert len(np.unique(rgb[..., :3].reshape(-1, 3), axis=0)) > 4
    tissue.run("document.getElementById('ion').selectedIndex = 5")
    tissue.page.dispatch_event("#ion", "change")
    ion = pixels("tissue-ion").reshape(-1, 4)[:, 1]  # viridis grows in green
    values = tissue.dataset.X[:, 5]
    assert ion[values.argmax()] == ion.max()
    assert np.corrcoef(ion, values)[0, 1] > 0.9


def test_clicking_a_region_shows_its_mean_spectrum(tissue):
    tissue.page.select_option("#regions", label="Label")
    canvas = tissue.page.locator("#tissue-regions")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    row = int(np.flatnonzero(tissue.dataset.y == 3)[0])
    column, line = row % 24, row // 24
    canvas.click(
        position={"x": (column + 0.5) * box["width"] / 24, "y": (line + 0.5) * box["height"] / 18}
    )
    assert "nucleus left" in tissue.page.inner_text("#spectrum-title")
    drawn = tissue.run("[...document.getElementById('spectrum').data[1].y]")
    group = tissue.dataset.X[tissue.dataset.y == 3].astype(np.float64)
    expected = group.mean(axis=0) * tissue.dataset.preparation.maxima
    np.testing.assert_allclose(drawn, expected, rtol=1e-4)
    assert tissue.run("selfview.map.focus") == row
    assert tissue.page.locator("#peaks tbody tr").count() == 8


def test_regions_follow_the_number_of_clusters(tissue):
    tissue.page.select_option("#regions", label="Cluster")
    tissue.page.fill("#cluster-number", "3")
    tissue.page.press("#cluster-number", "Enter")
    assert tissue.page.locator("#region-list .chip").count() == 3
    tissue.page.locator("#region-list .chip").first.click()
    drawn = tissue.run("[...document.getElementById('spectrum').data[1].y]")
    rows = np.array(tissue.run("[...selfview.clusters.column.codes]")) == 0
    group = tissue.dataset.X[rows].astype(np.float64)
    expected = group.mean(axis=0) * tissue.dataset.preparation.maxima
    np.testing.assert_allclose(drawn, expected, rtol=1e-4)
    assert tissue.errors == []


def test_hostile_names_are_text_and_nothing_else(browser, tmp_path):
    rng = np.random.default_rng(0)
    texts = np.array([HOSTILE, "plain", *(f"text {i}" for i in range(28))])
    dataset = Dataset(
        HOSTILE,
        rng.normal(size=(30, 5)),
        y=np.arange(30) % 2,
        classes=(HOSTILE, "b"),
        further={HOSTILE: np.arange(30) % 3},
        ids=np.array([HOSTILE, *(f"row {i}" for i in range(29))]),
        snippets=texts,
        citation=HOSTILE,
        messages=(HOSTILE,),
    )
    page = Page(browser, write_page(tmp_path, dataset))
    page.page.fill("#find", "</script>")
    page.page.keyboard.press("Enter")
    page.run("selfview.change({selected: [0, 1, 2]})")
    page.page.select_option("#colour", index=3)
    page.page.mouse.move(*page.places()[0])
    page.page.wait_for_timeout(400)
    assert page.errors == []
    assert page.run("document.querySelectorAll('img, b').length") == 0
    assert page.page.inner_text("#row-title") == HOSTILE
    assert HOSTILE in page.page.inner_text("#details .snippet >> nth=0")
    assert "49" not in page.page.title()
    page.close()


def test_recordings_play_as_libsndfile_decodes_them(browser, tmp_path):
    soundfile = pytest.importorskip("soundfile")
    folder = tmp_path / "wavs"
    folder.mkdir()
    time = np.arange(4000) / 8000
    for i in range(12):
        tone = 0.4 * np.sin(2 * np.pi * (200 + 90 * i) * time) * np.exp(-3 * time)
        wavfile.write(folder / f"{i % 3}_{i:02d}.wav", 8000, (32767 * tone).astype(np.int16))
    dataset = read(folder, labels_from_name=r"^(\d)_")
    page = Page(browser, write_page(tmp_path / "run", dataset))
    page.run("selfview.change({focus: 5})")
    audio = page.page.wait_for_selector("#details audio")
    page.page.wait_for_function("document.querySelector('#details audio').duration > 0.4")
    assert audio.get_attribute("aria-label") == f"Recording {dataset.ids[5]}"
    decoded = np.array(page.run("[...selfview.samples(5)]"))
    original, _ = soundfile.read(folder / str(dataset.ids[5]))
    stream = io.BytesIO()
    scaled = 0.9 * original / np.abs(original).max()
    soundfile.write(stream, scaled, 8000, format="WAV", subtype="IMA_ADPCM")
    expected = soundfile.read(io.BytesIO(stream.getvalue()), dtype="int16")[0]
    np.testing.assert_array_equal(decoded[: len(expected)], expected)
    assert page.errors == []
    page.close()


@pytest.mark.parametrize("rows", [300, pytest.param(16_000, marks=pytest.mark.slow)])
def test_without_webgl_it_draws_all_the_same(rows, tmp_path, browser):
    launched = browser.browser_type.launch(
        executable_path=CHROMIUM, args=[*ARGUMENTS, "--disable-3d-apis"]
    )
    rng = np.random.default_rng(0)
    dataset = Dataset("many", rng.normal(size=(rows, 5)).astype(np.float32))
    page = Page(launched, write_page(tmp_path, dataset))
    drawn = min(rows, 15_000)
    assert page.run("selfview.map.webgl") is False
    assert page.run("selfview.map.plot.data[0].x.length") == drawn
    assert page.page.locator("#plot path.point").count() == drawn
    if drawn < rows:
        assert "15,000 of the 16,000 points" in page.page.inner_text("#webgl")
    assert page.errors == []
    launched.close()


@pytest.mark.slow
def test_a_hundred_thousand_rows_can_be_used(tmp_path, browser):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 1000, 100_000)
    dataset = Dataset("big", rng.normal(size=(100_000, 20)).astype(np.float32), y=y)
    path = write_page(tmp_path, dataset, rng.normal(size=(100_000, 10)).astype(np.float32))
    assert path.stat().st_size < 25e6
    page = Page(browser, path)
    assert page.run("selfview.map.plot.data[0].x.length") == 100_000
    page.page.select_option("#colour", label="Cluster")
    page.run("selfview.change({focus: 99999})")
    assert page.page.locator("#details ol.near li").count() == 10
    assert page.errors == []
    page.close()


def test_names_at_the_edge_of_the_map_are_whole(browser, tmp_path):
    classes = ("a long name at the left", "the middle", "a long name at the right")
    y = np.arange(60) % 3
    Z = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    Z[:, 0] += 100 * y
    page = Page(browser, write_page(tmp_path, Dataset("edges", Z, y=y, classes=classes), Z))
    frame = page.page.locator("#frame").bounding_box()
    found = page.page.locator("#plot .annotation .bg").all()
    assert len(found) == 3
    for name in found:
        box = name.bounding_box()
        assert frame["x"] < box["x"]
        assert box["x"] + box["width"] < frame["x"] + frame["width"]
    page.close()
