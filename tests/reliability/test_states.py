"""States that were tampered with are refused by our errors, and good ones beside them are used."""

import json

import pytest
import torch
from safetensors.torch import save_file
from small_fits import bits, rows, small_model

from selfview.errors import FileFormatError
from selfview.saving.checkpoints import Checkpoints
from selfview.saving.tensor_file import read_state

pytestmark = pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")


def moment(name, tensor):
    return lambda meta, tensors: tensors.update({name: tensor})


@pytest.mark.parametrize(
    "change",
    [
        lambda meta, tensors: meta.pop("seed"),
        lambda meta, tensors: meta.update(seed="zero"),
        lambda meta, tensors: meta.pop("history"),
        lambda meta, tensors: meta.update(history=[1, 2]),
        lambda meta, tensors: meta.update(history=7),
        lambda meta, tensors: meta.update(steps="many"),
        lambda meta, tensors: meta.update(sums={"loss": "low"}),
        lambda meta, tensors: meta.update(sums=[1]),
        lambda meta, tensors: meta.pop("seconds"),
        lambda meta, tensors: tensors.pop("network.epsilon"),
        moment("network.encoder.0.weight", torch.zeros(3, 3)),
        moment("network.stranger", torch.zeros(3)),
        moment("optimiser.0.0.exp_avg", torch.zeros(3)),
        moment("optimiser.0.999.exp_avg", torch.zeros(16, 6)),
        moment("optimiser.0.-1.exp_avg", torch.zeros(16, 6)),
        moment("optimiser.0.x.exp_avg", torch.zeros(16, 6)),
        moment("optimiser.0.0.stranger", torch.zeros(16, 6)),
        lambda meta, tensors: tensors.pop("optimiser.0.0.exp_avg_sq"),
        lambda meta, tensors: tensors.pop("optimiser.0.0.step"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_by_name(tmp_path, change, finished):
    tensors, meta = read_state(finished)
    change(meta, tensors)
    path = tmp_path / finished.name
    save_file(tensors, path, metadata={"format": "1", "meta": json.dumps(meta)})
    with pytest.raises(FileFormatError, match=r"checkpoint-000001-000000000\.safetensors"):
        small_model(epochs=1, checkpoint=tmp_path).fit(rows())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The state of a fit that came to its end."""
    folder = tmp_path_factory.mktemp("state")
    small_model(epochs=1, checkpoint=folder).fit(rows())
    return max(folder.glob("checkpoint-*"))


def test_states_are_ordered_by_number_whatever_their_length(tmp_path, finished):
    names = [(999_999, 0), (1_000_000, 0), (1_000_000, 10**9), (1_000_000, 999_999_999)]
    for epoch, step in names:
        name = f"checkpoint-{epoch:06d}-{step:09d}.safetensors"
        (tmp_path / name).write_bytes(finished.read_bytes())
    (tmp_path / "checkpoint-mine.safetensors").write_text("of the user")
    newest = Checkpoints(tmp_path, read_state(finished)[1]["identity"]).latest().path
    assert newest.name == "checkpoint-1000000-1000000000.safetensors"


def test_a_newest_state_cut_short_gives_way_to_the_one_before(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "INTERVAL", 0.0)
        small_model(epochs=1, checkpoint=tmp_path).fit(rows())
    before, newest = sorted(tmp_path.glob("checkpoint-*"))[-2:]
    assert before.name == "checkpoint-000000-000000009.safetensors"
    newest.write_bytes(newest.read_bytes()[:1000])
    whole = small_model(epochs=1).fit(rows())
    assert bits(small_model(epochs=1, checkpoint=tmp_path).fit(rows())) == bits(whole)


def test_a_finished_fit_removes_what_a_kill_left_beyond_two(tmp_path, finished):
    """A kill after the last rename leaves three, and there is no step more to tidy up."""
    for name in ("checkpoint-000000-000000007", "checkpoint-000000-000000008", finished.stem):
        (tmp_path / f"{name}.safetensors").write_bytes(finished.read_bytes())
    small_model(epochs=1, checkpoint=tmp_path).fit(rows())
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert kept == ["checkpoint-000000-000000008.safetensors", finished.name]


def test_no_state_is_removed_while_none_can_be_read(tmp_path):
    names = [f"checkpoint-00000{epoch}-000000000.safetensors" for epoch in range(4)]
    for name in names:
        (tmp_path / name).write_bytes(b"damaged")
    with pytest.raises(FileFormatError, match="cut short"):
        small_model(epochs=1, checkpoint=tmp_path).fit(rows())
    assert sorted(path.name for path in tmp_path.iterdir()) == names
