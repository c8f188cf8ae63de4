"""Models written by earlier versions are read, and give what they gave then."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from hostile import FIXTURE, FIXTURES, described, encoder
from selfview import SelfView
from selfview.baselines import PCA
from selfview.data import load_preparation, preparation
from selfview.errors import FileFormatError, SelfViewError
from selfview.saving import model_file
from selfview.saving.checkpoints import read_state, write_state

EXPECTED = json.loads((FIXTURE / "expected.json").read_text())
ROWS = np.array(EXPECTED["rows"], np.float32)
VERSIONS = sorted(path.name for path in FIXTURES.glob("model-v*"))


@pytest.fixture(params=VERSIONS)
def written(request):
    """The folder of a version, and what its models gave when they were written."""
    folder = FIXTURES / request.param
    return folder, json.loads((folder / "expected.json").read_text())


def test_every_version_has_a_fixture():
    assert [f"model-v{number}" for number in range(1, model_file.VERSION + 1)] == VERSIONS


def test_a_model_gives_what_it_gave_when_it_was_written(written):
    folder, expected = written
    model = SelfView.load(folder / "selfview", encoder=encoder())
    rows = np.array(expected["rows"], np.float32)
    np.testing.assert_allclose(model.transform(rows), expected["selfview"], atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(rows), expected["selfview_proba"], atol=1e-5)


def test_a_baseline_gives_what_it_gave_when_it_was_written(written):
    folder, expected = written
    found = PCA.load(folder / "pca").transform(np.array(expected["rows"], np.float32))
    np.testing.assert_allclose(found, expected["pca"], atol=1e-5)


def test_a_preparation_gives_what_it_gave_when_it_was_written(written):
    folder, expected = written
    found = load_preparation(folder / "preparation").read(folder / "texts.jsonl")
    np.testing.assert_allclose(found.X.toarray(), expected["texts"], atol=1e-5)


def perceptron():
    """The built-in encoder for vectors as files of versions 1 to 3 hold it, by its own layers."""
    norms = [nn.BatchNorm1d(1024), nn.BatchNorm1d(1024)]
    layers = [nn.Flatten(), nn.Linear(6, 1024), norms[0], nn.ReLU(), nn.Linear(1024, 1024)]
    return nn.Sequential(*layers, norms[1], nn.ReLU(), nn.Linear(1024, 3))


def convolutional(filters=128):
    """The same for images of 12 x 12: 4 x 4 and, padded, 2 x 2 pixels are left."""
    first = [nn.Conv2d(1, filters, 5, 2), nn.BatchNorm2d(filters), nn.ReLU()]
    second = [nn.Conv2d(filters, 2 * filters, 5, 2, 2), nn.BatchNorm2d(2 * filters), nn.ReLU()]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(8 * filters, 3))


def small_convolutional():
    return convolutional(filters=32)


BUILT_IN = {perceptron: (6,), convolutional: (12, 12), small_convolutional: (12, 12)}


@pytest.mark.parametrize(
    ("version", "make", "recipe"),
    [
        (1, perceptron, "selfview"),
        (1, convolutional, "selfview"),
        (2, perceptron, "selfview"),
        (2, convolutional, "selfview"),
        (3, perceptron, "selfview"),
        (3, small_convolutional, "selfview"),
        (3, convolutional, "paper"),
    ],
)
def test_a_built_in_encoder_of_each_version_gives_what_its_layers_give(
    version, make, recipe, tmp_path
):
    """Version 1 took rows as they are and had `lengths`; 2 divides them by a scale of its file."""
    torch.manual_seed(0)
    layers, shape = make(), BUILT_IN[make]
    for norm in layers:
        if isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.normal_(norm.running_mean)
            nn.init.uniform_(norm.running_var, 0.5, 2.0)
    tensors, meta = read_state(FIXTURES / f"model-v{version}" / "selfview" / model_file.FILE)
    tensors = {name: t for name, t in tensors.items() if not name.startswith("encoder.")}
    tensors |= {f"encoder.{name}": t for name, t in layers.state_dict().items()}
    scale = 1.0 if version == 1 else 4.0
    if version > 1:
        tensors["encoder.scale"] = torch.tensor(scale)
    given = meta["parameters"] | {"encoder": "auto", "n_components": 3, "recipe": recipe}
    assert ("lengths" in given) == (version == 1)
    changed = meta | {"parameters": given, "shape_in": list(shape)}
    write_state(tmp_path / model_file.FILE, tensors, changed)

    rows = np.random.default_rng(0).normal(size=(5, *shape)).astype(np.float32)
    with torch.no_grad():
        x = torch.from_numpy(rows).reshape(5, *((1,) if len(shape) == 2 else ()), *shape)
        expected = layers.eval()(x / scale).numpy()
    model = SelfView.load(tmp_path)
    np.testing.assert_allclose(model.transform(rows), expected, atol=1e-5)
    # What is saved now is of this version, and gives the same.
    model.save(tmp_path / "new")
    assert read_state(tmp_path / "new" / model_file.FILE)[1]["version"] == model_file.VERSION
    np.testing.assert_array_equal(
        SelfView.load(tmp_path / "new").transform(rows), model.transform(rows)
    )


def test_a_model_without_a_version_is_of_the_first_form(model):
    described(model / "selfview/model.safetensors", lambda meta: meta.pop("version"))
    again = SelfView.load(model / "selfview", encoder=encoder())
    np.testing.assert_allclose(again.transform(ROWS), EXPECTED["selfview"], atol=1e-5)


def test_older_descriptions_are_brought_up_a_version_at_a_time(model, monkeypatch):
    """Two versions to come, as a rename and a new field would make them."""
    steps = []

    def rename(tensors, meta):
        steps.append(1)
        given = dict(meta["parameters"])
        return tensors, meta | {"parameters": given | {"xi": given.pop("probe", given.get("xi"))}}

    def add(tensors, meta):
        steps.append(2)
        return tensors, meta | {"parameters": meta["parameters"] | {"sinkhorn_iterations": 7}}

    def old_name(meta):
        meta["parameters"]["probe"] = 3.0
        del meta["parameters"]["xi"]

    present = model_file.VERSION
    monkeypatch.setattr(model_file, "VERSION", present + 2)
    upgrades = model_file.UPGRADES | {present: rename, present + 1: add}
    monkeypatch.setattr(model_file, "UPGRADES", upgrades)
    described(model / "selfview/model.safetensors", old_name)
    found = SelfView.load(model / "selfview", encoder=encoder())
    assert steps == [1, 2]
    assert (found.xi, found.sinkhorn_iterations) == (3.0, 7)
    found.save(model / "new")
    SelfView.load(model / "new", encoder=encoder())
    assert steps == [1, 2]  # what is of this version needs no step


def test_an_upgrade_of_a_damaged_description_is_our_error(model, monkeypatch):
    monkeypatch.setattr(model_file, "VERSION", 2)
    monkeypatch.setattr(
        model_file, "UPGRADES", {1: lambda t, meta: (t, meta | {"a": meta["nothing"]})}
    )
    with pytest.raises(FileFormatError, match="is damaged"):
        SelfView.load(model / "selfview", encoder=encoder())


def test_every_older_version_has_its_step():
    assert sorted(model_file.UPGRADES) == list(range(model_file.VERSION))
    assert sorted(preparation.UPGRADES) == list(range(1, preparation.FORMAT))


def test_newer_versions_are_refused_with_the_way_out(model):
    described(model / "selfview/model.safetensors", lambda meta: meta.update(version=99))
    with pytest.raises(FileFormatError, match=r"version 99; .* Update selfview"):
        SelfView.load(model / "selfview", encoder=encoder())
    path = model / "preparation/preparation.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    with pytest.raises(SelfViewError, match=r"format 2, .* Update selfview"):
        load_preparation(path.parent)
