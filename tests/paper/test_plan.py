"""Grids and budgets."""

from dataclasses import replace

import pytest

from selfview.errors import InputError
from selfview.paper.budgets import BUDGETS, CONVERGED, LAPTOP, PAPER, SMOKE
from selfview.paper.grid import TITLES
from selfview.paper.methods import METHODS
from selfview.paper.metrics import VERSIONS
from selfview.paper.overview import seconds
from selfview.paper.page import gaps
from selfview.paper.plan import Choice, jobs_of, names_of, parse_seeds
from selfview.paper.records import read_shelf
from selfview.paper.results import tabulate


def keys(what, choice):
    return {job.fit.key for job in jobs_of(names_of(what), choice)}


def key_of(name, row, dataset, choice):
    piece = choice.piece(name)
    (found,) = [r for r in choice.rows(piece) if r.title == row]
    return choice.fits(piece, found, dataset)[0][0].key


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=list(BUDGETS))
def test_tables_share_the_runs_that_are_the_same(budget):
    choice = Choice(budget)
    main = key_of("table2", "Ours (paper's recipe)", "fsdd", choice)
    assert key_of("table5", "VAT", "fsdd", choice) == main
    assert key_of("table6", "EN-CL BN", "fsdd", choice) == main
    assert (key_of("fig5", "100", "fsdd", choice) != main) == (budget.sweep_share < 1)
    assert key_of("fig4", "Ours (paper's recipe)", "fsdd", choice) == main
    assert keys("table4", choice) == keys("table3", choice)
    assert keys("table2", choice) < keys("table3", choice)
    assert key_of("table2", "Ours (our default)", "fsdd", choice) != main


def test_a_method_whose_results_change_gets_new_keys(monkeypatch):
    before = {job.fit.method: job.fit.key for job in jobs_of(["table2"], Choice(SMOKE, ["fsdd"]))}
    monkeypatch.setitem(METHODS, "pca", replace(METHODS["pca"], version=2))
    after = {job.fit.method: job.fit.key for job in jobs_of(["table2"], Choice(SMOKE, ["fsdd"]))}
    assert {method for method in before if before[method] != after[method]} == {"pca"}


def test_records_of_an_earlier_version_count_as_not_run(full_folder, monkeypatch):
    folder, choice = full_folder
    monkeypatch.setitem(METHODS, "pca", replace(METHODS["pca"], version=2))
    monkeypatch.setitem(VERSIONS, "graph", 99)
    shelf = read_shelf(folder)
    table = tabulate("table2", choice, shelf)
    assert table.cell("PCA", "fsdd", "linear").mean is None
    assert table.cell("NMF", "fsdd", "linear").mean is not None
    assert table.cell("NMF", "fsdd", "graph").mean is None
    assert any(line.startswith("missing:") for line in gaps("table2", choice, shelf))


def test_the_options_of_a_choice_make_it_again():
    choice = Choice(SMOKE, ["fsdd"], ["pca", "ae"], [2])
    assert choice.options() == " --methods pca,ae --seeds 2,"
    assert parse_seeds("2,") == [2]
    assert choice.narrowed
    assert not Choice(SMOKE).narrowed
    assert Choice(SMOKE).options() == ""


def test_a_table_says_what_was_spent_on_it():
    choice = Choice(CONVERGED, datasets=["fsdd"])
    efforts = {name: choice.effort(choice.piece(name)) for name in ("table2", "table5", "fig5")}
    assert "FSDD: 200 epochs, 3,000 rows, 3 seeds" in efforts["table2"]
    assert "FSDD: 200 epochs, 3,000 rows, 2 seeds" in efforts["table5"]
    assert "FSDD: 134 epochs, 3,000 rows, 1 seed" in efforts["fig5"]


def test_our_recipe_and_our_default_are_chosen_apart():
    recipes = {
        name: {
            dict(j.fit.settings).get("recipe")
            for j in jobs_of(["table2"], Choice(SMOKE, methods=[name]))
        }
        for name in ("ours", "selfview")
    }
    assert recipes == {"ours": {"paper"}, "selfview": {None}}


def test_the_first_seed_of_every_method_comes_before_the_second_of_any():
    seeds = [job.fit.seed for job in jobs_of(names_of("all"), Choice(CONVERGED, ["fsdd"]))]
    assert seeds == sorted(seeds)


