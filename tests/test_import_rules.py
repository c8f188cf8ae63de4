"""The rooms of the code: imports go one way, and heavy ones come late."""

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import selfview

SOURCE = Path(selfview.__file__).parent

# Left to right: a room may import only from rooms before it.
ORDER = (
    *("errors", "labels", "tables", "stragglers", "distributed", "rows"),
    *("networks", "saving"),
    *("views", "targets", "losses", "whitening", "health", "explain", "clusters", "training"),
    *("neighbours", "estimator", "method", "baselines"),
    *("evaluation", "data", "anndata", "paper", "report", "cli", "__main__"),
)
# `plot` and `report` of a fitted model call the report when they are called, not before.
SHOWN = {("estimator", "report")}
STRANGERS = {"views", "targets", "losses", "networks", "training"}
LEARNING = (*STRANGERS, "neighbours", "estimator", "method", "baselines")


def imports(path):
    """Rooms of selfview that a file imports, at its top or anywhere."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "selfview":
            yield from (alias.name for alias in node.names if alias.name in ORDER)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("selfview."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("selfview.")]
            yield from (name.split(".")[1] for name in names)


def room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


EDGES = {
    (room(path), to)
    for path in SOURCE.rglob("*.py")
    for to in imports(path)
    if room(path) != "__init__" and room(path) != to
}


def test_the_rules_see_the_imports():
    assert ("method", "estimator") in EDGES
    assert ("estimator", "views") in EDGES


def test_imports_go_left_to_right_only():
    wrong = {(a, b) for a, b in EDGES if ORDER.index(b) > ORDER.index(a)}
    assert wrong == SHOWN
    found = [path.name for path in (SOURCE / "estimator").glob("*.py") if "report" in imports(path)]
    assert found == ["showing.py"]


def test_the_methods_parts_do_not_know_each_other():
    assert not {(a, b) for a, b in EDGES if a in STRANGERS and b in STRANGERS}


def test_learning_code_never_imports_data_or_evaluation():
    assert not {(a, b) for a, b in EDGES if a in LEARNING and b in ("data", "evaluation")}


def test_data_imports_nothing_of_learning():
    known = ("errors", "labels", "tables", "saving")
    assert not {(a, b) for a, b in EDGES if a == "data" and b not in known}


def test_evaluation_never_sees_a_model():
    models = {"estimator", "method", "baselines", "networks", "training", "saving"}
    assert not {(a, b) for a, b in EDGES if a == "evaluation" and b in models}


def modules_imported(path):
    """Modules of selfview that a file imports, at its top or in a function, but not for types."""
    tree = ast.parse(path.read_text())
    for node in [n for n in ast.walk(tree) if isinstance(n, ast.If)]:
        if "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def module(path):
    return ".".join(("selfview", *path.relative_to(SOURCE).with_suffix("").parts))


@pytest.mark.parametrize(
    "folder", sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
)
def test_the_modules_of_a_room_form_no_cycle(folder):
    files = [path for path in (SOURCE / folder).glob("*.py") if path.stem != "__init__"]
    graph = {module(path): set(modules_imported(path)) for path in files}
    graph = {name: {to for to in found if to in graph} - {name} for name, found in graph.items()}
    assert len([*graphlib.TopologicalSorter(graph).static_order()]) == len(graph)  # or CycleError


# Calls of another class's private methods, and imports of private names, that are still there.
PRIVATE = {
    ("selfview.estimator.transform", "_set_fitted_state"),
    ("selfview.estimator.transform", "_network"),
    ("selfview.networks.convolution", "_is_mkldnn_bf16_supported"),  # PyTorch's
}


def test_private_names_are_used_by_their_own_module_only():
    found = set()
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        own = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        own |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and is_self(n.value)}
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                names = [] if is_self(node.func.value) else [node.func.attr]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("selfview"):
                names = [alias.name for alias in node.names]
            private = {n for n in names if re.match("_[^_]", n) and n not in own}
            found |= {(module(path), name) for name in private}
    assert found == PRIVATE


def is_self(node):
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def test_the_report_never_imports_torch():
    files = list((SOURCE / "report").rglob("*.py"))
    assert files
    assert not [f for f in files if re.search(r"^\s*(import|from) torch", f.read_text(), re.M)]


def test_import_selfview_and_help_load_no_torch():
    code = "import sys, selfview, selfview.cli; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_public_names_resolve():
    for name in selfview.__all__:
        assert getattr(selfview, name) is not None
