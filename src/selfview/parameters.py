"""Checks of parameters: each returns the value, or says what was expected and what came."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

from selfview.errors import InputError


def integer(name: str, value: Any, at_least: int) -> int:
    """`value` if it is an integer of at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise InputError(f"{name} must be an integer of at least {at_least}, got {value!r}")
    return int(value)


def positive(name: str, value: Any) -> float:
    """`value` if it is a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} must be a positive number, got {value!r}")
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} must be positive and finite, got {value!r}")
    return float(value)


def not_negative(name: str, value: Any) -> float:
    """`value` if it is a finite number that is not below zero."""
    return 0.0 if _is_zero(value) else positive(name, value)


def _is_zero(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value == 0


def one_of(name: str, value: Any, options: Sequence[str]) -> str:
    """`value` if it is one of `options`."""
    if not isinstance(value, str) or value not in options:
        known = ", ".join(map(repr, options))
        raise InputError(f"{name} must be one of {known}, got {value!r}")
    return value


def share(name: str, value: Any) -> float:
    """`value` if it is a number between 0 and 1, and neither."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        raise InputError(f"{name} must be between 0 and 1, got {value!r}")
    return float(value)
