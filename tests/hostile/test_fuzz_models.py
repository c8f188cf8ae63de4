"""Mutated models, preparations, checkpoints and caches: they work, or give one of our errors."""

import json
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from mutate import TIMES, bytes_of, generator, in_time, json_of

from hostile import FIXTURE, encoder, join, split
from selfview import SelfView, SelfViewError, TablePreparation
from selfview.baselines import LLE, NMF, PCA, Isomap
from selfview.data import Dataset, load_preparation, read
from selfview.data.audio import AudioPreparation
from selfview.data.cache import cache_folder
from selfview.data.prepared import cached_dataset
from selfview.data.spectra import ImzMLPreparation, PeakPreparation
from selfview.data.tables import TableFilePreparation
from selfview.errors import FileFormatError
from selfview.saving.tensor_file import read_state, write_state

sys.path.append(str(Path(__file__).parents[1] / "data"))
import samples

pytestmark = pytest.mark.filterwarnings("ignore")  # mutated numbers overflow, and numpy says so

ROWS = np.random.default_rng(0).random((12, 6)).astype(np.float32)


def survives(use):
    """Whether `use` works; an error of ours is the only other way out."""
    try:
        with in_time():
            use()
    except SelfViewError as error:
        said = len(str(error))
    else:
        return True
    assert 0 < said < 2000
    return False


def mutated_header(rng, content):
    """A safetensors file whose header is of the right length, but tells something else."""
    header, body = split(content)
    if rng.random() < 0.7:  # within the description, which is JSON in a text of the header
        meta = json_of(rng, json.loads(header["__metadata__"]["meta"]))
        header["__metadata__"]["meta"] = json.dumps(meta)
    else:
        header = json_of(rng, header)
    return join(json.dumps(header), body)


