"""Hostile model folders: refused by our own error, nothing run, nothing allocated."""

import json
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
import torch

from hostile import Evil, described, encoder, join, objects, split
from selfview import SelfView, SelfViewError
from selfview.baselines import PCA
from selfview.data import load_preparation
from selfview.errors import FileFormatError
from selfview.saving.tensor_file import read_state


def load(model):
    return SelfView.load(model / "selfview", encoder=encoder())


def test_the_model_that_is_spoiled_below_can_be_loaded(model):
    assert load(model).transform(np.zeros((2, 6))).shape == (2, 3)


def pickles(sentinel, folder):
    """Pickled code in the forms that programs of this kind write it."""
    yield pickle.dumps(Evil(sentinel))
    torch.save({"weight": torch.ones(2), "code": Evil(sentinel)}, folder / "a.pt")
    yield (folder / "a.pt").read_bytes()
    torch.save(Evil(sentinel), folder / "b.pt", _use_new_zipfile_serialization=False)
    yield (folder / "b.pt").read_bytes()
    np.save(folder / "c.npy", objects(sentinel), allow_pickle=True)
    yield (folder / "c.npy").read_bytes()
    np.savez(folder / "d.npz", **{"encoder.0.weight": objects(sentinel)})
    yield (folder / "d.npz").read_bytes()


def test_pickled_code_in_place_of_any_file_is_never_run(model, sentinel, tmp_path):
    for content in pickles(sentinel, tmp_path):
        for name in ("selfview/model.safetensors", "pca/model.safetensors"):
            (model / name).write_bytes(content)
            with pytest.raises(FileFormatError, match=r"model\.safetensors"):
                read_state(model / name)
            with pytest.raises(FileFormatError):
                load(model) if "selfview" in name else PCA.load(model / "pca")
        for name in ("preparation.safetensors", "preparation.json"):
            (model / "preparation" / name).write_bytes(content)
            with pytest.raises(SelfViewError, match="preparation"):
                load_preparation(model / "preparation")


def test_pickled_code_in_the_description_is_only_text(model, sentinel):
    code = pickle.dumps(Evil(sentinel)).decode("latin-1")
    described(model / "selfview/model.safetensors", lambda meta: meta.update(health={"a": code}))
    assert load(model).health_ == {"a": code}


HEADERS = {
    "beyond the file": lambda h: h["head.0.weight"].update(data_offsets=[0, 2**40]),
    "at the end": lambda h: h["head.0.weight"].update(data_offsets=[2**40, 2**40 + 4]),
    "negative": lambda h: h["head.0.weight"].update(data_offsets=[-4, 4]),
    "backwards": lambda h: h["head.0.weight"].update(data_offsets=[100, 4]),
    "overlapping": lambda h: h["head.0.weight"].update(
        data_offsets=h["head.0.bias"]["data_offsets"]
    ),
    "fractions": lambda h: h["head.0.weight"].update(data_offsets=[0.5, 4.5]),
    "one offset": lambda h: h["head.0.weight"].update(data_offsets=[0]),
    "no offsets": lambda h: h["head.0.weight"].pop("data_offsets"),
    "huge shape": lambda h: h["head.0.weight"].update(shape=[10**12, 10**12]),
    "overflowing shape": lambda h: h["head.0.weight"].update(shape=[2**32, 2**32]),
    "wrapping shape": lambda h: h["head.0.weight"].update(shape=[2**62, 2, 2, 2]),
    "negative shape": lambda h: h["head.0.weight"].update(shape=[-128, -3]),
    "text as shape": lambda h: h["head.0.weight"].update(shape="128"),
    "unknown type": lambda h: h["head.0.weight"].update(dtype="PICKLE"),
    "other type": lambda h: h["head.0.weight"].update(dtype="I32"),
    "no tensors": lambda h: [h.pop(k) for k in list(h) if k != "__metadata__"],
    "not an object": lambda h: h.update({"head.0.weight": [1, 2, 3]}),
    "a name with a path": lambda h: h.update({"../../evil": h.pop("head.0.weight")}),
    "metadata of numbers": lambda h: h.update(__metadata__={"format": 1}),
    "metadata of lists": lambda h: h.update(__metadata__=[]),
    "no metadata": lambda h: h.pop("__metadata__"),
}


@pytest.mark.parametrize("lie", HEADERS)
def test_a_header_that_lies_is_refused(lie, model):
    path = model / "selfview/model.safetensors"
    header, body = split(path.read_bytes())
    HEADERS[lie](header)
    path.write_bytes(join(header, body))
    with pytest.raises(FileFormatError, match=r"model\.safetensors"):
        load(model)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<Q", 2**64 - 1) + b"{}",
        struct.pack("<Q", 99 << 20) + b"{}",
        join("[" * 200_000, b""),
        join('{"a":' * 100_000, b""),
        join('{"__metadata__":{"format":"1","meta":"{}"},"a":' + "9" * 10**6 + "}", b""),
        join('{"__metadata__":{"format":"1","meta":' + json.dumps("[" * 100_000) + "}}", b""),
        join('{"__metadata__":{"format":"1","meta":' + json.dumps("9" * 10_000) + "}}", b""),
        join('{"__metadata__":{"format":"1","meta":"NaN"}}', b""),
        join('{"__metadata__":{"format":"1","meta":"{}"}}', b""),
        join('{"__metadata__":{"format":"١","meta":"{}"}}', b""),
        join('{"__metadata__":{"format":"' + "9" * 5000 + '","meta":"{}"}}', b""),
        "\ud800".encode("utf-8", "surrogatepass") * 10,
    ],
)
def test_a_header_of_absurd_size_or_depth_is_refused(data, model):
    (model / "selfview/model.safetensors").write_bytes(data)
    with pytest.raises(SelfViewError, match=r"model\.safetensors"):
        load(model)


