"""PCA, NMF, LLE, Isomap and raw features, beside scikit-learn's own."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.optimize import lsq_linear
from sklearn import decomposition, manifold
from sklearn.base import clone

from selfview.baselines import LLE, NMF, PCA, Isomap, Raw, manifolds
from selfview.errors import FileFormatError, InputError
from selfview.saving.tensor_file import read_state, write_state

ALL = [
    Raw(),
    PCA(3, random_state=0),
    NMF(3, random_state=0, max_iter=2000),
    LLE(3, random_state=0),
    Isomap(3, random_state=0),
]
EACH = pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)


@pytest.fixture
def rows(rng):
    """200 non-negative rows of 12 features on a smooth surface with a little noise."""
    t = rng.uniform(size=(200, 3))
    return np.abs(np.tanh(t @ rng.normal(size=(3, 12))) + 0.05 * rng.normal(size=(200, 12)))


def test_pca_gives_scikit_learns_embedding(rows):
    ours = PCA(3, random_state=0).fit(rows[:150])
    theirs = decomposition.PCA(3, random_state=0).fit(rows[:150])
    np.testing.assert_allclose(ours.transform(rows), theirs.transform(rows), atol=1e-12)


def test_lle_gives_scikit_learns_embedding(rows):
    ours = LLE(3, n_neighbors=8).fit(rows[:150])
    theirs = manifold.LocallyLinearEmbedding(n_neighbors=8, n_components=3, eigen_solver="dense")
    theirs.fit(rows[:150])
    np.testing.assert_allclose(ours.transform(rows), theirs.transform(rows), atol=1e-9)


def test_isomap_gives_scikit_learns_embedding(rows):
    ours = Isomap(3, n_neighbors=8).fit(rows[:150])
    theirs = manifold.Isomap(n_neighbors=8, n_components=3).fit(rows[:150])
    np.testing.assert_allclose(ours.transform(rows), theirs.transform(rows), atol=1e-9)


def test_nmf_solves_each_row_exactly(rows):
    model = NMF(3, random_state=0, max_iter=2000).fit(rows)
    parts = model.arrays_["components"]
    expected = [lsq_linear(parts.T, x, bounds=(0, np.inf), tol=1e-12).x for x in rows[:20]]
    np.testing.assert_allclose(model.transform(rows[:20]), expected, atol=1e-5)


def test_nmf_rebuilds_as_well_as_scikit_learns(rows):
    theirs = decomposition.NMF(3, random_state=0, max_iter=2000)
    W = theirs.fit_transform(rows)
    model = NMF(3, random_state=0, max_iter=2000).fit(rows)
    ours = model.transform(rows) @ model.arrays_["components"]
    assert np.square(rows - ours).sum() <= np.square(rows - W @ theirs.components_).sum() * 1.001


@EACH
def test_a_row_is_embedded_alone_as_among_others(model, rows):
    model.fit(rows)
    alone = np.concatenate([np.asarray(model.transform(row[None])) for row in rows[:5]])
    np.testing.assert_allclose(alone, model.transform(rows)[:5], atol=1e-9)


@EACH
def test_images_are_their_flattened_rows(model, rows):
    flat = model.fit(rows).transform(rows)
    assert model.fit(rows.reshape(-1, 1, 3, 4)).n_features_in_ == 12
    np.testing.assert_array_equal(model.transform(rows.reshape(-1, 1, 3, 4)), flat)


@EACH
def test_tensors_are_arrays(model, rows):
    flat = model.fit(rows).transform(rows)
    np.testing.assert_allclose(model.transform(torch.from_numpy(rows)), flat, atol=1e-5)


@EACH
def test_sparse_rows_give_the_dense_embedding(model, rows):
    rows = np.where(rows > 0.3, rows, 0.0)
    dense = np.asarray(model.fit_transform(rows))
    sparse = model.fit_transform(sp.csr_matrix(rows))
    sparse = sparse.toarray() if sp.issparse(sparse) else sparse
    signs = np.sign((dense * sparse).sum(0)) if isinstance(model, PCA | LLE) else 1.0
    np.testing.assert_allclose(sparse * signs, dense, atol=1e-5)


@pytest.mark.parametrize(
    "model", [PCA(3), NMF(3), LLE(3), Isomap(3), Raw()], ids=lambda m: type(m).__name__
)
def test_sparse_rows_are_never_made_dense(model, rows, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("made dense")

    sparse = sp.csr_array(np.where(rows > 0.3, rows, 0.0))
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix):
        # A part of it may be: results, Isomap's queries and LLE's neighbours are small.
        plain = kind.toarray

        def guarded(self, *args, plain=plain, **options):
            return refuse() if self.shape == sparse.shape else plain(self, *args, **options)

        monkeypatch.setattr(kind, "toarray", guarded)
    monkeypatch.setattr(manifolds, "WEIGHT_BYTES", 8 * 12 * 10 * 16)  # 16 rows at a time
    Z = model.set_params(random_state=0).fit(sparse).transform(sparse)
    assert np.isfinite(Z.data if sp.issparse(Z) else Z).all()


@EACH
def test_the_seed_decides_the_bits(model, rng):
    X = rng.random((300, 12))  # so many that Isomap's eigensolver starts at random
    before = np.random.get_state()[1].copy()
    one, two = (clone(model).fit_transform(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # nobody else's is touched


@EACH
def test_a_saved_model_gives_the_same_bits(model, rows, tmp_path):
    before = model.fit(rows).transform(rows)
    model.save(tmp_path)
    loaded = type(model).load(tmp_path)
    np.testing.assert_array_equal(loaded.transform(rows), before)
    assert loaded.get_params() == model.get_params()


@pytest.mark.parametrize("kind", [LLE, Isomap])
def test_a_graph_of_sparse_rows_is_saved_too(kind, rows, tmp_path):
    sparse = sp.csr_array(np.where(rows > 0.3, rows, 0.0))
    model = kind(3).fit(sparse)
    model.save(tmp_path)
    np.testing.assert_array_equal(kind.load(tmp_path).transform(sparse), model.transform(sparse))


@pytest.mark.parametrize("limit", [4000, 100])  # below it the exact eigensolver, else ARPACK
def test_lle_of_sparse_rows_is_scikit_learns_of_dense_ones(limit, rows, monkeypatch):
    monkeypatch.setattr(manifolds, "DENSE_ROWS", limit)
    rows = np.where(rows > 0.3, rows, 0.0)
    ours = LLE(3, n_neighbors=8, random_state=0).fit(sp.csr_array(rows[:150]))
    theirs = manifold.LocallyLinearEmbedding(n_neighbors=8, n_components=3, eigen_solver="dense")
    theirs.fit(rows[:150])
    signs = np.sign((ours.arrays_["embedding"] * theirs.embedding_).sum(0))
    places = ours.transform(sp.csr_array(rows)) * signs
    np.testing.assert_allclose(places, theirs.transform(rows), atol=1e-6)
    np.testing.assert_allclose(ours.transform(rows) * signs, places, atol=1e-9)  # dense queries


@EACH
def test_damaged_files_are_named(model, rows, tmp_path):
    model.fit(rows).save(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors, meta = read_state(path)
    write_state(path, tensors, meta | {"shape_in": [13]})
    if tensors:  # raw features have no arrays that 13 features could contradict
        with pytest.raises(FileFormatError, match=r"model\.safetensors"):
            type(model).load(tmp_path)
    write_state(path, tensors, meta | {"parameters": {"nonsense": 1}})
    with pytest.raises(FileFormatError, match=r"model\.safetensors"):
        type(model).load(tmp_path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FileFormatError, match=r"model\.safetensors"):
        type(model).load(tmp_path)


def test_a_model_of_another_class_is_refused(rows, tmp_path):
    PCA(3).fit(rows).save(tmp_path)
    with pytest.raises(InputError, match="holds a model of PCA, not of NMF"):
        NMF.load(tmp_path)


@pytest.mark.parametrize("kind", [LLE, Isomap])
def test_above_the_limit_is_refused_with_the_remedy(kind, rows):
    with pytest.raises(InputError, match=r"limit is max_rows=100.*fit_rows=100"):
        kind(3, max_rows=100).fit(rows)


@pytest.mark.parametrize("kind", [LLE, Isomap])
def test_the_stated_limit_is_twenty_thousand(kind):
    with pytest.raises(InputError, match=r"3 GB .* 20,001 rows, and its limit is max_rows=20,000"):
        kind(1).fit(np.zeros((20_001, 1)))


@pytest.mark.parametrize("kind", [LLE, Isomap])
def test_a_sample_is_fitted_and_all_rows_are_placed(kind, rows):
    model = kind(3, max_rows=150, fit_rows=150, random_state=0)
    Z = model.fit_transform(rows)
    assert Z.shape == (200, 3)
    assert len(model.arrays_["embedding"]) == 150
    np.testing.assert_array_equal(Z, model.transform(rows))


def test_negative_entries_are_named_to_nmf(rows):
    rows[7, 3] = -2.0
    for X in (rows, sp.csr_array(rows)):
        with pytest.raises(InputError, match="-2 at row 7, column 3"):
            NMF(3).fit(X)


def test_more_components_than_features_are_refused(rows):
    for kind in (PCA, NMF, LLE, Isomap):
        with pytest.raises(InputError, match="n_components=13"):
            kind(13).fit(rows)


def test_rows_that_are_all_equal_do_not_end_in_nan():
    X = np.ones((40, 12))
    for model in (PCA(2), NMF(2), LLE(2), Isomap(2)):
        assert np.isfinite(model.fit_transform(X)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The number of connected components:UserWarning")
def test_spoken_digits_score_as_the_paper_prints(real_data):
    from selfview import evaluate, load_dataset

    digits = load_dataset("fsdd")
    for kind, expected in ((PCA, 0.762), (NMF, 0.776), (LLE, 0.642)):
        Z = kind(10, random_state=0).fit_transform(digits.X)
        scores = evaluate(Z, digits.y, measures=["linear"])
        assert scores["linear_accuracy"] == pytest.approx(expected, abs=0.015), kind