MODELS = {
    "SelfView": (lambda folder: SelfView.load(folder, encoder=encoder()), 500),
    "PCA": (PCA.load, 250),
    "NMF": (NMF.load, 150),
    "LLE": (LLE.load, 250),
    "Isomap": (Isomap.load, 250),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(FIXTURE / "selfview", folder / "SelfView")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in (PCA, NMF, LLE, Isomap):
            kind(n_components=2, random_state=0).fit(ROWS).save(folder / kind.__name__)
    return folder


@pytest.mark.parametrize("kind", MODELS)
def test_a_mutated_model_works_or_gives_our_error(kind, models):
    load, cases = MODELS[kind]
    path = models / kind / "model.safetensors"
    content, rng = path.read_bytes(), generator(kind)
    (length,) = np.frombuffer(content[:8], "<u8")
    worked = 0

    def use():
        model = load(path.parent)
        try:
            out = model.transform(ROWS)
        except SelfViewError:
            return  # it is of rows of another shape now
        assert len(out) == len(ROWS)

    try:
        for i in range(cases * TIMES):
            if i % 3:
                path.write_bytes(mutated_header(rng, content))
            else:
                path.write_bytes(bytes_of(rng, content, int(length) + 500))
            worked += survives(use)
    finally:
        path.write_bytes(content)
    assert 0 < worked < cases * TIMES  # some mutations hurt, some don't


def preparations():
    """Each kind of preparation, who writes a file for it, and the file's name."""
    maxima = np.ones(8, np.float32)
    bins = ImzMLPreparation((50.0, 1000.0), 8, maxima)
    peaks = PeakPreparation(np.linspace(100, 900, 8), maxima)
    table = TableFilePreparation(("a", "b"), True, "kind", "name")
    numbers = TablePreparation().fit(samples.mixed_frame())
    names = tuple(numbers.feature_names_in_)
    mixed = TableFilePreparation(names, True, table=numbers.table_.to_json())
    return {
        "text": (load_preparation(FIXTURE / "preparation"), samples.write_jsonl, "a.jsonl"),
        "table": (table, samples.write_csv, "a.csv"),
        "mixed": (mixed, samples.write_mixed_csv, "a.csv"),
        "audio": (AudioPreparation(), samples.write_wav, "a.wav"),
        "imzml": (bins, samples.write_imzml, "a.imzML"),
        "peaks": (peaks, samples.write_imzml, "a.imzML"),
    }


@pytest.mark.parametrize("kind", ["text", "table", "mixed", "audio", "imzml", "peaks"])
def test_a_mutated_preparation_prepares_or_gives_our_error(kind, tmp_path):
    how, write, name = preparations()[kind]
    how.save(tmp_path)
    file, rng = write(tmp_path / name), generator(kind)
    plain, arrays = tmp_path / "preparation.json", tmp_path / "preparation.safetensors"
    text = plain.read_text()
    packed = arrays.read_bytes() if arrays.exists() else None
    for i in range(60 * TIMES):
        if i % 3 and packed is not None:
            arrays.write_bytes(packed if i % 3 == 1 else bytes_of(rng, packed, 300))
        if i % 3 == 1 or packed is None:
            plain.write_text(json.dumps(json_of(rng, json.loads(text))))
        elif i % 3 == 0:
            plain.write_bytes(bytes_of(rng, text.encode(), len(text)))
        survives(lambda: load_preparation(tmp_path).read(file, skip_bad=True))


def test_a_checkpoint_with_a_number_of_400_digits_is_refused(tmp_path):
    def fit():
        model = SelfView(encoder=encoder(), n_prototypes=4, epochs=2, random_state=0, verbose=0)
        model.set_params(checkpoint=tmp_path).fit(ROWS)

    fit()
    for path in tmp_path.glob("*.safetensors"):
        tensors, meta = read_state(path)
        if "history" in meta:
            meta["history"][-1]["marginal_error"] = 10**400
            write_state(path, tensors, meta)
    with pytest.raises(FileFormatError, match="absurd"):
        fit()


def test_mutated_checkpoints_are_resumed_or_refused(tmp_path):
    def fit():
        model = SelfView(encoder=encoder(), n_prototypes=4, epochs=2, random_state=0, verbose=0)
        model.set_params(checkpoint=tmp_path / "run").fit(ROWS)

    fit()
    kept = {path: path.read_bytes() for path in (tmp_path / "run").glob("*.safetensors")}
    rng = generator("checkpoint")
    for i in range(60 * TIMES):
        shutil.rmtree(tmp_path / "run")
        (tmp_path / "run").mkdir()
        for path, content in kept.items():
            header = mutated_header(rng, content)
            path.write_bytes(header if i % 2 else bytes_of(rng, content, 4000))
        survives(fit)


def test_a_mutated_cache_is_made_again(tmp_path):
    import scipy.sparse as sp

    source = tmp_path / "source"
    source.write_text("x")
    matrix = sp.csr_matrix(np.eye(5, 4, dtype=np.float32))
    rng = generator("cache")

    def load():
        data = Dataset("a", matrix, y=np.arange(5), ids=np.array(list("abcde")))
        return cached_dataset("toy", 1, [source], lambda: data)

    load()
    (folder,) = (cache_folder() / "prepared").iterdir()
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    for i in range(150 * TIMES):
        path = sorted(kept)[i % len(kept)]
        if path.suffix == ".json":
            facts = json_of(rng, json.loads(kept[path]))
            facts = facts if isinstance(facts, dict) and rng.random() < 0.9 else [facts]
        else:  # with sums that are right, as somebody who means harm would write them
            import zlib

            content = bytes_of(rng, kept[path], 200)
            path.write_bytes(content)
            facts = json.loads(kept[folder / "facts.json"])
            facts["files"][path.name] = [len(content), zlib.crc32(content)]
        (folder / "facts.json").write_text(json.dumps(facts))
        with in_time():
            found = load()  # never an error: the cache is only a copy
        assert found.X.shape[0] >= 0
        folder.mkdir(exist_ok=True)
        for each, content in kept.items():
            each.write_bytes(content)


@pytest.mark.parametrize("name", ["rows.npz", "sparse.npz", "rows.parquet", "image.imzML"])
def test_a_mutated_file_of_the_disk_cache_is_made_again_or_refused(name, tmp_path, monkeypatch):
    write = {
        "rows.npz": samples.write_npz,
        "sparse.npz": samples.write_csr,
        "rows.parquet": samples.write_parquet,
        "image.imzML": samples.write_imzml,
    }[name]
    monkeypatch.setattr("selfview.data.guard.IN_MEMORY", 0)  # all is large now, and mapped
    file, rng = write(tmp_path / name), generator(name)
    before = np.asarray(_dense(read(file).X))
    kept = {p: p.read_bytes() for p in sorted(cache_folder().rglob("*")) if p.is_file()}
    assert kept
    for i in range(60 * TIMES):
        path = list(kept)[i % len(kept)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes_of(rng, kept[path], 200))

        def use():
            X = _dense(read(file).X)
            assert X.shape[1:] == before.shape[1:] or len(X)

        survives(use)
        for each, content in kept.items():
            each.parent.mkdir(parents=True, exist_ok=True)
            each.write_bytes(content)


def _dense(X):
    return X.toarray() if hasattr(X, "toarray") else X
