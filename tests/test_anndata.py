"""`selfview.anndata`: what scanpy's users call, and mass-spectrometry images as AnnData."""

import sys
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from selfview import InputError, SelfView
from selfview.anndata import embed, read_imzml
from selfview.data import read

sys.path.insert(0, str(Path(__file__).parent / "data"))
import samples

FEW = dict(n_components=3, epochs=2, verbose=0)


@pytest.fixture
def cells(blobs):
    X = blobs[0]
    numbers = np.arange(240)
    donors = pd.DataFrame({"donor": (numbers % 2).astype(str)}, index=numbers.astype(str))
    data = anndata.AnnData(X - X.min(), obs=donors)
    data.layers["twice"] = 2 * data.X
    data.obsm["X_pca"] = data.X[:, :5]
    return data


def test_the_embedding_is_that_of_selfview(cells):
    model = embed(cells, **FEW)
    expected = SelfView(random_state=0, **FEW).fit_transform(cells.X)
    np.testing.assert_array_equal(cells.obsm["X_selfview"], expected)
    np.testing.assert_array_equal(model.transform(cells.X), expected)
    assert cells.obsm["X_selfview"].dtype == np.float32


def test_uns_holds_the_parameters_as_those_of_scanpys_tools(cells):
    embed(cells, use_rep="X_pca", random_state=3, **FEW)
    about = cells.uns["selfview"]
    assert about["params"] == {"use_rep": "X_pca", "random_state": 3, **FEW}
    assert about["verdict"]
    embed(cells, key_added="other", **FEW)
    assert "other" in cells.obsm
    assert cells.uns["other"]["params"]["n_components"] == 3


@pytest.mark.parametrize("where", [{"layer": "twice"}, {"use_rep": "X_pca"}, {"use_rep": "X"}])
def test_rows_are_taken_from_where_they_are_named(cells, where):
    embed(cells, **where, **FEW)
    (name,) = where.values()
    rows = {"twice": 2 * cells.X, "X_pca": cells.obsm["X_pca"], "X": cells.X}[name]
    expected = SelfView(random_state=0, **FEW).fit_transform(rows)
    np.testing.assert_array_equal(cells.obsm["X_selfview"], expected)


def test_groups_are_a_column_of_obs(cells):
    embed(cells, groups="donor", **FEW)
    donor = np.asarray(cells.obs["donor"])
    expected = SelfView(random_state=0, **FEW).fit(cells.X, groups=donor).transform(cells.X)
    np.testing.assert_array_equal(cells.obsm["X_selfview"], expected)
    assert cells.uns["selfview"]["params"]["groups"] == "donor"


def test_clusters_are_a_column_of_obs(cells):
    model = embed(cells, n_clusters=3, **FEW)
    assert cells.obs["selfview"].astype(int).tolist() == model.labels_.tolist()
    assert list(cells.obs["selfview"].cat.categories) == ["0", "1", "2"]


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("sparse", [False, True])
def test_backed_files_are_embedded_as_those_in_memory(blobs, tmp_path, mode, sparse):
    X = np.maximum(blobs[0], 0)
    data = anndata.AnnData(csr_matrix(X) if sparse else X)
    data.write_h5ad(tmp_path / "a.h5ad")
    embed(data, **FEW)
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed=mode)
    embed(backed, **FEW)
    np.testing.assert_array_equal(backed.obsm["X_selfview"], data.obsm["X_selfview"])
    with pytest.raises(InputError, match=r"embed adata\.to_memory\(\)"):
        embed(backed[:50], **FEW)
    backed.file.close()


FILES = {
    "h5ad": (anndata.AnnData.write_h5ad, anndata.read_h5ad),
    "zarr": (anndata.AnnData.write_zarr, anndata.read_zarr),
}


@pytest.mark.filterwarnings("ignore:Writing zarr v2")
@pytest.mark.parametrize(("write", "read_back"), FILES.values(), ids=FILES)
def test_cells_and_what_was_learned_of_them_survive_a_file(cells, tmp_path, write, read_back):
    embed(cells, n_clusters=2, groups="donor", **FEW)
    write(cells, tmp_path / "a")
    found = read_back(tmp_path / "a")
    np.testing.assert_array_equal(found.obsm["X_selfview"], cells.obsm["X_selfview"])
    assert found.uns["selfview"]["params"]["n_clusters"] == 2
    assert found.uns["selfview"]["verdict"] == cells.uns["selfview"]["verdict"]
    for column in ("donor", "selfview"):
        assert found.obs[column].tolist() == cells.obs[column].tolist()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"layer": "raw"}, r"layer must be one of adata\.layers \(twice\), got 'raw'"),
        ({"use_rep": "X_umap"}, r"use_rep must be one of adata\.obsm \(X_pca\), got 'X_umap'"),
        ({"groups": "batch"}, r"groups must be a column of adata\.obs \(donor\), got 'batch'"),
        ({"layer": "twice", "use_rep": "X_pca"}, "can't both be given"),
    ],
)
def test_a_name_that_is_not_there_is_an_error(cells, wrong, message):
    with pytest.raises(InputError, match=message):
        embed(cells, **wrong, **FEW)


def test_an_image_becomes_anndata_and_a_tissue_again(tmp_path):
    path = samples.write_imzml(tmp_path / "a.imzML")
    image = read_imzml(path, bins=64)
    image.write_h5ad(tmp_path / "a.h5ad")
    rows = read(path, bins=64)
    np.testing.assert_array_equal(image.X, rows.X)
    np.testing.assert_array_equal(image.obsm["spatial"], rows.coordinates)
    again = read(tmp_path / "a.h5ad")
    np.testing.assert_array_equal(again.coordinates, rows.coordinates)
    np.testing.assert_allclose(again.preparation.mz, image.var["mz"])


def test_a_file_without_a_matrix_names_what_it_has(cells, tmp_path):
    cells.X = None
    cells.write_h5ad(tmp_path / "a.h5ad")
    with pytest.raises(InputError, match=r"no X: name a layer \(twice\) or use_rep \(X_pca\)"):
        read(tmp_path / "a.h5ad")
