"""Checks of parameters: each returns the value, or says what was expected and what came."""

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from torch import nn

from selfview.errors import InputError
from selfview.neighbours.precomputed import is_precomputed
from selfview.networks.encoders import ENCODERS

Checks = Mapping[str, Callable[[str, Any], object]]  # of a class' parameters, by their names

LARGEST = 2**31 - 1  # of an integer: saved models hold no larger sizes


def check_all(model: Any, checks: Checks) -> None:
    """Raise InputError for the first parameter of `model` that is not what it may be."""
    for name, check in checks.items():
        check(name, getattr(model, name))


def integer(name: str, value: Any, at_least: int) -> int:
    """`value` if it is an integer of at least `at_least`, and of a size that can be meant."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < at_least:
        raise InputError(f"{name} must be an integer of at least {at_least}, got {value!r}")
    if int(value) > LARGEST:
        raise InputError(f"{name} must be at most {LARGEST}, got {value!r}")
    return int(value)


def integer_or(name: str, value: Any, word: str, at_least: int) -> int | None:
    """None if `value` is the given word, else `value` if it is an integer of at least so much."""
    if isinstance(value, str) and value == word:
        return None
    if isinstance(value, str):
        raise InputError(
            f"{name} must be {word!r} or an integer of at least {at_least}, got {value!r}"
        )
    return integer(name, value, at_least)


def positive(name: str, value: Any) -> float:
    """`value` if it is a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"{name} must be a positive number, got {value!r}")
    if not (math.isfinite(value) and float(value) > 0):
        raise InputError(f"{name} must be positive and finite, got {value!r}")
    return float(value)


def positive_or(
    name: str, value: Any, word: str, *, or_zero: bool = False, at_most: float = math.inf
) -> float | None:
    """None if `value` is the given word, else `value` if it is a finite number above zero."""
    if isinstance(value, str) and value == word:
        return None
    if or_zero and not isinstance(value, bool) and value == 0:
        return 0.0
    if isinstance(value, str):
        raise InputError(f"{name} must be {word!r} or a positive number, got {value!r}")
    if positive(name, value) > at_most:
        raise InputError(f"{name} must be at most {at_most:g}, got {value!r}")
    return float(value)


def positive_or_none(name: str, value: Any) -> float | None:
    """`value` if it is None or a finite number above zero."""
    return None if value is None else positive(name, value)


def integer_or_none(name: str, value: Any, at_least: int) -> int | None:
    """`value` if it is None or an integer of at least `at_least`."""
    return None if value is None else integer(name, value, at_least)


def boolean(name: str, value: Any) -> bool:
    """`value` if it is True or False."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, got {value!r}")
    return value


def folder_or_none(name: str, value: Any) -> Any:
    """`value` if it is None or a path."""
    if not isinstance(value, str | Path | None):
        raise InputError(f"{name} must be a folder or None, got {value!r}")
    return value


def callable_or_none(name: str, value: Any) -> Any:
    """`value` if it is None or can be called."""
    if value is not None and not callable(value):
        raise InputError(f"{name} must be callable or None, got {value!r}")
    return value


def one_of(name: str, value: Any, options: Sequence[str]) -> str:
    """`value` if it is one of `options`."""
    if not isinstance(value, str) or value not in options:
        known = ", ".join(map(repr, options))
        raise InputError(f"{name} must be one of {known}, got {value!r}")
    return value


def share(name: str, value: Any) -> float:
    """`value` if it is a number between 0 and 1, and neither."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise InputError(f"{name} must be between 0 and 1, got {value!r}")
    return float(value)


def encoder(name: str, value: Any) -> Any:
    """`value` if it names an encoder or is a module."""
    return value if isinstance(value, nn.Module) else one_of(name, value, ENCODERS)


def neighbours(name: str, value: Any) -> Any:
    """`value` if it is "auto", a number, an array of row numbers or a sparse graph."""
    return value if is_precomputed(value) else integer_or(name, value, word="auto", at_least=0)


def metric(name: str, value: Any) -> str:
    """`value` if it is "auto" or a distance that scikit-learn's search knows."""
    if isinstance(value, str) and value == "auto":
        return value
    from sklearn.neighbors import VALID_METRICS

    if isinstance(value, str) and value == "precomputed":
        raise InputError(f"{name} can't be 'precomputed': pass the graph as neighbours=")
    return one_of(name, value, ["auto", *sorted({*VALID_METRICS["brute"]} - {"precomputed"})])


def level(name: str, value: Any) -> int:
    """`value` if it is a boolean or an integer of at least 0."""
    return int(value) if isinstance(value, bool) else integer(name, value, at_least=0)


def seed(name: str, value: Any) -> int:
    """A number drawn from `value`: an integer, a RandomState, or None for chance."""
    try:
        return int(check_random_state(value).randint(np.iinfo(np.int32).max))
    except ValueError as error:
        raise InputError(
            f"{name} must be an integer from 0 to 2**32 - 1, a RandomState or None, got {value!r}"
        ) from error
