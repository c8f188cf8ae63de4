"""HDF5, Zarr, AnnData, Excel and tensor files, written by the libraries that users take."""

import os
from pathlib import Path

import numpy as np
import pytest
import samples
from scipy.sparse import issparse, random

from selfview.data import guard, load_preparation, read
from selfview.errors import FileFormatError, InputError

pytestmark = pytest.mark.filterwarnings("ignore:Writing zarr v2")  # of anndata

WRITERS = {
    "a.h5": samples.write_h5,
    "a.hdf5": samples.write_h5,
    "a.zarr": samples.write_zarr,
    "a.pt": samples.write_pt,
    "a.safetensors": samples.write_safetensors,
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_only_matrix_of_a_file_is_its_rows(name: str, tmp_path: Path) -> None:
    path = WRITERS[name](tmp_path / name)
    found = read(path)
    np.testing.assert_array_equal(found.X, samples.ROWS)
    kind = "tables/kind" if "h" in path.suffix else "kind"
    np.testing.assert_array_equal(read(path, label=kind).y, np.arange(6) % 2)


def test_texts_of_an_hdf5_file_name_the_rows(tmp_path: Path) -> None:
    found = read(samples.write_h5(tmp_path / "a.h5"), id="names")
    assert found.ids is not None
    assert found.ids.tolist() == [f"r{i}" for i in range(6)]


def test_a_file_of_several_matrices_needs_a_name(tmp_path: Path) -> None:
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["one"], file["two"] = samples.ROWS, 2 * samples.ROWS
    with pytest.raises(InputError, match=r"several arrays; name one with --array: one, two"):
        read(tmp_path / "a.h5")
    np.testing.assert_array_equal(read(tmp_path / "a.h5", array="two").X, 2 * samples.ROWS)
    with pytest.raises(InputError, match="no array 'three'"):
        read(tmp_path / "a.h5", array="three")


def test_a_lone_tensor_and_a_lone_zarr_array_need_no_name(tmp_path: Path) -> None:
    import torch
    import zarr

    torch.save(torch.from_numpy(samples.ROWS).to(torch.bfloat16), tmp_path / "a.pt")
    np.testing.assert_allclose(read(tmp_path / "a.pt").X, samples.ROWS, rtol=1e-2)
    for version in (2, 3):
        path = tmp_path / f"v{version}.zarr"
        zarr.create_array(path, data=samples.ROWS, zarr_format=version)
        np.testing.assert_array_equal(read(path).X, samples.ROWS)


def test_pictures_of_an_hdf5_file_are_scaled_to_one(tmp_path: Path) -> None:
    import h5py

    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 5), dtype=np.uint8)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"] = pixels
    np.testing.assert_allclose(read(tmp_path / "a.h5").X[:, 0], pixels / 255, rtol=1e-6)


