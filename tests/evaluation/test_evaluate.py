import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

from selfview import InputError, SelfViewWarning, evaluate
from selfview.evaluation import MEASURES, matched_accuracy
from selfview.evaluation import mutual_information as mi

QUICK = ["linear", "clustering", "knn", "silhouette", "effective_rank"]


def test_all_measures_of_classes_give_a_flat_dict_of_numbers(blobs, monkeypatch):
    monkeypatch.setattr(mi, "STEPS", 100)
    Z, y = blobs
    scores = evaluate(Z, y, X=Z)
    assert {
        "linear_accuracy", "graph_accuracy", "mine", "mine_spread", "kmeans_acc", "kmeans_nmi",
        "kmeans_ari", "knn_accuracy", "trustworthiness", "silhouette", "effective_rank",
        "n_rows", "n_left_out", "graph_rows",
    } <= set(scores)  # fmt: skip
    assert all(type(value) in (int, float) for value in scores.values())
    assert scores["linear_accuracy"] == scores["graph_accuracy"] == scores["kmeans_acc"] == 1
    assert scores["trustworthiness"] == 1
    assert "regression_rss" not in scores
    json.dumps(scores)


def test_the_same_seed_gives_the_same_numbers(blobs, monkeypatch):
    monkeypatch.setattr(mi, "STEPS", 40)
    rng = np.random.default_rng(1)
    Z, y = rng.normal(size=(200, 3)), rng.integers(0, 4, 200)
    assert evaluate(Z, y, random_state=3) == evaluate(Z, y, random_state=3)
    assert evaluate(Z, y, measures="mine", random_state=4) != evaluate(Z, y, measures="mine")


def test_shuffled_labels_score_at_chance(monkeypatch):
    monkeypatch.setattr(mi, "STEPS", 100)
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 120)
    Z = rng.normal(size=(600, 4)) + 6 * np.eye(5, 4)[y]
    scores = evaluate(Z, rng.permutation(y))
    for name in ("linear_accuracy", "graph_accuracy", "knn_accuracy", "kmeans_acc"):
        assert scores[name] < 0.3, name  # chance is 0.2
    assert abs(scores["kmeans_ari"]) < 0.02
    assert abs(scores["mine"]) < 0.05


def test_a_collapsed_embedding_of_sorted_rows_does_not_look_informed():
    y = np.repeat([0, 1, 2], 50)
    scores = evaluate(np.zeros((150, 4)), y, measures=[*QUICK, "graph"])
    assert scores["graph_accuracy"] < 0.5
    assert scores["linear_accuracy"] == pytest.approx(1 / 3)
    assert scores["effective_rank"] == 0


@pytest.mark.parametrize("missing", [-1, np.nan])
def test_rows_without_a_label_are_left_out_and_said_so(blobs, missing):
    Z, y = blobs
    gaps = y.astype(float)
    gaps[::10] = missing
    with pytest.warns(SelfViewWarning, match="18 of 180 rows have no label"):
        scores = evaluate(Z, gaps, measures=QUICK)
    assert (scores["n_rows"], scores["n_left_out"]) == (162, 18)
    kept = gaps == y
    whole = evaluate(Z[kept], y[kept], measures=QUICK)
    assert {**whole, "n_left_out": 18} == scores


def test_names_of_labels_do_not_matter(blobs):
    Z, y = blobs
    plain = evaluate(Z, y, measures=QUICK)
    assert evaluate(Z, np.array(["ant", "bee", "cow"])[y], measures=QUICK) == plain
    assert evaluate(Z, np.array([-7, 3, 900])[y], measures=QUICK) == plain
    mixed = np.array(["1", "2", "3"], dtype=object)[y]
    mixed[0] = None
    with pytest.warns(SelfViewWarning, match="1 of 180"):
        assert evaluate(Z, mixed, measures=QUICK)["n_classes"] == 3


def test_a_class_with_one_member_goes_to_training(blobs):
    Z, y = blobs
    y = y.copy()
    y[0] = 9
    scores = evaluate(Z, y, measures=QUICK)
    assert scores["n_classes"] == 4
    assert scores["linear_accuracy"] > 0.9


