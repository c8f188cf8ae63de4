"""The examples in docstrings give what they print."""

import doctest
import importlib
import pkgutil

import pytest

import selfview

MODULES = [
    module.name
    for module in pkgutil.walk_packages(selfview.__path__, "selfview.")
    if module.name != "selfview.__main__"
]


@pytest.mark.parametrize("room", sorted({name.split(".")[1] for name in MODULES}))
@pytest.mark.filterwarnings("ignore::selfview.errors.CollapseWarning")
def test_examples_give_what_they_print(room):
    for name in MODULES:
        if name.split(".")[1] == room:
            found = doctest.testmod(importlib.import_module(name))
            assert not found.failed, name
