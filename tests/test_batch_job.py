"""The example of a batch job: an exported model maps over parts in processes of Dask."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from selfview import SelfView, export

SCRIPT = Path(__file__).parents[1] / "examples" / "batch" / "embed_parts.py"


@pytest.mark.filterwarnings("ignore")  # one epoch learns little; the exporter's own
def test_a_batch_job_embeds_every_part_as_transform_does_and_goes_on_after_a_stop(tmp_path):
    pytest.importorskip("dask", reason="dask is not installed: pip install dask")
    pytest.importorskip("onnxruntime", reason="needs the extra export")
    X = np.random.default_rng(0).normal(size=(300, 12)).astype(np.float32)
    model = SelfView(epochs=1, random_state=0, verbose=0).fit(X)
    export(model, tmp_path / "encoder.onnx", "onnx")
    parts = np.split(X, [70, 200])
    for i, part in enumerate(parts):
        np.save(tmp_path / f"part-{i}.npy", part)

    def job():
        pattern, out = tmp_path / "part-*.npy", tmp_path / "embedded"
        command = [sys.executable, SCRIPT, tmp_path / "encoder.onnx", pattern, out, "2"]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)

    np.save(tmp_path / "part-1.npy", parts[1][:, :5])  # not this model's rows: the job stops
    assert job().returncode != 0
    np.save(tmp_path / "part-1.npy", parts[1])
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "embedded").glob("*.npy")}
    assert "part-1.npy" not in kept
    done = job()
    assert done.returncode == 0, done.stderr
    assert f"{3 - len(kept)} of 3 parts embedded, {len(kept)} were there" in done.stdout
    for i, part in enumerate(parts):
        found = tmp_path / "embedded" / f"part-{i}.npy"
        assert found.stat().st_mtime_ns == kept.get(found.name, found.stat().st_mtime_ns)
        np.testing.assert_allclose(np.load(found), model.transform(part), atol=1e-5)
