"""Mutations of bytes and of JSON, drawn from a seeded generator: the same cases every time.

FUZZ_RANDOM=1 draws new ones, FUZZ_TIMES=n draws n times as many (`make fuzz`).
"""

import copy
import os
import random
import signal
from contextlib import contextmanager

TIMES = int(os.environ.get("FUZZ_TIMES", "1"))
SECONDS = 20  # that one case may take

ABSURD = (
    *(None, True, False, 0, -1, 1, 2, 3, 2**31, 2**63, -(2**63), 10**12, 10**30, 10**400),
    *(0.5, -0.0, 1e308, float("nan"), float("inf"), "", "a", "1", "auto", "own", "\x00", "../" * 9),
    *([], {}, [[]], [1] * 50, {"a": {}}, ["a", 1, None], "9" * 5000, "\ud800", [[1, 2], [3]]),
)


def generator(name):
    """A generator of the case's own, new at each run if that is asked for."""
    return random.Random(None if os.environ.get("FUZZ_RANDOM") else name)


def bytes_of(rng, content, header):
    """The content with a few bytes set, cut out, put in, swapped, or its end cut off."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 5)):
        place = rng.randrange(min(header, len(data)) or 1)
        match rng.choice(("set", "set", "flip", "big", "cut", "insert", "copy", "end")):
            case "set":
                data[place : place + 1] = bytes((rng.randrange(256),))
            case "flip" if data:
                data[place % len(data)] ^= 1 << rng.randrange(8)
            case "big":
                big = (b"\xff" * 4, b"\x7f" + b"\xff" * 3, b"9999", b"-1", b"1e99")
                data[place : place + 4] = rng.choice(big)
            case "cut":
                del data[place : place + rng.randint(1, 40)]
            case "insert":
                data[place:place] = rng.randbytes(rng.randint(1, 8))
            case "copy":
                data[place:place] = data[place : place + rng.randint(1, 200)]
            case "end":
                del data[rng.randrange(len(data) + 1) :]
    return bytes(data)


def json_of(rng, value):
    """A copy of a JSON value with up to three of its parts replaced, removed, added or moved."""
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, 3)):
        places = list(_places(value))
        if not places:
            return rng.choice(ABSURD)
        inside, key = rng.choice(places)
        match rng.choice(("put", "put", "put", "drop", "swap", "twice")):
            case "put":
                inside[key] = copy.deepcopy(rng.choice(ABSURD))
            case "drop":
                del inside[key]
            case "swap":
                inside[key], other = copy.deepcopy(rng.choice(places)[0]), inside[key]
                if isinstance(inside, list):
                    inside.append(other)
            case "twice" if isinstance(inside, list):
                inside.insert(key, copy.deepcopy(inside[key]))
            case "twice":
                inside[f"{key}2"] = copy.deepcopy(inside[key])
    return value


def _places(value):
    keys = list(value) if isinstance(value, dict) else range(len(value)) if _is_list(value) else ()
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list) and (_is_list(value) is False or key < 20):
            yield from _places(value[key])


def _is_list(value):
    return isinstance(value, list)


@contextmanager
def in_time():
    """A case that hangs is stopped, and fails."""

    def late(*_):
        raise TimeoutError(f"a case took more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