def test_bfloat16_of_safetensors_is_what_torch_reads(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    save_file({"x": rows}, tmp_path / "a.safetensors")
    np.testing.assert_array_equal(read(tmp_path / "a.safetensors").X, rows.float().numpy())


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
@pytest.mark.parametrize("sparse", [True, False])
def test_anndata_gives_cells_with_their_columns(suffix: str, sparse: bool, tmp_path: Path) -> None:
    data = samples.cells(sparse=sparse)
    path = tmp_path / f"cells{suffix}"
    data.write_h5ad(path) if suffix == ".h5ad" else data.write_zarr(path)
    found = read(path, label="type")
    dense = data.X.toarray() if sparse else data.X
    rows = found.X.toarray() if sparse else found.X
    assert issparse(found.X) == sparse
    np.testing.assert_array_equal(rows, dense)
    assert found.ids.tolist() == data.obs_names.tolist()
    assert found.classes == ("B", "N", "T")
    assert found.y.tolist() == [2, 0, 2, 1, 0, 2, 1, 2, -1]
    assert set(found.further) == {"donor", "depth"}
    assert found.further["donor"].tolist() == data.obs["donor"].tolist()
    assert read(path, id="donor").ids[4] == "d1"


@pytest.mark.parametrize("suffix", [".h5ad", ".zarr"])
def test_layers_and_representations_can_be_chosen(suffix: str, tmp_path: Path) -> None:
    data = samples.cells()
    path = tmp_path / f"cells{suffix}"
    data.write_h5ad(path) if suffix == ".h5ad" else data.write_zarr(path)
    np.testing.assert_array_equal(read(path, layer="twice").X.toarray(), 2 * data.X.toarray())
    components = read(path, use_rep="X_pca")
    np.testing.assert_array_equal(components.X, data.obsm["X_pca"])
    assert components.feature_names[1] == "X_pca 2"
    with pytest.raises(InputError, match="no layer 'raw'; its layers are: twice"):
        read(path, layer="raw")
    with pytest.raises(InputError, match="can't both be given"):
        read(path, layer="twice", use_rep="X_pca")
    with pytest.raises(InputError, match=r"no column 'typ' of obs.*did you mean 'type'"):
        read(path, label="typ")


def test_new_cells_are_read_as_those_of_the_fit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = samples.cells()
    data.write_h5ad(tmp_path / "a.h5ad")
    fitted = read(tmp_path / "a.h5ad", layer="twice", label="type")
    fitted.preparation.save(tmp_path)
    how = load_preparation(tmp_path)
    assert how == fitted.preparation
    more = data[:, ["gene4", "gene0", "gene1", "gene3", "gene2"]].copy()
    more.obs = more.obs[["donor"]]
    more.write_h5ad(tmp_path / "b.h5ad")
    found = read(tmp_path / "b.h5ad", preparation=how)
    np.testing.assert_array_equal(found.X.toarray(), 2 * data.X.toarray())
    assert "put into the order of the fit" in caplog.text
    fewer = data[:, 1:].copy()
    fewer.write_h5ad(tmp_path / "c.h5ad")
    with pytest.raises(InputError, match="lacks variables 'gene0'"):
        read(tmp_path / "c.h5ad", preparation=how)


def test_extra_variables_of_new_cells_are_left_out(tmp_path: Path) -> None:
    data = samples.cells(sparse=False)
    data[:, 1:4].copy().write_h5ad(tmp_path / "a.h5ad")
    data.write_h5ad(tmp_path / "b.h5ad")
    how = read(tmp_path / "a.h5ad").preparation
    found = read(tmp_path / "b.h5ad", preparation=how)
    np.testing.assert_array_equal(found.X, data.X[:, 1:4])
    assert "2 others left out" in found.messages[0]


def test_places_of_cells_are_their_coordinates(tmp_path: Path) -> None:
    data = samples.cells()
    data.obsm["spatial"] = np.arange(18.0).reshape(9, 2) / 3
    data.write_h5ad(tmp_path / "a.h5ad")
    found = read(tmp_path / "a.h5ad")
    np.testing.assert_array_equal(found.coordinates, data.obsm["spatial"])


def test_a_csc_matrix_is_read_too(tmp_path: Path) -> None:
    data = samples.cells()
    dense = data.X.toarray()
    data.X = data.X.tocsc()
    data.write_h5ad(tmp_path / "a.h5ad")
    np.testing.assert_array_equal(read(tmp_path / "a.h5ad").X.toarray(), dense)


@pytest.mark.parametrize("packed", [None, "gzip"])
@pytest.mark.parametrize("sparse", [True, False])
def test_large_matrices_stay_on_disk(
    packed: str | None, sparse: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import anndata

    monkeypatch.setattr(guard, "IN_MEMORY", 1000)
    monkeypatch.setattr(guard, "BLOCK", 4096)
    X = random(500, 40, 0.3, "csr", dtype=np.float32, random_state=1)
    data = anndata.AnnData(X if sparse else X.toarray())
    data.write_h5ad(tmp_path / "a.h5ad", compression=packed)
    found = read(tmp_path / "a.h5ad")
    assert isinstance(found.X.data if sparse else found.X, np.memmap)
    rows = found.X.toarray() if sparse else found.X
    np.testing.assert_array_equal(rows, X.toarray())
    order = np.random.default_rng(0).permutation(40)
    data[:, order].copy().write_h5ad(tmp_path / "b.h5ad", compression=packed)
    again = read(tmp_path / "b.h5ad", preparation=found.preparation).X
    assert isinstance(again.data if sparse else again, np.memmap)
    np.testing.assert_array_equal(again.toarray() if sparse else again, X.toarray())


@pytest.mark.parametrize("name", ["a.h5", "a.zarr", "a.safetensors"])
def test_large_arrays_stay_on_disk(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "IN_MEMORY", 10)
    path = WRITERS[name](tmp_path / name)
    rows = read(path).X
    assert isinstance(rows, np.memmap)
    np.testing.assert_array_equal(rows, samples.ROWS)


def test_an_excel_table_is_read_as_a_csv(tmp_path: Path) -> None:
    from_csv = read(samples.write_csv(tmp_path / "a.csv"), id="name", label="kind")
    from_excel = read(samples.write_xlsx(tmp_path / "a.xlsx"), id="name", label="kind")
    np.testing.assert_array_equal(from_excel.X, from_csv.X)
    assert from_excel.ids.tolist() == from_csv.ids.tolist()
    assert from_excel.classes == from_csv.classes
    assert from_excel.preparation == from_csv.preparation


def test_a_cell_without_a_number_is_named(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, 2], [None, 3], [4, "many"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(FileFormatError, match=r"1 of 3 rows.*'many' is not a number"):
        read(tmp_path / "a.xlsx")
    assert len(read(tmp_path / "a.xlsx", skip_bad=True)) == 2  # a gap is filled, as in a .csv


# --- hostile files --------------------------------------------------------------------------


def test_hdf5_links_are_not_followed(tmp_path: Path) -> None:
    import h5py

    samples.write_h5(tmp_path / "other.h5")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"] = h5py.ExternalLink("other.h5", "tables/rows")
        file["soft"] = h5py.SoftLink("/X")
    with pytest.raises(InputError, match=r"a\.h5 holds no arrays"):
        read(tmp_path / "a.h5")
    samples.write_h5ad(tmp_path / "a.h5ad")
    with h5py.File(tmp_path / "a.h5ad", "r+") as file:
        del file["X"]
        file["X"] = h5py.ExternalLink("other.h5", "tables/rows")
    with pytest.raises(FileFormatError, match="is a link"):
        read(tmp_path / "a.h5ad")


def test_hdf5_datasets_that_lie_in_other_files_are_an_error(tmp_path: Path) -> None:
    import h5py

    (tmp_path / "secret").write_bytes(bytes(96))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(
            "X", (6, 4), "f4", external=[(str(tmp_path / "secret"), 0, h5py.h5f.UNLIMITED)]
        )
    with pytest.raises(FileFormatError, match="lies in other files"):
        read(tmp_path / "a.h5")
    samples.write_h5(tmp_path / "other.h5")
    layout = h5py.VirtualLayout((6, 4), "f4")
    layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "tables/rows", (6, 4))
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
    with pytest.raises(FileFormatError, match="lies in other files"):
        read(tmp_path / "b.h5")


def test_an_hdf5_file_that_declares_terabytes_is_an_error(tmp_path: Path) -> None:
    import h5py

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", (10**9, 1000), "f4", chunks=(1000, 1000))
    assert (tmp_path / "a.h5").stat().st_size < 10_000
    with pytest.raises(FileFormatError, match="which it can't hold"):
        read(tmp_path / "a.h5")


def test_a_zarr_store_that_declares_terabytes_is_an_error(tmp_path: Path) -> None:
    import zarr

    zarr.create_array(tmp_path / "a.zarr", shape=(10**9, 1000), dtype="f4", chunks=(1000, 1000))
    with pytest.raises(FileFormatError, match="which it can't hold"):
        read(tmp_path / "a.zarr")


def test_zarr_links_are_not_followed(tmp_path: Path) -> None:
    path = samples.write_zarr(tmp_path / "a.zarr")
    os.symlink("/etc", path / "other")
    with pytest.raises(FileFormatError, match="link"):
        read(path)


def test_a_zarr_store_of_pickles_is_never_unpickled(tmp_path: Path) -> None:
    import json
    import pickle

    path = tmp_path / "a.zarr"
    path.mkdir()
    about = {
        "zarr_format": 2, "shape": [2, 2], "chunks": [2, 2], "dtype": "|O", "compressor": None,
        "fill_value": None, "order": "C", "filters": [{"id": "pickle", "protocol": 4}],
    }  # fmt: skip
    (path / ".zarray").write_text(json.dumps(about))
    (path / "0.0").write_bytes(pickle.dumps(Evil(tmp_path)))
    with pytest.raises((FileFormatError, InputError), match=r"a\.zarr"):
        read(path)
    about["dtype"] = "<f4"
    (path / ".zarray").write_text(json.dumps(about))
    with pytest.raises(FileFormatError, match=r"a\.zarr"):
        read(path)
    about |= {"filters": None, "compressor": {"id": "pickle", "protocol": 4}}
    (path / ".zarray").write_text(json.dumps(about))
    with pytest.raises(FileFormatError, match=r"a\.zarr"):
        read(path)
    assert not (tmp_path / "was here").exists()


def test_a_pickle_that_calls_itself_pt_is_never_unpickled(tmp_path: Path) -> None:
    import pickle

    import torch

    (tmp_path / "a.pt").write_bytes(pickle.dumps(Evil(tmp_path)))
    torch.save({"rows": Evil(tmp_path)}, tmp_path / "b.pt")
    for name in ("a.pt", "b.pt"):
        with pytest.raises(FileFormatError, match=name):
            read(tmp_path / name)
    assert not (tmp_path / "was here").exists()


def test_a_zarr_store_is_read_by_known_codecs_only(tmp_path: Path) -> None:
    import zarr
    from numcodecs import BitRound

    zarr.create_array(tmp_path / "a.zarr", data=samples.ROWS, zarr_format=2, filters=[BitRound(5)])
    with pytest.raises(FileFormatError, match="packed by bitround"):
        read(tmp_path / "a.zarr")


class Evil:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.folder / "was here"),)


