"""Clusters of the page: nested numbers, leading features, typical rows, no confetti."""

import re

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage

from selfview import SelfView
from selfview.clusters import find_clusters, similarities
from selfview.data import Dataset
from selfview.report.cluster_tree import MOST, Part, cluster_tree, ward
from selfview.report.models import dataset_of, page_of
from selfview.report.payload import unpack
from selfview.report.tissue import scatter
from selfview.rows.conversion import as_rows

from .conftest import Page, payload_text, write_page

# Rows of noise around two or three means are not what an embedding is for, and the verdict says so.
pytestmark = pytest.mark.filterwarnings("ignore::selfview.CollapseWarning")


def blobs(k=5, n=400, dim=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return 12 * rng.normal(size=(k, dim))[y] + rng.normal(size=(n, dim)), y


def clusters_of(path):
    return unpack(payload_text(path.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def tree():
    Z, _ = blobs()
    return cluster_tree(find_clusters(Z, 5, seed=0), Z), Z


def test_there_are_clusters_of_every_number(tree):
    found, Z = tree
    assert len(found.levels) == MOST
    for number, level in enumerate(found.levels, 1):
        assert len(level) == number
        codes = found.codes(number)
        assert sorted(set(codes)) == list(range(number))
        assert sum(len(found.rows(part)) for part in level) == len(Z)


def test_every_cluster_is_part_of_one_of_the_number_before(tree):
    found, _ = tree
    for number in range(2, MOST + 1):
        fewer, more = found.codes(number - 1), found.codes(number)
        assert len({*zip(more.tolist(), fewer.tolist(), strict=True)}) == number


def test_the_number_that_was_found_gives_the_clusters_that_were_found(tree):
    found, Z = tree
    clusters = find_clusters(Z, 5, seed=0)
    assert found.found == 5
    np.testing.assert_array_equal(found.codes(5), clusters.assign(Z))
    assert [found.parts[p].name for p in found.levels[4]] == [f"cluster {i}" for i in range(5)]


def test_the_table_of_the_page_gives_the_same_codes(tree):
    found, _ = tree
    leaf, table = found.codes(MOST), found.table()
    for number in (1, 3, 5, 12, MOST):
        np.testing.assert_array_equal(table[number - 1][leaf], found.codes(number))


def test_merged_clusters_are_named_by_their_numbers_and_keep_their_colours(tree):
    found, _ = tree
    four = [found.parts[part] for part in found.levels[3]]
    merged = [part for part in four if "+" in part.name]
    assert len(merged) == 1
    assert merged[0].name.startswith("cluster ")
    before = {found.parts[part].name: found.parts[part].slot for part in found.levels[4]}
    assert all(part.slot == before[part.name] for part in four if part not in merged)
    assert found.parts[found.levels[0][0]].name == "cluster 0+1+2+…"
    six = {found.parts[part].name for part in found.levels[5]}
    assert sum(name.endswith(("a", "b")) for name in six) == 2
    slots = [found.parts[part].slot for part in found.levels[-1]]
    assert len(set(slots)) == MOST


def test_wards_criterion_is_that_of_scipy_for_a_linear_kernel():
    X = np.random.default_rng(0).normal(size=(8, 3))
    parts = [Part(str(i), i, np.array([i])) for i in range(8)]
    costs = ward(X @ X.T, np.ones(8), parts)
    np.fill_diagonal(costs, np.inf)
    # Ward's linkage is sqrt(2 n_a n_b / (n_a + n_b)) times the distance of the means.
    assert np.sqrt(2 * costs.min()) == pytest.approx(linkage(X, "ward")[0, 2])


def test_alike_rows_are_similar_by_one():
    assert similarities(np.ones((2, 3)), 1.0).tolist() == [[1, 1], [1, 1]]


def test_a_homogeneous_background_is_one_cluster_on_the_page(tmp_path):
    rng = np.random.default_rng(0)
    pixels = np.stack(np.divmod(np.arange(900), 30), axis=1)
    inside = (np.abs(pixels - 15).max(axis=1) < 5).astype(float)
    Z = rng.normal(size=(900, 4)) + 14 * inside[:, None]
    dataset = Dataset("tissue", rng.random((900, 20)), coordinates=pixels)
    facts, arrays = clusters_of(write_page(tmp_path, dataset, Z.astype(np.float32)))
    assert facts["clusters"]["found"] == 2
    codes = arrays["clusterCodes"][1][arrays["clusterLeaf"]]
    assert len(set(codes[inside == 0])) == 1
    assert arrays["region cluster"].shape == (len(facts["clusters"]["cards"]), 20)


def test_clusters_scattered_among_each_other_are_shown_as_one_region(tmp_path):
    rng = np.random.default_rng(0)
    pixels = np.stack(np.divmod(np.arange(900), 30), axis=1)
    inside = np.abs(pixels - 15).max(axis=1) < 6
    kind = np.where(inside, 2, rng.integers(0, 2, 900))  # two kinds of noise around the tissue
    Z = 20 * np.eye(3)[kind] + rng.normal(size=(900, 3))
    dataset = Dataset("tissue", rng.random((900, 20)), coordinates=pixels)
    facts, arrays = clusters_of(write_page(tmp_path, dataset, Z.astype(np.float32)))
    known = facts["clusters"]
    assert (known["found"], known["shown"]) == (3, 2)
    codes = arrays["clusterCodes"][1][arrays["clusterLeaf"]]
    assert len({*zip(codes.tolist(), inside.tolist(), strict=True)}) == 2
    assert "2 are shown at first" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_where_places_say_nothing_no_cluster_is_merged(tmp_path):
    rng = np.random.default_rng(0)
    pixels = np.stack(np.divmod(np.arange(900), 30), axis=1)
    Z = 20 * np.eye(3)[rng.integers(0, 3, 900)] + rng.normal(size=(900, 3))
    dataset = Dataset("cells", rng.random((900, 20)), coordinates=pixels)
    facts, _ = clusters_of(write_page(tmp_path, dataset, Z.astype(np.float32)))
    assert (facts["clusters"]["found"], facts["clusters"]["shown"]) == (3, 3)


def test_scatter_is_one_for_random_pixels_and_small_for_two_halves():
    rng = np.random.default_rng(0)
    pixels = np.stack(np.divmod(np.arange(2500), 50), axis=1)
    scattered = scatter(Dataset("image", np.zeros((2500, 1)), coordinates=pixels))
    assert scattered(rng.integers(0, 2, 2500))[0, 1] == pytest.approx(1, abs=0.05)
    assert scattered((pixels[:, 0] > 24).astype(int))[0, 1] < 0.05
    board = scattered(pixels.sum(axis=1) % 2)  # no neighbour is of the same colour
    assert board[0, 1] == pytest.approx(2)
    assert scatter(Dataset("rows", np.zeros((9, 2)))) is None
    cells = Dataset("cells", np.zeros((90, 2)), coordinates=rng.random((90, 2)))
    assert scatter(cells) is None


def test_a_cluster_that_no_row_is_in_is_left_out():
    Z, y = blobs()
    found = cluster_tree(find_clusters(Z, 5, seed=0), Z[y == 0])
    assert found.found == 1
    assert len(found.rows(found.levels[0][0])) == (y == 0).sum()


@pytest.fixture(scope="module")
def planted():
    """A model of rows of two kinds, which differ in the column 'height' only."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    X[:, 2] += 8 * (np.arange(200) % 2)
    frame = pandas.DataFrame(X, columns=["a", "b", "height", "c", "d", "e"])
    model = SelfView(3, epochs=20, n_clusters=2, random_state=0, verbose=0).fit(frame)
    return model, frame


def test_every_cluster_has_its_leading_features_and_typical_rows(planted, tmp_path):
    model, frame = planted
    path = model.report(tmp_path / "page.html", frame, layout="pca")
    facts, _ = clusters_of(path)
    known = facts["clusters"]
    assert known["found"] == 2
    Z = model.transform(frame)
    for part in known["levels"][1]:
        card = known["cards"][part]
        rows = np.flatnonzero(model.predict(frame) == int(card["name"][-1]))
        assert card["size"] == len(rows)
        assert card["leading"][0][0] == "height"
        assert abs(card["leading"][0][2]) > 2
        away = np.linalg.norm(Z[rows] - Z[rows].mean(axis=0), axis=1)
        assert card["typical"] == rows[np.argsort(away)[:6]].tolist()
    assert "orange if it leads away" in path.read_text(encoding="utf-8")


def test_differences_are_shown_with_their_sign_and_three_digits(planted, browser, tmp_path):
    model, frame = planted
    page = Page(browser, model.report(tmp_path / "page.html", frame, layout="pca"))
    told = page.page.locator(".cluster .bars .count").all_inner_texts()
    assert len(told) > 3
    assert all(re.fullmatch(r"[+−](0\.0*\d{1,3}|\d\.\d{1,2}|\d\d\.\d|[\d,]+)", t) for t in told)
    page.close()


def test_a_number_of_clusters_that_is_asked_for_is_found_anew(planted, tmp_path):
    model, frame = planted
    facts, _ = clusters_of(model.report(tmp_path / "page.html", frame, layout="pca", clusters=4))
    assert facts["clusters"]["found"] == 4


def test_images_have_a_picture_of_contributions(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((60, 1, 8, 8), dtype=np.float32)
    X[::2, :, 2:4, 5:7] += 3
    model = SelfView(2, epochs=2, n_clusters=2, random_state=0, verbose=0, encoder="mlp")
    flat = X.reshape(60, -1)
    model.fit(flat)
    rows = as_rows(flat)
    dataset = Dataset("pictures", flat, shape=(8, 8))
    html = page_of(model, dataset, rows, model.transform(flat), layout="pca")
    assert "blue pixels lead to the cluster" in html
    facts, arrays = unpack(payload_text(html))
    pictures = arrays["clusterPictures"].astype(int)
    assert pictures.shape == (len(facts["clusters"]["cards"]), 8, 8)
    for part in facts["clusters"]["levels"][1]:
        strongest = np.unravel_index(np.abs(pictures[part] - 128).argmax(), (8, 8))
        assert strongest[0] in (2, 3)
        assert strongest[1] in (5, 6)
    assert dataset_of("rows", flat, rows).feature_names[0] == "feature 1"
