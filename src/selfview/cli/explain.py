"""`selfview explain`: the features that components or clusters of a run are made of."""

from typing import TYPE_CHECKING, Annotated

import typer

from selfview.cli import complete
from selfview.cli.options import Array, Groups, Id, Run, Sheet, SkipBad, given
from selfview.cli.paths import check_data, check_run

if TYPE_CHECKING:
    from selfview.explain import Explanation

BY = ("component", "cluster")


def explain(
    run: Run,
    data: Annotated[
        str | None,
        typer.Argument(
            help="Rows to explain; those of the fit by default.", autocompletion=complete.data
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Leading features of each.")] = 10,
    by: Annotated[
        str, typer.Option(help="component or cluster.", autocompletion=complete.words(*BY))
    ] = "component",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    label: Annotated[str | None, typer.Option(help="Column of labels, left aside.")] = None,
    id: Id = None,
    groups: Groups = None,
    array: Array = None,
    sheet: Sheet = None,
    skip_bad: SkipBad = False,
) -> None:
    """Say which features the components, or the clusters, of the model in RUN are made of.

    Contributions are integrated gradients from the mean row, in the unit of the embedding. A
    difference is in the unit of the data: how far a cluster is from the mean row, or the standard
    deviation of the feature beside a component.

    Example: selfview explain run --top 10 --by cluster
    """
    check_run(run)
    check_data(data)
    from selfview.cli.run_folder import load_run, rows_of_run
    from selfview.errors import InputError
    from selfview.report.contents import scale_of

    if by not in BY:
        raise typer.BadParameter(f"one of {', '.join(BY)}, not {by}", param_hint="--by")
    model, preparation = load_run(run)
    if by == "cluster" and model.n_clusters is None:
        raise InputError(f"{run} has no clusters: fit it with --clusters, a number or auto")
    options = given(
        label=label, id=id, groups=groups, array=array, sheet=sheet, skip_bad=skip_bad or None
    )
    dataset = rows_of_run(run, preparation, data, options, f"selfview explain {run}")
    explanation = model.explain(dataset.X, by=by).in_units(dataset.feature_names, scale_of(dataset))
    if as_json:
        typer.echo(_json(explanation, top))
    else:
        _print_table(explanation, top)


def _json(explanation: "Explanation", top: int) -> str:
    import json

    leading: dict[str, list[dict[str, object]]] = {target: [] for target in explanation.targets}
    for target, feature, contribution, difference in explanation.top(top):
        entry = {"feature": feature, "contribution": contribution, "difference": difference}
        leading[target].append(entry)
    targets = [{"name": name, "features": features} for name, features in leading.items()]
    return json.dumps({"by": explanation.by, "targets": targets}, indent=2, ensure_ascii=False)


def _print_table(explanation: "Explanation", top: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(explanation.by, "feature", "contribution", "difference")
    for column in table.columns[2:]:
        column.justify = "right"
    last = ""
    for target, feature, contribution, difference in explanation.top(top):
        if last and target != last:
            table.add_section()
        shown = target.removeprefix(f"{explanation.by} ") if target != last else ""
        away = f"{difference:.3g}" if explanation.by == "component" else f"{difference:+.3g}"
        cells = (shown, feature, f"{contribution:+.3g}", away)
        table.add_row(*map(Text, cells))
        last = target
    Console().print(table)