def parameter(**given):
    return lambda meta: meta["parameters"].update(given)


DESCRIPTIONS = {
    "layers of 10^12": parameter(n_prototypes=10**12),
    "more layers": parameter(encoder="mlp", n_components=10**12),
    "an integer of 4,000 digits": parameter(n_prototypes=10**4000),
    "epsilon of 400 digits": parameter(epsilon=10**400),
    "epsilon is NaN": parameter(epsilon=float("nan")),
    "an infinite entropy": parameter(target_entropy=float("inf")),
    "a parameter that is a list": parameter(batch_norm=[[[]]]),
    "an unknown parameter": parameter(__class__="os.system"),
    "an encoder by name of code": parameter(encoder="os.system"),
    "rows of 2^62": lambda meta: meta.update(shape_in=[2**62]),
    "rows of 2^30": lambda meta: meta.update(shape_in=[2**30]),
    "rows of 2^30 by 2^30": lambda meta: meta.update(shape_in=[2**30, 2**30]),
    "rows of many axes": lambda meta: meta.update(shape_in=[1] * 100_000),
    "no rows": lambda meta: meta.update(shape_in=[]),
    "rows of true": lambda meta: meta.update(shape_in=[True]),
    "rows of NaN": lambda meta: meta.update(shape_in=[float("nan")]),
    "a seed of 4,000 digits": lambda meta: meta.update(seed=10**4000),
    "a negative seed": lambda meta: meta.update(seed=-1),
    "infinite epochs": lambda meta: meta.update(epochs=float("inf")),
    "a history of text": lambda meta: meta.update(history=["a"]),
    "a history of lists": lambda meta: meta.update(history=[{"loss": []}]),
    "a history of 400 digits": lambda meta: meta.update(history=[{"loss": 10**400}]),
    "health is a number": lambda meta: meta.update(health=7),
    "too many names": lambda meta: meta.update(feature_names_in=["a"] * 100_000),
    "names that are a text": lambda meta: meta.update(feature_names_in="abcdef"),
    "another class": lambda meta: meta.update({"class": "os.system"}),
    "the class is a list": lambda meta: meta.update({"class": ["SelfView"] * 1000}),
    "a version to come": lambda meta: meta.update(version=99),
    "a version of text": lambda meta: meta.update(version="1"),
    "a negative version": lambda meta: meta.update(version=-1),
    "deep": lambda meta: "[" * 100_000,
    "twice the same key": lambda meta: '{"class": "SelfView", "class": "SelfView"}',
}


@pytest.mark.parametrize("lie", DESCRIPTIONS)
def test_a_description_that_lies_is_refused_before_anything_is_allocated(lie, model):
    path = model / "selfview/model.safetensors"
    described(path, DESCRIPTIONS[lie])
    with pytest.raises(SelfViewError, match=r"model\.safetensors") as caught:
        load(model)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("lie", ["rows of 2^30", "rows of 2^62", "too many names", "no rows"])
def test_the_description_of_a_baseline_is_not_believed_either(lie, model):
    described(model / "pca/model.safetensors", DESCRIPTIONS[lie])
    with pytest.raises(FileFormatError, match=r"model\.safetensors"):
        PCA.load(model / "pca")


def field(**given):
    return lambda content: content["fields"].update(given)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(format=99),
        lambda content: content.update(format="1"),
        lambda content: content.update(format=-(10**30)),
        lambda content: content.update(kind="os.system"),
        lambda content: content.update(kind=["text"]),
        lambda content: content.update(kind="images", fields={"channels": 1}, arrays=[]),
        lambda content: content.update(
            kind="images", arrays=[], fields={"channels": 1, "height": 10**12, "width": 10**12}
        ),
        lambda content: content.update(
            kind="audio", arrays=[], fields={"rate": 8000, "frames": 10**9, "frame_length": 94}
        ),
        lambda content: content.update(fields=7),
        lambda content: content.update(arrays=7),
        field(vocabulary=["a"]),
        field(vocabulary=7),
        field(vocabulary=[1, 2]),
        field(text=7),
        field(posts="yes"),
        field(stranger=1),
    ],
)
def test_a_preparation_that_lies_is_refused(change, model):
    path = model / "preparation" / "preparation.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(SelfViewError, match="preparation"):
        load_preparation(path.parent)


@pytest.mark.parametrize("name", ["selfview/model.safetensors", "preparation/preparation.json"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "loop", "nothing"])
def test_what_is_no_ordinary_file_neither_blocks_nor_fills_the_memory(name, kind, model):
    path = model / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    with pytest.raises(SelfViewError):
        load(model) if "selfview" in name else load_preparation(path.parent)


def test_a_zip_in_place_of_a_model_is_not_unpacked(model, sentinel):
    with zipfile.ZipFile(model / "selfview/model.safetensors", "w") as archive:
        archive.writestr("../../outside/was-here", "x")
    with pytest.raises(FileFormatError):
        load(model)
