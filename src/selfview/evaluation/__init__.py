"""How good is an embedding? Arrays in, named numbers out; a model is never seen."""

from selfview.evaluation.clustering import matched_accuracy
from selfview.evaluation.measures import MEASURES, evaluate

__all__ = ["MEASURES", "evaluate", "matched_accuracy"]
