"""Models and checkpoints on disk: exact, atomic, and refused when they are not what they claim."""

import json
import shutil
import struct
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from selfview import InputError, SelfView, SelfViewError
from selfview.errors import CheckpointError, FileFormatError
from selfview.saving.checkpoints import Checkpoints, differences
from selfview.saving.tensor_file import read_state, write_state

# A few steps teach nothing, and a run says so; here that is meant.
pytestmark = pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")


def test_a_fit_and_a_loaded_model_need_no_compiler(tmp_path):
    """Importing PyTorch's compiler takes seconds; some operations on meta tensors do it unasked."""
    script = """
import sys, numpy as np
from selfview import SelfView
X = np.random.default_rng(0).normal(size=(60, 4))
SelfView(2, epochs=1, random_state=0, verbose=0).fit(X).save(sys.argv[1])
SelfView.load(sys.argv[1]).transform(X)
print(sorted({"torch._dynamo", "torch.fx.experimental.symbolic_shapes"} & {*sys.modules}))
"""
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "[]\n", done.stderr


def small(**kwargs):
    given = dict(n_components=3, n_prototypes=8, epochs=3, random_state=0, verbose=0)
    return SelfView(**given | kwargs)


@pytest.fixture
def saved(blobs, tmp_path):
    model = small().fit(blobs[0])
    model.save(tmp_path / "run")
    return model, tmp_path / "run"


def test_a_loaded_model_is_the_saved_one(saved, blobs):
    model, folder = saved
    loaded = SelfView.load(folder)
    np.testing.assert_array_equal(loaded.transform(blobs[0]), model.transform(blobs[0]))
    np.testing.assert_array_equal(loaded.predict_proba(blobs[0]), model.predict_proba(blobs[0]))
    assert loaded.get_params() == model.get_params()
    assert loaded.epsilon_ == model.epsilon_
    assert loaded.history_ == model.history_
    assert loaded.health_ == model.health_
    loaded.partial_fit(blobs[0])


def test_a_model_of_images_and_of_a_data_frame_come_back(tmp_path, rng):
    import pandas as pd

    images = rng.random((20, 1, 10, 10))
    model = small(epochs=1).fit(images)
    model.save(tmp_path / "images")
    again = SelfView.load(str(tmp_path / "images"))
    np.testing.assert_array_equal(again.transform(images), model.transform(images))
    frame = pd.DataFrame(rng.random((20, 2)), columns=["a", "b"])
    small(epochs=1).fit(frame).save(tmp_path / "frame")
    assert list(SelfView.load(tmp_path / "frame").feature_names_in_) == ["a", "b"]


def test_saving_over_a_model_replaces_it(saved, blobs):
    _, folder = saved
    other = small(random_state=1).fit(blobs[0])
    other.save(folder)
    np.testing.assert_array_equal(
        SelfView.load(folder).transform(blobs[0]), other.transform(blobs[0])
    )


def test_an_own_encoder_is_asked_for_at_load(blobs, tmp_path):
    def own():
        return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))

    model = small(encoder=own()).fit(blobs[0])
    model.save(tmp_path / "run")
    with pytest.raises(InputError, match="custom encoder: pass one of the same architecture"):
        SelfView.load(tmp_path / "run")
    loaded = SelfView.load(tmp_path / "run", encoder=own())
    np.testing.assert_array_equal(loaded.transform(blobs[0]), model.transform(blobs[0]))
    with pytest.raises(FileFormatError, match=r"model\.safetensors is damaged"):
        SelfView.load(tmp_path / "run", encoder=nn.Linear(12, 4))


def test_an_unfitted_model_can_not_be_saved(tmp_path):
    with pytest.raises(InputError, match="not fitted yet"):
        small().save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_missing_folder_or_file_is_named(tmp_path):
    with pytest.raises(FileFormatError, match=r"nowhere.*can't be read: No such file"):
        SelfView.load(tmp_path / "nowhere")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.9999])
def test_a_truncated_model_is_refused(saved, share):
    _, folder = saved
    path = folder / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(FileFormatError, match=r"model\.safetensors is (cut short|damaged)"):
        SelfView.load(folder)


def rewritten(path, change, version="1"):
    tensors, meta = read_state(path)
    change(meta, tensors)
    save_file(tensors, path, metadata={"format": version, "meta": json.dumps(meta)})


def test_a_newer_format_is_refused_with_the_way_out(saved):
    _, folder = saved
    rewritten(folder / "model.safetensors", lambda meta, tensors: None, version="99")
    with pytest.raises(FileFormatError, match=r"has format 99; .* Update selfview"):
        SelfView.load(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda meta, tensors: meta["parameters"].update(n_components=10**15),
        lambda meta, tensors: meta["parameters"].update(n_prototypes=10**12),
        lambda meta, tensors: meta["parameters"].update(n_prototypes="many"),
        lambda meta, tensors: meta["parameters"].update(stranger=1),
        lambda meta, tensors: meta.update(parameters=[1, 2]),
        lambda meta, tensors: meta.update(shape_in=[2**62]),
        lambda meta, tensors: meta.update(shape_in=[-3]),
        lambda meta, tensors: meta.update(shape_in="x"),
        lambda meta, tensors: meta.update(history=7),
        lambda meta, tensors: meta.update(seed=None),
        lambda meta, tensors: meta.pop("health"),
        lambda meta, tensors: tensors.pop("epsilon"),
        lambda meta, tensors: tensors.update(extra=torch.ones(1)),
        lambda meta, tensors: tensors.update(epsilon=torch.ones(2)),
    ],
)
def test_a_description_that_does_not_fit_is_refused_without_allocating(saved, change):
    _, folder = saved
    rewritten(folder / "model.safetensors", change)
    with pytest.raises(SelfViewError):
        SelfView.load(folder)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04 a zip",
        b"\x80\x04\x95cbuiltins\neval\n",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 24) + b'{"__metadata__": {"a":1}}'[:24],
        struct.pack("<Q", 2) + b"{}",
    ],
)
def test_a_file_of_another_kind_is_refused(saved, data):
    _, folder = saved
    (folder / "model.safetensors").write_bytes(data)
    with pytest.raises(FileFormatError, match=r"model\.safetensors"):
        SelfView.load(folder)