def test_three_rows_are_enough_for_the_quick_measures():
    scores = evaluate([[0.0, 1], [5, 1], [0, 1.1]], [0, 1, 0], measures=[*QUICK, "graph"])
    assert scores["n_train"] + scores["n_test"] == 3


def test_a_row_that_is_not_finite_is_named(blobs):
    Z, y = blobs
    Z[17, 2] = np.inf
    with pytest.raises(InputError, match="row 17 holds inf in column 2"):
        evaluate(Z, y)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [0, 1]}, "one row for each of the 180 rows"),
        ({"y": np.zeros(180, int)}, "at least two classes"),
        ({"y": np.arange(180)}, "target='continuous'"),
        ({"Z": np.zeros(180)}, "reshape"),
        ({"Z": np.zeros((180, 2, 2))}, "two axes"),
        ({"Z": [["a"]] * 180}, "real numbers"),
        ({"measures": "linaer"}, "unknown measure 'linaer'; known are linear, graph"),
        ({"measures": []}, "empty"),
        ({"measures": None}, "name or a list"),
        ({"measures": "regression"}, "needs continuous"),
        ({"measures": "trustworthiness"}, "pass it as X"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": 0.5}, "random_state"),
        ({"target": "labels"}, "target must be"),
        ({"split": ([0, 1], [1, 2])}, "row 1"),
        ({"split": ([0, 1], [500])}, "from 0 to 179"),
        ({"split": ["train"] * 179 + ["tset"]}, "'tset'"),
        ({"split": np.zeros(180, bool)}, "both parts"),
        ({"split": np.zeros(3, bool)}, "180 rows"),
        ({"X": np.zeros((3, 2))}, "180 rows of Z"),
    ],
)
def test_wrong_calls_say_what_is_wrong(blobs, changes, message):
    Z, y = blobs
    with pytest.raises(InputError, match=message):
        evaluate(**({"Z": Z, "y": y} | changes))


def test_the_three_forms_of_a_split_agree(blobs):
    Z, y = blobs
    mask = np.arange(180) % 3 == 0
    forms = [mask, (np.flatnonzero(~mask), np.flatnonzero(mask)), np.where(mask, "test", "train")]
    first, *others = [evaluate(Z, y, split=form, measures=QUICK) for form in forms]
    assert all(other == first for other in others)
    assert (first["n_train"], first["n_test"], first["n_scored"]) == (120, 60, 60)


def test_measures_blind_to_labels_look_at_the_test_rows_of_a_given_split(blobs):
    Z, y = blobs
    mask = np.arange(180) % 3 == 0
    spoiled = np.where(mask[:, None], Z, 0)
    names = ["clustering", "silhouette", "effective_rank"]
    split = evaluate(spoiled, y, split=mask, measures=names)
    alone = evaluate(Z[mask], y[mask], measures=names)
    for name in ("kmeans_acc", "silhouette", "effective_rank"):
        assert split[name] == alone[name]


def test_huge_and_tiny_embeddings_score_like_moderate_ones(blobs):
    Z, y = blobs
    plain = evaluate(Z, y, measures=QUICK)
    for factor in (1e300, 1e-300, 1000):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scores = evaluate(Z * factor, y, measures=QUICK)
        assert scores == pytest.approx(plain, rel=1e-6)


def test_progress_names_every_measure_in_turn(blobs):
    seen = []
    evaluate(*blobs, measures=QUICK, progress=lambda *call: seen.append(call))
    assert [name for name, _, _ in seen] == [name for name in MEASURES if name in QUICK]
    assert [number for _, number, _ in seen] == list(range(len(QUICK)))


def test_evaluation_imports_no_model_code():
    code = (
        "import sys, selfview.evaluation, selfview.evaluation.mutual_information\n"
        "bad = {'method', 'estimator', 'training', 'networks', 'data', 'baselines'}\n"
        "print([m for m in sys.modules if m.startswith('selfview.') and m.split('.')[1] in bad])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_matched_accuracy_takes_unequal_numbers_of_clusters_and_classes():
    assert matched_accuracy([0, 0, 1, 1], [0, 1, 2, 2]) == 0.75
    assert matched_accuracy(["a", "a", "b"], [5, 5, 5]) == pytest.approx(2 / 3)
