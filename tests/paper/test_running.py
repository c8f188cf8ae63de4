"""Running a grid: only what is missing, nothing trained twice, failures on record."""

import contextlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from selfview import evaluate
from selfview.data import Dataset
from selfview.errors import CheckpointError, DownloadError
from selfview.paper import measuring, metrics, running, training
from selfview.paper.budgets import SMOKE
from selfview.paper.datasets import load_sample
from selfview.paper.plan import Choice, jobs_of, missing
from selfview.paper.records import RECORDS, read_shelf
from selfview.paper.running import run
from selfview.saving.checkpoints import Checkpoints
from selfview.training.progress import Progress

EVERYTHING = ("fit", "scores", "data", "parameters", "resolved", "history", "health", "provenance")


def jobs(what="table5", methods=None, count=None):
    return jobs_of(what.split(","), Choice(SMOKE, ["digits"], methods))[:count]


@pytest.fixture
def folders(tmp_path):
    return tmp_path / "out", tmp_path / "work"


@pytest.fixture
def no_training(monkeypatch):
    def refuse(*_):
        raise AssertionError("trained again")

    return lambda: monkeypatch.setattr(training, "train", refuse)


def test_a_table_is_run_once_and_then_known(folders, no_training):
    first = run(jobs(), *folders, budget="smoke")
    assert (first.done, first.failed, first.before) == (4, 0, 0)
    lines = (folders[0] / RECORDS).read_bytes()
    no_training()
    again = run(jobs(), *folders, budget="smoke")
    assert (again.done, again.failed, again.before) == (0, 0, 4)
    assert (folders[0] / RECORDS).read_bytes() == lines


def test_a_record_holds_everything(folders):
    run(jobs(count=1), *folders, budget="smoke")
    (record,) = read_shelf(folders[0]).records.values()
    for name in EVERYTHING:
        assert getattr(record, name), name
    assert record.parameters["views"] == "none"
    assert record.seconds > 0
    assert record.history[-1]["epoch"] == record.resolved["epochs"] == 2
    assert record.resolved["precision"] in ("float32", "bfloat16")
    assert record.data["rows"] == 240
    assert set(record.provenance) == {"commit", "versions", "machine", "when"}
    assert record.provenance["versions"]["torch"]
    assert 0 <= record.value("linear", "linear_accuracy") <= 1
    json.loads((folders[0] / RECORDS).read_text())  # one line of plain JSON


def test_a_new_measure_is_taken_from_the_kept_embedding(folders, no_training):
    run(jobs("table5", count=4), *folders, budget="smoke")
    no_training()
    wanted = jobs("table4", ["ours"])
    assert run(wanted, *folders, budget="smoke").done == 1
    record = read_shelf(folders[0]).records[wanted[0].fit.key]
    assert {"linear", "clustering"} <= set(record.scores)


def test_a_changed_measure_is_taken_again_without_training(folders, no_training, monkeypatch):
    run(jobs(count=1), *folders, budget="smoke")
    no_training()
    monkeypatch.setitem(metrics.VERSIONS, "linear", 99)
    assert missing(jobs(count=1)[0], read_shelf(folders[0])) == ("linear",)
    assert run(jobs(count=1), *folders, budget="smoke").done == 1
    (record,) = read_shelf(folders[0]).records.values()
    assert record.scores["linear"]["version"] == 99
    assert record.scores["cost"]["version"] == 1


def test_a_damaged_line_is_said_and_its_run_recorded_again(folders, no_training):
    run(jobs(count=1), *folders, budget="smoke")
    path = folders[0] / RECORDS
    path.write_bytes(path.read_bytes()[:200])
    no_training()  # the embedding is still there
    said = []
    assert run(jobs(count=1), *folders, budget="smoke", say=said.append).done == 1
    assert any("line 1" in line for line in said)
    assert len(read_shelf(folders[0]).records) == 1


def test_a_lost_embedding_is_trained_again_and_all_its_scores_are_of_the_new_one(folders):
    run(jobs(count=1), *folders, budget="smoke")
    before = next(iter(read_shelf(folders[0]).records.values()))
    embedding = folders[1] / before.key / training.EMBEDDING
    embedding.write_bytes(embedding.read_bytes()[:100])
    more = [replace(job, measures=(*job.measures, "clustering")) for job in jobs(count=1)]
    run(more, *folders, budget="smoke")
    after = read_shelf(folders[0]).records[before.key]
    assert {"linear", "clustering"} <= set(after.scores)
    assert after.value("linear", "linear_accuracy") == before.value("linear", "linear_accuracy")
    assert len(np.load(embedding)) == 240