def test_a_model_of_another_class_is_refused(saved):
    _, folder = saved
    rewritten(folder / "model.safetensors", lambda meta, _: meta.update({"class": "Other"}))
    with pytest.raises(InputError, match="holds a model of Other, not of SelfView"):
        SelfView.load(folder)


# -- checkpoints ----------------------------------------------------------------------------------


def stop_after(monkeypatch, epochs):
    """Make a fit end with an exception after so many epochs, with every epoch kept."""
    monkeypatch.setattr(Checkpoints, "INTERVAL", -1.0)
    keep = Checkpoints.keep

    def keep_and_stop(self, training):
        keep(self, training)
        if training.place == (epochs, 0):
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "keep", keep_and_stop)


@pytest.mark.parametrize("random_state", [0, None])
def test_resume_is_bit_identical(blobs, tmp_path, monkeypatch, random_state):
    folder = tmp_path / "state"
    with monkeypatch.context() as patch:
        stop_after(patch, epochs=4)
        with pytest.raises(KeyboardInterrupt):
            small(epochs=6, random_state=random_state, checkpoint=folder).fit(blobs[0])
    assert len(list(folder.glob("checkpoint-0*"))) == 2
    resumed = small(epochs=6, random_state=random_state, checkpoint=folder).fit(blobs[0])
    whole = small(epochs=6, random_state=0).fit(blobs[0])
    assert len(resumed.history_) == 6
    if random_state == 0:
        for name, tensor in whole.network_.state_dict().items():
            assert torch.equal(resumed.network_.state_dict()[name], tensor), name


def test_a_finished_run_is_not_repeated(blobs, tmp_path):
    first = small(checkpoint=tmp_path).fit(blobs[0])
    second = small(checkpoint=tmp_path).fit(blobs[0])
    assert second.history_ == first.history_


def test_the_checkpoint_of_another_run_is_refused(blobs, tmp_path):
    small(checkpoint=tmp_path).fit(blobs[0])
    for options, X, told in (
        (dict(n_prototypes=9), blobs[0], "another run: n_prototypes was 8, is 9. Delete it"),
        (dict(views="random", epochs=9), blobs[0], "epochs was 3, is 9; views was adver"),
        ({}, blobs[0][:50], f"the rows' number was {len(blobs[0])}, is 50;"),
        ({}, blobs[0][:, :7], "the rows' shape.0. was 12, is 7;"),
        ({}, blobs[0] + 1, "another run: the rows' mean_norm was "),
    ):
        with pytest.raises(CheckpointError, match=told):
            small(checkpoint=tmp_path, **options).fit(X)


numbers = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


@settings(max_examples=40, deadline=None)
@given(st.recursive(numbers, lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_a_value_differs_from_itself_by_nothing_and_from_another_by_name(value):
    read = json.loads(json.dumps(value))
    assert differences(read, read) == []
    assert differences({"a": read, "b": 1}, {"a": read, "b": 2}) == ["b was 1, is 2"]


def test_rounding_is_no_difference_and_more_is():
    assert differences({"a": [1.0, 3e9]}, {"a": [1.0 + 1e-15, 3e9 + 1e-6]}) == []
    assert differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.0001]}) == ["a[1] was 2.0, is 2.0001"]
    assert differences({"a": 10**12}, {"a": 10**12 + 1}) != []
    assert differences({"a": [1.0]}, {"a": []}) == ["a was [1.0], is []"]
    assert differences(None, {"a": 1}) == ["its description was None, is {'a': 1}"]


def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(blobs, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, epochs=2)
        with pytest.raises(KeyboardInterrupt):
            small(checkpoint=tmp_path).fit(blobs[0])
    newest = max(tmp_path.glob("checkpoint-*"))
    newest.write_bytes(newest.read_bytes()[:100])
    assert len(small(checkpoint=tmp_path).fit(blobs[0]).history_) == 3


def test_a_folder_that_can_not_be_written_is_named(blobs, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(CheckpointError, match="can't be written"):
        small(checkpoint=blocked).fit(blobs[0])


def test_a_failed_write_leaves_the_old_state_and_no_rubbish(tmp_path, monkeypatch):
    path = tmp_path / "state.safetensors"
    write_state(path, {"a": torch.ones(3)}, {"n": 1})

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(CheckpointError, match="No space left on device"):
            write_state(path, {"a": torch.zeros(3)}, {"n": 2})
    tensors, meta = read_state(path)
    assert meta == {"n": 1}
    assert torch.equal(tensors["a"], torch.ones(3))
    assert list(tmp_path.iterdir()) == [path]


def test_a_copied_run_folder_works_elsewhere(saved, blobs, tmp_path):
    model, folder = saved
    shutil.copytree(folder, tmp_path / "a folder with spaces")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = SelfView.load(tmp_path / "a folder with spaces")
    np.testing.assert_array_equal(loaded.transform(blobs[0]), model.transform(blobs[0]))
