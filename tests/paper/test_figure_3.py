"""Figure 3 on a model that has learned: the paper's curve."""

from dataclasses import replace

import numpy as np
import pytest

from selfview.paper.budgets import SMOKE
from selfview.paper.figures import crossing
from selfview.paper.plan import Choice, jobs_of
from selfview.paper.records import read_arrays, read_shelf
from selfview.paper.running import run


@pytest.mark.slow
def test_entropy_rises_with_temperature_and_passes_the_predictions_near_one(tmp_path):
    (job,) = jobs_of(["fig3"], Choice(SMOKE, ["digits"]))
    trained = replace(job, fit=replace(job.fit, epochs=120, rows=None))
    assert run([trained], tmp_path, tmp_path / "work", budget="smoke").done == 1
    path = read_shelf(tmp_path).array_path(trained.fit.key, "transport")
    arrays = read_arrays(path, "transport")
    assert np.all(np.diff(arrays["target_entropies"]) > 0)
    level = float(arrays["prediction_entropy"])
    assert level < 0.7 * np.log(100)  # it has learned something
    assert 0.85 < crossing(arrays["temperatures"], arrays["target_entropies"], level) < 1.15
