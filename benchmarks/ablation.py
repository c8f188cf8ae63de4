"""What each part of the default is worth: the default without it, on five sets and three seeds.

    python benchmarks/ablation.py run  [--parts contrast ...] [--sets digits ...] [--seeds 3]
    python benchmarks/ablation.py show [--records results/ablation.jsonl]

`run` appends a line of JSON for every fit; what is on record is not run again. `show` writes
docs/ablation.md: the difference of each score to that of the default, as a mean over sets and
seeds. The sets are the contest's, and need SELFVIEW_DATA. Nothing is timed.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

from contest import MEASURES, load, read_records, scores
from selfview import SelfView
from selfview.estimator.recipes import RECIPES, Recipe

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "results" / "ablation.jsonl"
PAGE = ROOT / "docs" / "ablation.md"
SETS = ("digits", "isolet", "fsdd", "satimage", "ag_news")


def kinds(**changes: Any) -> Callable[[Recipe], Recipe]:
    """The recipe with these values for dense rows and for texts."""
    return lambda recipe: replace(
        recipe, dense=replace(recipe.dense, **changes), text=replace(recipe.text, **changes)
    )


# The part that is left out: parameters of SelfView, or a change of its recipe.
PARTS: Mapping[str, dict[str, Any] | Callable[[Recipe], Recipe]] = {
    "nothing": {},
    "adversarial views": {"views": "none"},
    "swapped prediction and adversarial views": {"adversarial_share": 1e-6},
    "InfoNCE": {"contrast": 0.0},
    "neighbours": {"neighbours": 0, "contrast": 1.0},
    "rising attraction": kinds(attraction=1.0),
    "power of the kernel": kinds(power=1.0),
    "principal components as input": kinds(components=0),
    "whitening of the input": kinds(whitening=0.0),
    "search among principal components": kinds(search_components=0),
    "walks over neighbours": kinds(walk=0.0),
    "start that preserves localities": lambda recipe: replace(recipe, start="principal"),
    "any start by the rows": lambda recipe: replace(recipe, start="random"),
    "whitening of the embedding": {"axes": "learned"},
}


@contextmanager
def without(part: str) -> Iterator[SelfView]:
    """An unfitted default model without the part."""
    change, recipe = PARTS[part], RECIPES["selfview"]
    try:
        if callable(change):
            RECIPES["selfview"] = change(recipe)
        yield SelfView(verbose=0, **({} if callable(change) else change))
    finally:
        RECIPES["selfview"] = recipe


def run(args: argparse.Namespace) -> None:
    from selfview.paper.provenance import commit
    from timing import machine

    done = {(r["part"], r["set"], r["seed"]) for r in read_records(args.records)}
    for seed in range(args.seeds):
        for name in args.sets:
            X, y = load(name)
            for part in args.parts:
                if (part, name, seed) in done:
                    continue
                with without(part) as model:
                    Z = model.set_params(random_state=seed).fit_transform(X)
                found = {"part": part, "set": name, "seed": seed, **scores(Z, y)}
                record = found | machine() | {"commit": commit()}
                args.records.parent.mkdir(parents=True, exist_ok=True)
                with args.records.open("a") as file:
                    file.write(json.dumps(record, default=float) + "\n")
                print(part, name, seed, *(f"{m} {record[m]:.1f}" for m in MEASURES), flush=True)


def show(args: argparse.Namespace) -> None:
    PAGE.write_text(page(read_records(args.records)))
    print(f"wrote {PAGE}")


def page(records: list[dict[str, Any]]) -> str:
    """What was run, and the table of differences."""
    whole = {(r["set"], r["seed"]): r for r in records if r["part"] == "nothing"}
    sets = [name for name in SETS if any(name == s for s, _ in whole)]
    seeds = len({seed for _, seed in whole})
    first = records[0]
    lines = [
        "# What each part is worth",
        "",
        f"The default without one of its parts: points that are gained or lost, as means over "
        f"{len(sets)} sets ({', '.join(sets)}) and {seeds} seed{'s' * (seeds > 1)}. In brackets "
        "the least and the greatest difference of a set.",
        "",
        f"Machine: {first['processor']}, {first['threads']} thread{'s' * (first['threads'] > 1)}, "
        f"PyTorch {first['torch']}, commit {first['commit'][:12]}. Command: "
        "`python benchmarks/ablation.py run`; records: `results/ablation.jsonl`.",
        "",
        "| without | " + " | ".join(MEASURES.values()) + " |",
        "|---|" + "---|" * len(MEASURES),
        "| nothing (the default, percent) | "
        + " | ".join(f"{mean(r[m] for r in whole.values()):.1f}" for m in MEASURES)
        + " |",
    ]
    for part in [p for p in PARTS if p != "nothing"]:
        mine = [r for r in records if r["part"] == part and (r["set"], r["seed"]) in whole]
        if mine:
            found = " | ".join(change(mine, whole, m) for m in MEASURES)
            lines.append(f"| {part} | {found} |")
    return "\n".join(lines) + "\n"


def change(
    records: list[dict[str, Any]], whole: Mapping[tuple[str, int], dict[str, Any]], measure: str
) -> str:
    by_set: dict[str, list[float]] = {}
    for r in records:
        by_set.setdefault(r["set"], []).append(r[measure] - whole[r["set"], r["seed"]][measure])
    means = [mean(values) for values in by_set.values()]
    return f"{mean(means):+.1f} ({min(means):+.1f} to {max(means):+.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for name, function in (("run", run), ("show", show)):
        command = commands.add_parser(name)
        command.add_argument("--records", type=Path, default=RECORDS)
        command.set_defaults(function=function)
        if name == "run":
            command.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
            command.add_argument("--sets", nargs="+", default=list(SETS))
            command.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
