"""What was decided about each column of a table, to be read and printed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from selfview.tables.columns import Column, LeftOut, Table

MANY = 4  # neighbours with the same kind and words share a line


@dataclass(frozen=True)
class Decision:
    """What a column is taken for, the names of its features, and what is done, in words."""

    column: str
    kind: str
    features: tuple[str, ...]
    what: str


class Decisions(tuple[Decision, ...]):
    """The decisions about a table's columns; as text, a table."""

    __slots__ = ()

    def __str__(self) -> str:
        lines = [("column", "kind", "features", "what is done")]
        for (kind, what), alike in groupby(self, lambda decision: (decision.kind, decision.what)):
            group = list(alike)
            shared = [group] if len(group) >= MANY else [[decision] for decision in group]
            for part in shared:
                count = sum(len(decision.features) for decision in part)
                lines.append((_name(part), kind, f"{count:,}", what))
        wide = [max(len(line[i]) for line in lines) for i in range(3)]
        return "\n".join(
            f"{name:<{wide[0]}}  {kind:<{wide[1]}}  {count:>{wide[2]}}  {what}"
            for name, kind, count, what in lines
        )

    __repr__ = __str__


def _name(part: list[Decision]) -> str:
    first, last = part[0].column, part[-1].column
    return first if len(part) == 1 else f"{first} ... {last} ({len(part):,} columns)"


def decisions_of(table: Table) -> Decisions:
    """The decisions that made the table."""
    return Decisions(
        Decision(column.name, column.kind, column.features, _words(column, table.as_is))
        for column in table.columns
    )


def _words(column: Column, as_is: bool) -> str:
    if as_is and not isinstance(column, LeftOut):
        return "as it is"
    return column.describe() + "; gaps marked" * column.gaps
