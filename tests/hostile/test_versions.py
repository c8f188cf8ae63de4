"""Models written by earlier versions are read, and give what they gave then."""

import json

import numpy as np
import pytest

from hostile import FIXTURE, described, encoder
from selfview import SelfView, storage
from selfview.baselines import PCA
from selfview.data import load_preparation, preparation
from selfview.errors import FileFormatError, SelfViewError

EXPECTED = json.loads((FIXTURE / "expected.json").read_text())
ROWS = np.array(EXPECTED["rows"], np.float32)


def test_a_model_of_version_1_gives_what_it_gave_then():
    model = SelfView.load(FIXTURE / "selfview", encoder=encoder())
    np.testing.assert_allclose(model.transform(ROWS), EXPECTED["selfview"], atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(ROWS), EXPECTED["selfview_proba"], atol=1e-5)


def test_a_baseline_of_version_1_gives_what_it_gave_then():
    np.testing.assert_allclose(
        PCA.load(FIXTURE / "pca").transform(ROWS), EXPECTED["pca"], atol=1e-5
    )


def test_a_preparation_of_format_1_gives_what_it_gave_then():
    found = load_preparation(FIXTURE / "preparation").read(FIXTURE / "texts.jsonl")
    np.testing.assert_allclose(found.X.toarray(), EXPECTED["texts"], atol=1e-5)


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

    monkeypatch.setattr(storage, "VERSION", 4)
    monkeypatch.setattr(storage, "UPGRADES", storage.UPGRADES | {2: rename, 3: add})
    described(model / "selfview/model.safetensors", old_name)
    found = SelfView.load(model / "selfview", encoder=encoder())
    assert steps == [1, 2]
    assert (found.xi, found.sinkhorn_iterations) == (3.0, 7)
    found.save(model / "new")
    SelfView.load(model / "new", encoder=encoder())
    assert steps == [1, 2]  # what is of this version needs no step


def test_an_upgrade_of_a_damaged_description_is_our_error(model, monkeypatch):
    monkeypatch.setattr(storage, "VERSION", 2)
    monkeypatch.setattr(
        storage, "UPGRADES", {1: lambda t, meta: (t, meta | {"a": meta["nothing"]})}
    )
    with pytest.raises(FileFormatError, match="is damaged"):
        SelfView.load(model / "selfview", encoder=encoder())


def test_every_older_version_has_its_step():
    assert sorted(storage.UPGRADES) == list(range(storage.VERSION))
    assert sorted(preparation.UPGRADES) == list(range(1, preparation.FORMAT))


def test_newer_versions_are_refused_with_the_way_out(model):
    described(model / "selfview/model.safetensors", lambda meta: meta.update(version=99))
    with pytest.raises(FileFormatError, match=r"version 99; .* Update selfview"):
        SelfView.load(model / "selfview", encoder=encoder())
    path = model / "preparation/preparation.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    with pytest.raises(SelfViewError, match=r"format 2, .* Update selfview"):
        load_preparation(path.parent)