def test_a_file_of_python_objects_is_refused_in_our_words(tmp_path: Path) -> None:
    import torch

    torch.save(torch.nn.Linear(2, 2), tmp_path / "model.pt")
    with pytest.raises(FileFormatError, match="holds Python objects, which are never"):
        read(tmp_path / "model.pt")


def test_the_first_sheet_with_a_table_is_read_and_told(tmp_path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "Notes"
    book.active.append(["read me"])
    sheet = book.create_sheet("Data")
    sheet.append([None, None, "size"])  # as pandas writes its index, and a column without a name
    for i in range(6):
        sheet.append([f"r{i}", i / 3, i * i])
    book.save(tmp_path / "a.xlsx")
    found = read(tmp_path / "a.xlsx")
    assert found.feature_names == ("column 2", "size")
    assert list(found.ids) == [f"r{i}" for i in range(6)]
    np.testing.assert_allclose(found.X[:, 1], np.arange(6) ** 2)


def test_the_sheet_of_several_that_is_read_is_named(tmp_path: Path, caplog) -> None:
    import pandas as pd

    with pd.ExcelWriter(tmp_path / "a.xlsx") as writer:
        for name in ("2023", "2024"):
            pd.DataFrame({"a": range(5), "b": range(5)}).to_excel(writer, sheet_name=name)
    read(tmp_path / "a.xlsx")
    assert "its sheet '2023' is read, and not '2024'" in caplog.text


def write_book(path: Path, rows: int = 6) -> Path:
    import pandas as pd

    with pd.ExcelWriter(path) as writer:
        for i, name in enumerate(("Notes", "2023", "2024")):
            frame = {"size": np.arange(rows) ** 2 + 10.0 * i, "body": [f"tissue {i}"] * rows}
            pd.DataFrame(frame).to_excel(writer, sheet_name=name, index=False)
    return path


def test_a_sheet_that_is_named_is_read_and_by_its_name_again(tmp_path: Path) -> None:
    path = write_book(tmp_path / "a.xlsx")
    fitted = read(path, sheet="2024", columns="size")
    np.testing.assert_allclose(fitted.X[:, 0], np.arange(6) ** 2 + 20)
    assert not fitted.messages
    fitted.preparation.save(tmp_path / "run")
    how = load_preparation(tmp_path / "run")
    new = write_book(tmp_path / "b.xlsx", rows=9)
    np.testing.assert_allclose(how.read(new).X[:, 0], np.arange(9) ** 2 + 20)
    np.testing.assert_allclose(how.read(new, sheet=2023).X[:, 0], np.arange(9) ** 2 + 10)
    (tmp_path / "c.csv").write_text("size\n7\n8\n")
    assert how.read(tmp_path / "c.csv").X[:, 0].tolist() == [7, 8]  # which has no sheets


def test_texts_of_a_sheet_are_read_by_its_name_again(tmp_path: Path) -> None:
    fitted = read(write_book(tmp_path / "a.xlsx"), text="body", sheet="2023")
    assert fitted.snippets is not None
    assert fitted.snippets[0] == "tissue 1"
    again = fitted.preparation.read(tmp_path / "a.xlsx")
    assert again.snippets[0] == "tissue 1"


def test_a_sheet_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    path = write_book(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="no sheet 'x'; name one with --sheet: 'Notes', '2023'"):
        read(path, sheet="x")
    with pytest.raises(InputError, match=r"sheet means nothing for \.csv"):
        read(samples.write_csv(tmp_path / "a.csv"), sheet="x")


def test_large_sheets_of_one_file_are_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("selfview.data.guard.IN_MEMORY", 0)
    path = write_book(tmp_path / "a.xlsx")
    found = [read(path, sheet=name, columns="size").X[0, 0] for name in ("2023", "2024", "2023")]
    assert found == [10, 20, 10]
