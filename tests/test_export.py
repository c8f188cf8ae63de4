"""Exported encoders give what `transform` gives, in runtimes that know nothing of selfview."""

import json
import sys
import warnings

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import nn
from torch.nn import functional as F

from selfview import SelfView, export
from selfview.baselines import PCA
from selfview.data import load_preparation, read
from selfview.errors import InputError, MissingDependencyError
from selfview.saving.export import ExportError


def fitted(X, **parameters):
    settings = {"epochs": 1, "n_prototypes": 8, "random_state": 0, "verbose": 0, **parameters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one epoch learns little
        return SelfView(4, **settings).fit(X)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(3, 2, size=(40, 12)).astype(np.float32)


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).random((16, 9, 8), dtype=np.float32)  # grey, without channel


@pytest.fixture(scope="module")
def models(rows, images):
    return {"mlp": (fitted(rows), rows), "cnn": (fitted(images), images)}


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_onnx_agrees_with_transform_for_any_number_of_rows(models, kind, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    model, X = models[kind]
    path = tmp_path / "deep" / "encoder.onnx"
    description = export(model, path)
    assert description["largest_difference"] < 1e-5
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    assert given.name == description["input"]["name"]
    for n in (1, 5, len(X)):
        (Z,) = session.run(["embedding"], {"rows": X[:n]})
        np.testing.assert_allclose(Z, model.transform(X[:n]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_torchscript_loads_without_selfview_and_agrees(models, kind, tmp_path):
    model, X = models[kind]
    export(model, tmp_path / "encoder.pt", "torchscript")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch's, of TorchScript
        loaded = torch.jit.load(tmp_path / "encoder.pt")
    for n in (1, len(X)):
        found = loaded(torch.from_numpy(X[:n])).numpy()
        np.testing.assert_allclose(found, model.transform(X[:n]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_weights_and_their_description_are_enough_to_embed(models, kind, tmp_path):
    model, X = models[kind]
    path = tmp_path / "encoder.safetensors"
    export(model, path, "safetensors")
    description = json.loads((tmp_path / "encoder.safetensors.json").read_text())
    tensors = {name: torch.from_numpy(t) for name, t in load_file(path).items()}
    x = torch.from_numpy(X).reshape(-1, *description["network_input"][1:])
    used = set()
    for layer in description["layers"]:
        t = {name: tensors[v] for name, v in layer.items() if isinstance(v, str) and v in tensors}
        used |= {v for v in layer.values() if isinstance(v, str) and v in tensors}
        if layer["type"] == "Linear":
            x = F.linear(x, t["weight"], t["bias"])
        elif layer["type"] == "Conv2d":
            x = F.conv2d(x, t["weight"], t["bias"], layer["stride"], layer["padding"])
        elif layer["type"].startswith("BatchNorm"):
            moments = (t["running_mean"], t["running_var"])
            x = F.batch_norm(x, *moments, t["weight"], t["bias"], eps=layer["eps"])
        else:
            x = {"ReLU": F.relu, "Flatten": lambda x: x.flatten(1)}[layer["type"]](x)
    assert used == set(tensors)
    np.testing.assert_allclose(x.numpy(), model.transform(X), rtol=1e-5, atol=1e-5)


def test_the_preparation_lies_beside_the_encoder(tmp_path, rows):
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b,c,d,e,f,g,h,i,j,k,l")
    data = read(tmp_path / "rows.csv")
    where = tmp_path / "out" / "encoder.safetensors"
    export(fitted(data.X), where, "safetensors", preparation=data.preparation)
    assert load_preparation(where.parent) == data.preparation


class Branching(nn.Module):
    """What no tracer can follow: it looks at the numbers."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(12, 4)

    def forward(self, x):
        z = self.layer(x)
        return z if float(x.abs().sum()) > 0 else z + 1


@pytest.mark.parametrize("format", ["onnx", "torchscript", "safetensors"])
def test_an_own_encoder_that_cannot_be_exported_is_told_so(rows, format, tmp_path):
    if format == "onnx":
        pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    model = fitted(rows, encoder=Branching())
    with pytest.raises(ExportError, match=r"traced|Branching"):
        export(model, tmp_path / "encoder", format)
    assert not list(tmp_path.iterdir())


def test_an_own_encoder_of_known_layers_can_be_exported_as_weights(rows, tmp_path):
    encoder = nn.Sequential(nn.Linear(12, 8, bias=False), nn.ReLU(), nn.Linear(8, 3))
    model = fitted(rows, encoder=encoder)
    found = export(model, tmp_path / "encoder.safetensors", "safetensors")
    assert found["largest_difference"] < 1e-6
    assert found["output"]["shape"] == ["batch", 3]


def test_a_layer_that_the_description_would_get_wrong_is_noticed(tmp_path, images):
    layer = nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular")
    encoder = nn.Sequential(layer, nn.Flatten(), nn.Linear(144, 3))
    model = fitted(images[:, None], encoder=encoder)
    with pytest.raises(ExportError, match="differs from transform"):
        export(model, tmp_path / "encoder.safetensors", "safetensors")


def test_wrong_calls_say_what_to_do(models, rows, tmp_path, monkeypatch):
    model, _ = models["mlp"]
    with pytest.raises(InputError, match="format must be one of 'onnx'"):
        export(model, tmp_path / "x", "gguf")
    with pytest.raises(InputError, match="is a folder"):
        export(model, tmp_path, "safetensors")
    with pytest.raises(InputError, match="not fitted"):
        export(SelfView(), tmp_path / "x", "safetensors")
    with pytest.raises(InputError, match="PCA has no network"):
        export(PCA(2).fit(rows), tmp_path / "x", "safetensors")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingDependencyError, match=r"selfview\[export\]"):
        export(model, tmp_path / "x", "onnx")
