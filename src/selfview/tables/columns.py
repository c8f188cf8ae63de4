"""What is known of each column of a table, and of the table: plain values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

from selfview.tables.parsing import DATE_FORMS

ID = "an id: every row has another "
CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # in days
# How far rows of different values are apart, where numbers an interquartile range apart are 1: with
# 1 here too, the jumps of discrete columns would make all clusters.
APART = math.sqrt(0.5)
ONE_HOT = APART / math.sqrt(2)  # in place of 1


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column; `gaps` tells whether it had gaps, and has a feature that marks them."""

    name: str
    gaps: bool = False

    kind: ClassVar[str]

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that it becomes."""
        return (self.name, *self._indicator)

    @property
    def _indicator(self) -> tuple[str, ...]:
        return (f"{self.name} missing",) * self.gaps

    @property
    def units(self) -> tuple[float, ...]:
        """What 1 is in each feature, in the unit of the column: 20 euros, 3 days; far out more."""
        return (1 / APART,) * len(self.features)

    def describe(self) -> str:
        """What is done with it, in words."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Measured(Column):
    """A column of which a feature is smooth_clip((x - centre) / scale)."""

    centre: float
    scale: float


@dataclass(frozen=True, kw_only=True)
class Number(Measured):
    """Numbers, by their median and interquartile range; `lenient`: other values are gaps."""

    lenient: bool = False

    kind = "number"

    @property
    def units(self) -> tuple[float, ...]:
        return (self.scale, *super().units[1:])

    def describe(self) -> str:
        return f"less {self.centre:.4g}, divided by {self.scale:.4g}"


@dataclass(frozen=True, kw_only=True)
class Boolean(Column):
    """Truth values."""

    kind = "boolean"

    def describe(self) -> str:
        return f"{APART:.2g} if true, else 0"


@dataclass(frozen=True, kw_only=True)
class Category(Column):
    """Few values, one-hot; the `rare` ones share one feature, which new ones join."""

    values: tuple[str, ...]
    rare: tuple[str, ...] = ()

    kind = "category"

    @property
    def features(self) -> tuple[str, ...]:
        rare = (f"{self.name}=(rare)",) * bool(self.rare)
        return (*(f"{self.name}={value}" for value in self.values), *rare, *self._indicator)

    @property
    def units(self) -> tuple[float, ...]:
        return (1 / ONE_HOT,) * len(self.features)

    def describe(self) -> str:
        rare = f", {len(self.rare):,} rare ones together" * bool(self.rare)
        return f"one-hot: {len(self.values):,} value{'s' * (len(self.values) != 1)}{rare}"


@dataclass(frozen=True, kw_only=True)
class Frequency(Measured):
    """Many values, each by the logarithm of its share of the rows."""

    values: tuple[str, ...]
    log_shares: tuple[float, ...]

    kind = "frequency"

    @property
    def features(self) -> tuple[str, ...]:
        return (f"{self.name} frequency", *self._indicator)

    @property
    def units(self) -> tuple[float, ...]:
        return (1.0, *super().units[1:])

    def describe(self) -> str:
        return f"{len(self.values):,} values, too many for one-hot: how frequent each is"


@dataclass(frozen=True, kw_only=True)
class Date(Measured):
    """Moments: days since 1970, and sine and cosine of the cycles that they go through."""

    form: str
    cycles: tuple[str, ...]

    kind = "date"

    @property
    def features(self) -> tuple[str, ...]:
        waves = (f"{self.name} {c} {wave}" for c in self.cycles for wave in ("sin", "cos"))
        return (self.name, *waves, *self._indicator)

    @property
    def radius(self) -> float:
        """Of each cycle: opposite ends of all cycles together are so far apart."""
        return APART / 2 / math.sqrt(max(1, len(self.cycles)))

    @property
    def units(self) -> tuple[float, ...]:
        return (self.scale, *(1 / self.radius,) * 2 * len(self.cycles), *(1 / APART,) * self.gaps)

    def describe(self) -> str:
        return ", ".join(
            [f"{DATE_FORMS[self.form]}: days", *(f"cycle of a {c}" for c in self.cycles)]
        )


@dataclass(frozen=True, kw_only=True)
class LeftOut(Column):
    """A column that nothing is learned from, and why."""

    why: str

    kind = "left out"

    @property
    def is_id(self) -> bool:
        return self.why.startswith(ID)

    @property
    def features(self) -> tuple[str, ...]:
        return ()

    def describe(self) -> str:
        return self.why


KINDS: dict[str, type[Column]] = {
    kind.kind: kind for kind in (Number, Boolean, Category, Frequency, Date, LeftOut)
}


@dataclass(frozen=True)
class Table:
    """The columns of a table. With `as_is`, all that are used are numbers, taken as they are."""

    columns: tuple[Column, ...]
    as_is: bool = False

    @property
    def used(self) -> tuple[Column, ...]:
        return tuple(c for c in self.columns if not isinstance(c, LeftOut))

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def units(self) -> tuple[float, ...]:
        """What 1 is in each feature, in the unit of its column."""
        if self.as_is:
            return (1.0,) * len(self.features)
        return tuple(unit for column in self.columns for unit in column.units)

    def to_json(self) -> dict[str, Any]:
        """What `from_json` makes the table of again."""
        columns = [{"kind": column.kind, **asdict(column)} for column in self.columns]
        lists = [{k: list(v) if isinstance(v, tuple) else v for k, v in c.items()} for c in columns]
        return {"as_is": self.as_is, "columns": lists}

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """The table of a saved file; ValueError if it can't be one."""
        if not isinstance(content, Mapping) or type(content.get("as_is")) is not bool:
            raise ValueError("the description of its table is damaged")
        columns = tuple(_column(saved) for saved in content.get("columns") or ())
        names = [column.name for column in columns]
        table = cls(columns, content["as_is"])
        if len(set(names)) != len(names) or not table.features:
            raise ValueError("its table has no columns, or one twice")
        plain = all(isinstance(c, Number | Boolean) and not c.gaps for c in table.used)
        if table.as_is and not plain:
            raise ValueError("its table isn't one of numbers alone")
        return table


def _column(saved: Any) -> Column:
    """A column of a saved file, every field of which is checked."""
    kind = KINDS[saved["kind"]]
    values: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in saved.items() if k != "kind"
    }
    for field in fields(kind):
        if field.name not in values or not _FITS[str(field.type)](values[field.name]):
            raise ValueError(f"{field.name} of a column is damaged")
    column = kind(**values)
    if isinstance(column, Measured) and not column.scale > 0:
        raise ValueError(f"scale must be positive, got {column.scale}")
    if isinstance(column, Date) and not (
        column.form in DATE_FORMS and {*column.cycles} <= {*CYCLES}
    ):
        raise ValueError("the form of its dates is not known")
    if isinstance(column, Frequency) and len(column.values) != len(column.log_shares):
        raise ValueError("its values and their frequencies are not as many")
    return column


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


_FITS: dict[str, Callable[[Any], bool]] = {
    "str": lambda v: type(v) is str,
    "bool": lambda v: type(v) is bool,
    "int": lambda v: type(v) is int and 0 <= v < 2**31,
    "float": _is_finite,
    "tuple[str, ...]": lambda v: (
        type(v) is tuple and all(type(x) is str for x in v) and len(set(v)) == len(v)
    ),
    "tuple[float, ...]": lambda v: type(v) is tuple and all(map(_is_finite, v)),
}
