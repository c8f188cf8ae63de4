"""`selfview compare`: one protocol, one table, nothing done twice, and failures that say why."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from selfview import SelfView, evaluate
from selfview.cli import app
from selfview.cli import comparison as comparing
from selfview.cli.comparison import METHODS, Record, Settings, chosen, compare
from selfview.errors import CheckpointError, InputError
from selfview.report.comparison import markdown, plain, tabulate
from selfview.saving.files import locked

SETTINGS = Settings(n_components=2, epochs=1, measures=("linear",))


@pytest.fixture
def data(blobs, tmp_path):
    """A file of rows and one of labels."""
    X, y = blobs
    np.save(tmp_path / "X.npy", X[::3])
    np.save(tmp_path / "y.npy", y[::3])
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def lines(folder):
    return (folder / "records.jsonl").read_text().splitlines()


def record(method, linear=None, **more):
    scores = {} if linear is None else {"linear_accuracy": linear}
    return Record("study", method, METHODS[method].title, scores=scores, **more)


def test_all_methods_are_named_and_can_be_made():
    every = chosen("all")
    assert set(METHODS) - set(every) == {"umap", "pacmap"}  # of other packages: by name only
    for name in every:
        model = METHODS[name].make(n_components=2, random_state=0)
        assert model.get_params()["n_components"] == 2


def test_raw_features_are_always_there():
    assert chosen(["pca"]) == ["raw", "pca"]


def test_unknown_methods_are_named():
    with pytest.raises(InputError, match="unknown method 'tsne'"):
        chosen(["pca", "tsne"])


def test_methods_have_no_more_components_than_the_rows_have_columns(data):
    blob = np.load(data / "X.npy")
    np.save(data / "four.npy", np.abs(blob[:, :4]) + np.eye(len(blob), 4))
    options = ("--methods", "pca,nmf,lle,isomap", "--out", data / "out")
    done = run(data / "four.npy", "--labels", data / "y.npy", *options)
    assert done.exit_code == 0
    records = [json.loads(line) for line in lines(data / "out")]
    assert [r["method"] for r in records] == ["raw", "pca", "nmf", "lle", "isomap"]
    assert not any(r["error"] for r in records)
    assert records[1]["scores"]["linear_accuracy"] > 0.9
    for title in ("PCA", "NMF", "LLE", "Isomap"):
        assert f"{title}: 4 components, as many as the rows allow" in done.output
    assert "raw features: 4 components" not in done.output


def test_a_mixed_table_is_read_as_fit_reads_it(tmp_path):
    rows = [f"r{i},{'ab'[i % 2]},{i % 7},{i},{'xy'[i // 30]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["name,letter,size,time,kind", *rows]))
    options = ("--labels", "kind", "--methods", "pca", "--drop", "time", "--categorical", "size")
    done = run(tmp_path / "t.csv", *options, "--components", 2, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    _, pca = [json.loads(line) for line in lines(tmp_path / "out")]
    assert pca["parameters"] == 9 * 3  # one-hot: 2 letters and 7 sizes; their mean beside


def test_values_that_print_alike_are_marked_alike():
    found = tabulate([record("raw", 0.9251), record("pca", 0.9249), record("ae", 0.9244)])
    assert [row[1].text for row in found.rows] == ["92.5", "92.5", "92.4"]
    assert [row[1].best for row in found.rows] == [True, True, False]


def test_autoencoders_are_tried_with_and_without_batch_norm(blobs):
    X, y = blobs
    records = compare(X[::6], y[::6], ["ae"], settings=SETTINGS)
    assert [r.variant for r in records] == ["", "batch norm", "no batch norm"]
    assert not any(r.error for r in records)


def test_finished_methods_are_not_repeated(blobs, tmp_path, monkeypatch):
    X, y = blobs
    first = compare(X, y, ["pca", "nmf"], settings=SETTINGS, folder=tmp_path)
    assert next(r for r in first if r.method == "nmf").error.startswith("Negative values")

    def never(*_):
        raise AssertionError("fitted again")

    monkeypatch.setattr(comparing, "_model", never)
    again = compare(X, y, ["pca"], settings=SETTINGS, folder=tmp_path)
    assert again == first[:2]


def test_an_interrupted_comparison_goes_on(blobs, tmp_path, monkeypatch):
    X, y = blobs
    made = comparing._model

    def interrupted(method, *others):
        if method.title == "Isomap":
            raise KeyboardInterrupt
        return made(method, *others)

    monkeypatch.setattr(comparing, "_model", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compare(X, y, ["pca", "isomap"], settings=SETTINGS, folder=tmp_path)
    assert [json.loads(line)["method"] for line in lines(tmp_path)] == ["raw", "pca"]
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write('{"study": "cut sho')  # by a crash in the middle of a line
    monkeypatch.setattr(comparing, "_model", made)
    said = []
    records = compare(X, y, ["pca", "isomap"], settings=SETTINGS, folder=tmp_path, say=said.append)
    assert [r.error for r in records] == ["", "", ""]
    assert "PCA: done before" in said
    assert json.loads(lines(tmp_path)[-1])["method"] == "isomap"


def test_a_second_comparison_in_the_same_folder_is_refused(data):
    out = data / "out"
    with locked(out / "checkpoints"):  # as another process would hold it
        refused = run(data / "X.npy", "--labels", data / "y.npy", "--methods", "pca", "-o", out)
    assert isinstance(refused.exception, CheckpointError)
    assert "is in use by process" in str(refused.exception)
    assert not (out / "records.jsonl").exists()


def test_the_folder_is_free_again_after_a_failure(blobs, tmp_path, monkeypatch):
    X, y = blobs
    with monkeypatch.context() as patch:
        patch.setattr(comparing, "_attempt", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            compare(X, y, ["pca"], settings=SETTINGS, folder=tmp_path)
    assert not compare(X, y, ["pca"], settings=SETTINGS, folder=tmp_path)[1].error


def test_seconds_before_an_interruption_count(blobs, tmp_path, monkeypatch):
    X, y = blobs
    settings = Settings(n_components=2, epochs=5, measures=("linear",))
    made, models = comparing._model, []

    def kept(*arguments):
        models.append(made(*arguments))
        return models[-1]

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(comparing, "_model", kept)
    compare(X, y, ["raw"], settings=settings, folder=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(comparing, "evaluate", interrupted)  # the fit is done, and in a checkpoint
        with pytest.raises(KeyboardInterrupt):
            compare(X, y, ["cpc"], settings=settings, folder=tmp_path)
    again = compare(X, y, ["cpc"], settings=settings, folder=tmp_path)[-1]
    assert again.seconds >= models[-2].history_[-1]["seconds"]
    assert not list((tmp_path / "checkpoints").iterdir())


def test_other_data_or_settings_are_another_study(blobs, tmp_path):
    X, y = blobs
    for rows, labels, settings in (
        (X, y, SETTINGS),
        (X + 1e-3, y, SETTINGS),
        (X, y[::-1], SETTINGS),
        (X, y, Settings(n_components=3, measures=("linear",))),
    ):
        compare(rows, labels, ["pca"], settings=settings, folder=tmp_path)
    assert len({json.loads(line)["study"] for line in lines(tmp_path)}) == 4


def test_a_failing_method_is_a_row_that_says_why(blobs, monkeypatch):
    X, y = blobs

    def broken(*_):
        raise ZeroDivisionError("no luck")

    monkeypatch.setattr(comparing, "_model", broken)
    records = compare(X, y, ["pca"], settings=SETTINGS)
    assert records[1].error == "ZeroDivisionError: no luck"
    table = tabulate(records)
    assert [cell.text for cell in table.rows[1]] == ["PCA", "failed", "-"]
    assert "PCA: ZeroDivisionError: no luck" in table.footnotes


def test_columns_of_different_scale_are_standardised_for_all(blobs):
    X, y = blobs
    unlike = X * np.where(np.arange(X.shape[1]) == 0, 1e4, 1) + 50  # far from zero, as years are
    settings = Settings(n_components=2, epochs=5, measures=("clustering",))
    found = {r.method: r for r in compare(unlike, y, ["pca", "selfview"], settings=settings)}
    expected = {r.method: r for r in compare(X / X.std(axis=0), y, ["pca"], settings=settings)}
    for name, record in expected.items():
        assert found[name].scores == pytest.approx(record.scores, abs=1e-6)
    # SelfView handles scales by itself: it gets the rows as they are.
    model = SelfView(n_components=2, epochs=5, random_state=0, verbose=0)
    alone = evaluate(model.fit_transform(unlike), y, measures="clustering")
    assert found["selfview"].scores == pytest.approx(alone, abs=1e-6)
    assert "divided by its standard deviation" in markdown(tabulate([*found.values()]))
    assert "divided by its standard deviation" not in markdown(tabulate([*expected.values()]))


def test_the_best_of_a_column_is_marked():
    table = tabulate([record("raw", 0.5), record("pca", 0.9), record("nmf", 0.7)])
    assert "**90.0**" in markdown(table)
    assert markdown(table).count("**") == 2
    assert "90.0*" in plain(table)


def test_the_better_variant_is_reported_and_named():
    table = tabulate([
        record("ae", 0.6, variant="batch norm"),
        record("ae", 0.8, variant="no batch norm"),
    ])  # fmt: skip
    assert [row[0].text for row in table.rows] == ["AE (no batch norm)"]
    failed = record("ae", variant="batch norm", error="no")
    table = tabulate([failed, record("ae", 0.1, variant="no batch norm")])
    assert table.rows[0][1].text == "10.0"


def test_the_usual_table_fits_a_terminal_of_80_columns():
    names = ("linear_accuracy", "kmeans_acc", "kmeans_nmi", "kmeans_ari")
    scores = dict.fromkeys(names, 1.0)
    long = Record("study", "ae", "AE", "no batch norm", scores, 98765.4, 10_000_000)
    assert max(map(len, plain(tabulate([long])).splitlines())) <= 80


def test_less_is_better_for_residuals():
    rows = [
        Record("study", name, name, scores={"regression_rss": rss})
        for name, rss in (("a", 3.0), ("b", 2.0))
    ]
    assert [row[1].best for row in tabulate(rows).rows] == [False, True]


def test_the_command_prints_one_table_and_resumes(data):
    out = data / "out"
    call = (data / "X.npy", "--labels", data / "y.npy", "--methods", "pca,lle", "-o", out,
            "--components", 2)  # fmt: skip
    first = run(*call)
    assert first.exit_code == 0, first.output
    for word in ("raw features", "PCA", "LLE", "linear %", "seconds", "parameters"):
        assert word in first.stdout
    done = len(lines(out))
    # `--label`, as `fit` says it, is the same option.
    second = run(*["--label" if word == "--labels" else word for word in call])
    assert second.stdout == first.stdout
    assert len(lines(out)) == done
    assert "| PCA |" in (out / "table.md").read_text()


def test_wrong_calls_exit_with_2_and_wrong_data_with_1(data):
    X, y = data / "X.npy", data / "y.npy"
    assert run(X, "--labels", y, "--methods", "tsne").exit_code == 2
    assert run(X, "--labels", y, "--epochs", "few").exit_code == 2
    assert run(X, "--labels", y, "--components", 0).exit_code == 2
    assert isinstance(run(X).exception, InputError)  # no labels
    assert isinstance(run(data / "none.npy").exception, InputError)
    np.save(data / "short.npy", np.arange(5))
    assert isinstance(run(X, "--labels", data / "short.npy").exception, InputError)
    assert isinstance(run(X, "--labels", y, "--measures", "magic").exception, InputError)


def test_continuous_targets_are_judged_by_regression(data, rng):
    np.save(data / "t.npy", rng.normal(size=(80, 3)))
    done = run(data / "X.npy", "--labels", data / "t.npy", "--methods", "pca", "-o", data / "o",
               "--components", 2)  # fmt: skip
    assert "RSS" in done.stdout


def test_a_measurement_is_not_told_by_heart(data, rng):
    X = np.load(data / "X.npy")
    wide = rng.normal(size=(len(X), len(X)))
    np.save(data / "wide.npy", wide)
    np.savetxt(data / "target.txt", rng.normal(size=len(X)))
    done = run(data / "wide.npy", "--labels", data / "target.txt", "--methods", "pca",
               "--out", data / "o")  # fmt: skip
    assert done.exit_code == 0, done.output
    raw = json.loads(lines(data / "o")[0])
    assert raw["scores"]["regression_r2"] < 0.5  # as many features as rows: 1 on the rows of a fit