def test_an_interrupted_run_goes_on_with_the_same_bits(folders, tmp_path, monkeypatch):
    job = jobs(count=1)
    run(job, tmp_path / "other", tmp_path / "whole", budget="smoke")
    expected = np.load(tmp_path / "whole" / job[0].fit.key / training.EMBEDDING)

    def stop_in_the_second(_progress, metrics):
        if metrics["epoch"] == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "INTERVAL", -1.0)
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "after_epoch", stop_in_the_second)
        with pytest.raises(KeyboardInterrupt):
            run(job, *folders, budget="smoke")
    assert list((folders[1] / job[0].fit.key / "checkpoint").glob("checkpoint-000001-*"))
    run(job, *folders, budget="smoke")
    resumed = np.load(folders[1] / job[0].fit.key / training.EMBEDDING)
    np.testing.assert_array_equal(resumed, expected)
    assert not (folders[1] / job[0].fit.key / "checkpoint").exists()


def test_k_means_is_also_the_best_of_the_last_epochs(folders):
    (job,) = jobs("table4", ["ours"])
    run([job], *folders, budget="smoke")
    (record,) = read_shelf(folders[0]).records.values()
    epochs = training.embeddings(folders[1] / job.fit.key)
    assert list(epochs) == [1, 2]
    np.testing.assert_array_equal(
        np.load(epochs[2]), np.load(folders[1] / job.fit.key / training.EMBEDDING)
    )
    y = load_sample("digits", 240).y
    each = [evaluate(np.load(path), y, measures=["clustering"]) for path in epochs.values()]
    for name in ("kmeans_acc", "kmeans_nmi", "kmeans_ari"):
        values = [scores[name] for scores in each]
        assert record.value("clustering", name) == pytest.approx(values[-1])
        assert record.value("clustering", f"{name}_best") == pytest.approx(max(values))


def test_the_curve_is_of_one_run_that_tables_share(folders):
    (job,) = [job for job in jobs("table2,curve", ["ours"]) if "curve" in job.measures]
    assert {"linear", "curve"} <= set(job.measures)
    run([job], *folders, budget="smoke")
    (record,) = read_shelf(folders[0]).records.values()
    assert record.curve()[-1] == (2, 100 * record.value("linear", "linear_accuracy"))


def test_the_epochs_that_are_kept_are_the_last_ten_and_every_25th():
    kept = training.kept_epochs(400)
    assert kept[:3] == [25, 50, 75]
    assert kept[-11:] == [375, *range(391, 401)]
    assert training.kept_epochs(None) == []


def test_only_images_are_judged_on_a_test_part():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    parts = dict(train=np.arange(30), test=np.arange(30, 40))
    for name, on_test in (("20news", False), ("fashion-mnist", True)):
        sample = Dataset(name, rows, np.arange(40) % 2, **parts)
        subject = measuring.Subject(Path(), {}, sample, "pca", 0)
        assert (subject.split is not None) == on_test


def test_a_damaged_checkpoint_starts_the_run_again_and_says_so(folders):
    job = jobs(count=1)
    checkpoint = folders[1] / job[0].fit.key / "checkpoint"
    checkpoint.mkdir(parents=True)
    (checkpoint / "checkpoint-000001-000000000.safetensors").write_bytes(b"nonsense")
    assert run(job, *folders, budget="smoke").done == 1
    (record,) = read_shelf(folders[0]).records.values()
    assert any("checkpoint" in note for note in record.notes)


def test_a_failure_is_a_record_and_is_tried_again(folders, monkeypatch):
    def fail(*_):
        raise MemoryError("too large")

    with monkeypatch.context() as failing:
        failing.setattr(training, "train", fail)
        outcome = run(jobs(count=2), *folders, budget="smoke")
    assert (outcome.done, outcome.failed) == (0, 2)
    errors = {record.error for record in read_shelf(folders[0]).records.values()}
    assert errors == {"MemoryError: too large"}
    assert run(jobs(count=2), *folders, budget="smoke").done == 2


