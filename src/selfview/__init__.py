"""selfview: small, discriminative embeddings from unlabelled data, without augmentations.

>>> from selfview import SelfView
>>> model = SelfView(n_components=10, random_state=0)

Names are imported on first use, so that `import selfview` and the command line's help stay quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from selfview.errors import CollapseWarning, InputError, SelfViewError, SelfViewWarning

if TYPE_CHECKING:
    from selfview.data.dataset import Dataset
    from selfview.data.named import load_dataset
    from selfview.evaluation import evaluate
    from selfview.method import SelfView
    from selfview.saving.export import export
    from selfview.tables.preparation import TablePreparation

__version__ = "0.1.0"

_HOMES = {
    "Dataset": "selfview.data",
    "SelfView": "selfview.method",
    "TablePreparation": "selfview.tables.preparation",
    "evaluate": "selfview.evaluation",
    "export": "selfview.saving.export",
    "load_dataset": "selfview.data",
}

__all__ = [
    "CollapseWarning",
    "Dataset",
    "InputError",
    "SelfView",
    "SelfViewError",
    "SelfViewWarning",
    "TablePreparation",
    "__version__",
    "evaluate",
    "export",
    "load_dataset",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'selfview' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