def test_a_shared_run_is_done_once_with_all_measures():
    jobs = jobs_of(["table2", "table3", "table4", "fig4"], Choice(SMOKE, datasets=["fsdd"]))
    assert len({job.fit.key for job in jobs}) == len(jobs)
    (main,) = [job for job in jobs if dict(job.fit.settings).get("recipe") == "paper"]
    assert set(main.measures) == {"cost", "linear", "graph", "mine", "clustering", "layout"}


def test_the_paper_budget_is_the_papers():
    fits = [job.fit for job in jobs_of(names_of("table2,table5,table6,fig5"), Choice(PAPER))]
    assert {fit.epochs for fit in fits} == {5000, None}
    assert {fit.seed for fit in fits} == {0, 1, 2, 3, 4}
    assert {fit.rows for fit in fits} == {None}
    assert {job.fit.epochs for job in jobs_of(["fig7"], Choice(PAPER))} == {10_000}
    learned = [fit for fit in fits if fit.method in ("ae", "cpc")]
    assert {dict(fit.settings)["recipe"] for fit in learned} == {"paper"}
    epsilons = {
        f.dataset: dict(f.settings)["epsilon"]
        for f in fits
        if f.method == "selfview" and dict(f.settings).get("recipe") == "paper"
    }
    assert epsilons == {
        "fsdd": 5.0,
        "20news": 20.0,
        "mnist": 2.0,
        "fashion-mnist": 2.0,
        # Other rows than the paper's.
        "reuters": "auto",
        "msi": "auto",
    }


def test_the_laptop_budget_is_an_evening_on_one_core():
    total = sum(map(seconds, jobs_of(names_of("all"), Choice(LAPTOP))))
    assert total / 3600 <= 6


def test_methods_on_fewer_rows_get_as_many_steps():
    jobs = jobs_of(["table2"], Choice(CONVERGED, ["mnist"], ["ae", "vae"]))
    fits = {job.fit.method: job.fit for job in jobs}
    assert (fits["ae"].rows, fits["vae"].rows) == (None, 20_000)
    assert 70_000 * fits["ae"].epochs == pytest.approx(20_000 * fits["vae"].epochs, rel=0.02)


def test_autoencoders_without_batch_norm_may_get_fewer_seeds():
    jobs = jobs_of(["table2"], Choice(CONVERGED, ["fsdd"], ["ae"]))
    seeds = [(dict(job.fit.settings)["batch_norm"], job.fit.seed) for job in jobs]
    assert sorted(seeds) == [(False, 0), (True, 0), (True, 1), (True, 2)]


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "1.5", ",", "99999"])
def test_seeds_that_make_no_sense_are_refused(text):
    with pytest.raises(InputError, match="--seeds"):
        parse_seeds(text)


@pytest.mark.parametrize("text", ["", "table7", "fig1", "all,table9"])
def test_what_does_not_exist_is_refused_with_a_list(text):
    with pytest.raises(InputError, match="table1"):
        names_of(text)


def test_names_come_in_the_papers_order_and_once():
    assert names_of("fig3,table2,fig3") == ["table2", "fig3"]
    assert names_of("all") == list(TITLES)


def test_options_narrow_a_grid():
    jobs = jobs_of(["table2"], Choice(LAPTOP, ["fsdd"], ["pca", "ae"], [4]))
    about = {(j.fit.dataset, j.fit.method, j.fit.seed) for j in jobs}
    assert about == {("fsdd", "pca", 4), ("fsdd", "ae", 4)}
    assert len(jobs) == 3  # the autoencoder with and without batch norm


def test_a_budget_can_leave_out_autoencoders_without_batch_norm():
    kinds = {}
    for name in ("fsdd", "reuters"):
        jobs = jobs_of(["table2"], Choice(LAPTOP, [name], ["ae"], [0]))
        kinds[name] = sorted(dict(job.fit.settings)["batch_norm"] for job in jobs)
    assert kinds == {"fsdd": [False, True], "reuters": [True]}


def test_a_dataset_that_a_figure_is_not_about_leaves_it_empty():
    assert jobs_of(["fig7"], Choice(SMOKE, datasets=["fsdd"])) == []


def test_further_datasets_join_by_name_only():
    assert {job.fit.dataset for job in jobs_of(["fig7"], Choice(SMOKE, ["digits"]))} == {"digits"}
    every = jobs_of(names_of("all"), Choice(SMOKE))
    assert "digits" not in {job.fit.dataset for job in every}