def test_a_failure_leaves_a_good_record_as_it_was(folders, monkeypatch):
    run(jobs(count=1), *folders, budget="smoke")
    (known,) = read_shelf(folders[0]).records.values()
    shutil.rmtree(folders[1])

    def fail(*_):
        raise MemoryError("too large")

    monkeypatch.setattr(training, "train", fail)
    more = [replace(job, measures=(*job.measures, "clustering")) for job in jobs(count=1)]
    said = []
    assert run(more, *folders, budget="smoke", say=said.append).failed == 1
    assert read_shelf(folders[0]).records[known.key] == known
    assert any("trained again" in line for line in said)


@pytest.mark.parametrize("lost", [training.LOGITS, "epochs/000002.npy", "history"])
def test_a_work_folder_that_lacks_a_part_is_made_again(folders, lost):
    (job,) = jobs(count=1)
    run([job], *folders, budget="smoke")
    folder = folders[1] / job.fit.key
    if lost.endswith(".npy"):
        (folder / lost).unlink()
    else:
        about = json.loads((folder / training.ABOUT).read_text())
        del about[lost]
        (folder / training.ABOUT).write_text(json.dumps(about))
    assert training.trained(folder, job.fit) is None
    more = [replace(job, measures=(*job.measures, "clustering"))]
    assert run(more, *folders, budget="smoke").done == 1
    assert training.trained(folder, job.fit) is not None


def test_a_run_is_tried_again_at_the_end_if_another_process_had_it(folders):
    first, second = jobs(count=2)
    with contextlib.ExitStack() as held:
        held.enter_context(training.claimed(folders[1] / first.fit.key))
        said = []

        def say(line):
            said.append(line)
            if second.fit.describe() in line:
                held.close()

        outcome = run([first, second], *folders, budget="smoke", say=say)
    assert (outcome.done, outcome.busy) == (2, 0)


def test_a_folder_that_cannot_be_written_is_told_before_training(folders, no_training):
    no_training()
    folders[0].write_text("a file")
    with pytest.raises(CheckpointError, match="can't be written"):
        run(jobs(count=1), *folders, budget="smoke")


def test_a_failed_measure_keeps_the_training_and_the_other_measures(folders, monkeypatch):
    def fail(_):
        raise ValueError("no")

    with monkeypatch.context() as failing:
        failing.setitem(measuring.MEASURES, "linear", fail)
        assert run(jobs(count=1), *folders, budget="smoke").failed == 1
    (record,) = read_shelf(folders[0]).records.values()
    assert record.error == ""
    assert record.scores["linear"]["error"] == "ValueError: no"
    assert record.value("cost", "n_parameters") > 1e6
    assert run(jobs(count=1), *folders, budget="smoke").done == 1


def test_a_run_that_another_process_holds_is_left_to_it(folders):
    (job,) = jobs(count=1)
    with training.claimed(folders[1] / job.fit.key):
        outcome = run([job], *folders, budget="smoke")
    assert (outcome.busy, outcome.done) == (1, 0)
    assert read_shelf(folders[0]).records == {}


def test_a_dataset_that_cannot_be_had_is_said_once(folders, monkeypatch):
    def absent(*_):
        raise DownloadError("no network")

    monkeypatch.setattr(running, "load_sample", absent)
    outcome = run(jobs(), *folders, budget="smoke")
    assert outcome.unavailable == ("digits: no network",)
    assert read_shelf(folders[0]).records == {}


def test_every_classical_method_raw_features_and_figures_run(folders):
    methods = ["pca", "lle", "raw"]
    todo = jobs("table2", methods) + jobs("fig3")
    outcome = run(todo, *folders, budget="smoke")
    assert (outcome.done, outcome.failed) == (4, 0)
    shelf = read_shelf(folders[0])
    assert not any(missing(job, shelf) for job in todo)
    (raw,) = [r for r in shelf.records.values() if r.fit["method"] == "raw"]
    assert raw.resolved["dimensions"] == 64
    assert not (folders[1] / raw.key / training.EMBEDDING).exists()


def test_without_umap_its_row_says_how_to_get_it(folders, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "umap", None)
    todo = jobs("table2", ["umap"])
    assert run(todo, *folders, budget="smoke").failed == 1
    (record,) = read_shelf(folders[0]).records.values()
    assert "pip install 'selfview[peers]'" in record.error
