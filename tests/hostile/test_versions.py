"""Models that were written before are read, and give what they gave then."""

import json

import numpy as np
import pytest

from hostile import FIXTURE, described, encoder
from selfview import SelfView
from selfview.baselines import PCA
from selfview.data import load_preparation
from selfview.errors import FileFormatError, SelfViewError

EXPECTED = json.loads((FIXTURE / "expected.json").read_text())
ROWS = np.array(EXPECTED["rows"], np.float32)


@pytest.fixture
def written():
    """The folder of models, and what they gave when they were written."""
    return FIXTURE, EXPECTED


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


def test_a_model_without_a_version_is_damaged(model):
    described(model / "selfview/model.safetensors", lambda meta: meta.pop("version"))
    with pytest.raises(FileFormatError, match="is not a version"):
        SelfView.load(model / "selfview", encoder=encoder())


def test_newer_versions_are_refused_with_the_way_out(model):
    described(model / "selfview/model.safetensors", lambda meta: meta.update(version=99))
    with pytest.raises(FileFormatError, match=r"version 99; .* Update selfview"):
        SelfView.load(model / "selfview", encoder=encoder())
    path = model / "preparation/preparation.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    with pytest.raises(SelfViewError, match=r"format 2, .* Update selfview"):
        load_preparation(path.parent)
