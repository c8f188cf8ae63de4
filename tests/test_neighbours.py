"""Nearest rows, against scikit-learn's own search and what must hold of any."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.stats import binom
from sklearn.neighbors import NearestNeighbors

from selfview import SelfView
from selfview.errors import SelfViewWarning
from selfview.neighbours import cells, engine, search
from selfview.neighbours.search import Neighbours, nearest, search_points
from selfview.rows import base, on_disk, projection
from selfview.rows.conversion import as_rows
from selfview.saving.tensor_file import read_state
from selfview.training.loop import Step


def truth(X, count, metric="euclidean"):
    search = NearestNeighbors(n_neighbors=count, algorithm="brute", metric=metric).fit(X)
    return search.kneighbors(return_distance=False)


def found_for(X, count, angle=False):
    return nearest(search_points(as_rows(X), 50, angle=angle), count)


def test_small_data_is_searched_exactly(rng):
    X = rng.normal(size=(300, 7)).astype(np.float32)
    np.testing.assert_array_equal(found_for(X, 5), truth(X, 5))


def test_a_far_origin_does_not_blur_the_distances(rng):
    X = (rng.normal(size=(200, 3)) + 1000).astype(np.float32)
    same = found_for(X, 5) == truth(X.astype(np.float64), 5)
    assert same.mean() > 0.99


def test_directions_are_compared_where_asked(rng):
    X = rng.random((200, 6)).astype(np.float32) * rng.uniform(0.1, 10, (200, 1)).astype(np.float32)
    found = found_for(X, 4, angle=True)  # of rows around their mean
    assert (found == truth(X - X.mean(0), 4, "cosine")).mean() > 0.99


def test_sparse_rows_and_images_are_rows_too(rng):
    X = sp.random(120, 50, density=0.2, format="csr", random_state=rng, dtype=np.float32)
    np.testing.assert_array_equal(found_for(X, 3), truth(X.toarray(), 3))
    images = rng.random((50, 1, 4, 4), dtype=np.float32)
    np.testing.assert_array_equal(found_for(images, 3), truth(images.reshape(50, 16), 3))


def test_a_row_is_never_its_own_neighbour_even_among_equals():
    X = np.ones((20, 2), np.float32)
    found = found_for(X, 5)
    assert found.shape == (20, 5)
    assert (found != np.arange(20)[:, None]).all()


@pytest.mark.parametrize("n", [2, 3])
def test_fewer_rows_than_neighbours_give_all_others(n):
    found = found_for(np.eye(n, dtype=np.float32), 10)
    assert found.shape == (n, n - 1)
    assert (np.sort(found, axis=1) == [sorted(set(range(n)) - {i}) for i in range(n)]).all()


@pytest.fixture(params=["faiss", "faiss, a byte for each component", "PyTorch alone"])
def approximate(request, monkeypatch):
    """An approximate search, of few rows already."""
    monkeypatch.setattr(search, "EXACT_ROWS", 100)
    monkeypatch.setattr(cells, "BLOCK", 300)
    if request.param == "PyTorch alone":
        monkeypatch.setattr(engine, "installed", lambda: False)
    else:
        pytest.importorskip("faiss")
    if "byte" in request.param:
        monkeypatch.setattr(engine, "FLOAT_BYTES", 0)


def clustered(rng, n=4000):
    centres = rng.normal(size=(20, 30)) * 2
    return (centres[rng.integers(0, 20, n)] + rng.normal(size=(n, 30))).astype(np.float32)


def recall(found, exact):
    return np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(found, exact, strict=True)])


def test_above_the_limit_nearly_all_neighbours_are_found(rng, approximate):
    X = clustered(rng)
    found = found_for(X, 10)
    assert (found != np.arange(4000)[:, None]).all()
    assert recall(found, truth(X, 10)) > 0.9
    np.testing.assert_array_equal(found, found_for(X, 10))


def test_rows_that_are_all_equal_have_neighbours_too(approximate):
    found = found_for(np.ones((300, 4), np.float32), 5)
    assert found.min() >= 0
    assert found.max() < 300
    assert (found != np.arange(300)[:, None]).all()


def test_neighbours_of_the_first_rows_alone_are_those_found_for_all(rng, approximate):
    points = torch.from_numpy(clustered(rng, 1000))
    np.testing.assert_array_equal(nearest(points, 10, first=70), nearest(points, 10)[:70])


def test_the_parts_in_which_points_come_do_not_matter(rng):
    pytest.importorskip("faiss")
    points = torch.from_numpy(clustered(rng))
    one = engine.nearest(lambda: [points], 4000, 10)
    many = engine.nearest(lambda: points.split(300), 4000, 10)
    assert (one == many).mean() > 0.999  # of two that are equally near, rounding decides


def test_few_points_in_the_cells_searched_still_give_others_all_different(rng, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(engine, "PROBES", 1)
    monkeypatch.setattr(engine, "POINTS_A_CELL", 2)
    found = engine.nearest(lambda: [torch.from_numpy(clustered(rng, 200))], 200, 30)
    assert (found != np.arange(200)[:, None]).all()
    assert (found >= 0).all()
    assert (found < 200).all()


def test_what_is_missing_is_said_where_there_are_many_rows(rng, monkeypatch):
    monkeypatch.setattr(search, "EXACT_ROWS", 100)
    monkeypatch.setattr(search, "MANY_ROWS", 200)
    monkeypatch.setattr(engine, "installed", lambda: False)
    with pytest.warns(SelfViewWarning, match=r"selfview\[ann\]"):
        found_for(clustered(rng, 300), 5)


def test_rows_on_disk_are_searched_in_blocks_and_have_the_neighbours_of_rows_in_memory(
    rng, tmp_path, monkeypatch, approximate
):
    X = clustered(rng)
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr(base, "CHUNK_BYTES", 500 * 30 * 4)
    monkeypatch.setattr(on_disk, "BUFFER_BYTES", 700 * 30 * 4)
    monkeypatch.setattr(projection, "CACHED_ENTRIES", 0)
    stored = as_rows(np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert not stored.stored.fits
    found = [
        Neighbours(rows, rows.pick, count=10, angle=False).numbers for rows in (stored, as_rows(X))
    ]
    assert (found[0] == found[1]).mean() > 0.999


def drawn(X, folder=None, about=None):
    index = np.arange(len(X))
    step = Step(torch.from_numpy(X), 0.0, torch.Generator().manual_seed(0), index)
    rows = as_rows(X)
    found = Neighbours(rows, rows.take, count=4, angle=False, about=about, folder=folder)
    return found.draw(step)


def test_what_was_found_is_kept_with_the_run(rng, tmp_path, monkeypatch):
    X = rng.random((30, 3), dtype=np.float32)
    first = drawn(X, tmp_path)
    kept = tmp_path / Neighbours.FILE
    assert kept.exists()
    with monkeypatch.context() as without:
        without.setattr(search, "nearest", None)
        torch.testing.assert_close(drawn(X, tmp_path), first)
    kept.write_bytes(b"damaged")
    torch.testing.assert_close(drawn(X, tmp_path), first)
    other = rng.random((40, 3), dtype=np.float32)
    torch.testing.assert_close(drawn(other, tmp_path), drawn(other))


def test_what_was_found_is_taken_for_the_same_rows_up_to_rounding(rng, tmp_path, monkeypatch):
    X = rng.random((30, 3), dtype=np.float32)
    first = drawn(X, tmp_path, dict(mean_norm=1.0, column_stds=(0.3, 2.0)))
    monkeypatch.setattr(search, "nearest", None)
    again = drawn(X, tmp_path, dict(mean_norm=1.0 + 1e-15, column_stds=(0.1 + 0.2, 2.0)))
    torch.testing.assert_close(again, first)
    with pytest.raises(TypeError, match="not callable"):
        drawn(X, tmp_path, dict(mean_norm=1.1, column_stds=(0.3, 2.0)))


@pytest.mark.filterwarnings("ignore::selfview.errors.SelfViewWarning")  # emulated on some
@pytest.mark.parametrize("groups", [None, np.arange(300) % 2])
def test_a_fit_in_bfloat16_searches_in_float32(rng, tmp_path, groups):
    X = rng.normal(size=(300, 20)).astype(np.float32)
    found = {}
    for precision in ("float32", "bfloat16"):
        folder = tmp_path / precision
        options = dict(epochs=1, random_state=0, verbose=0, precision=precision)
        SelfView(**options, checkpoint=folder).fit(X, groups=groups)
        found[precision] = read_state(folder / Neighbours.FILE)[0]["numbers"]
    assert torch.equal(found["float32"], found["bfloat16"])


def ring(n=40, count=2, chance=0.0):
    """Neighbours of rows on a ring, which draw numbers of rows instead of rows."""
    at = np.linspace(0, 2 * np.pi, n, endpoint=False)
    X = np.stack([np.cos(at), np.sin(at)], 1).astype(np.float32)
    options = dict(count=count, angle=False, components=0, walk=lambda _: chance)
    return Neighbours(as_rows(X), torch.as_tensor, **options)


def far(neighbours, times=200):
    """Along the ring, how far from every row its draws are."""
    rows, n = np.arange(neighbours.n), neighbours.n
    generator = torch.Generator().manual_seed(0)
    drawn = [neighbours.draw(Step(torch.empty(0), 0.0, generator, rows)) for _ in range(times)]
    ahead = (np.stack(drawn) - rows) % n
    return np.minimum(ahead, n - ahead)


def test_without_a_walk_only_neighbours_are_drawn():
    assert set(far(ring()).ravel()) == {1}


def test_a_walk_passes_on_to_neighbours_of_neighbours_and_never_ends_where_it_began():
    distances = far(ring(chance=1.0))
    assert set(distances.ravel()) == {1, 2, 3, 4}  # the first neighbour, and three more


def test_a_walk_goes_on_as_often_as_it_is_told():
    X = np.cumsum(1.5 ** -np.arange(12.0))[:, None].astype(np.float32)  # the next row is nearest
    options = dict(count=1, angle=False, components=0, walk=lambda _: 0.3)
    line = Neighbours(as_rows(X), torch.as_tensor, **options)
    rows, generator = np.zeros(20_000, np.intp), torch.Generator().manual_seed(0)
    ends = line.draw(Step(torch.empty(0), 0.0, generator, rows)).numpy()
    shares = np.bincount(ends, minlength=5)
    np.testing.assert_allclose(shares[1:] / len(ends), binom(3, 0.3).pmf(range(4)), atol=0.01)


def test_pairs_are_rows_and_their_neighbours():
    some, near = ring().pairs(10, seed=0)
    assert len(some) == 10
    assert set((near - some) % 40) <= {1, 39}
