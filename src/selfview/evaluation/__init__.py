"""How good is an embedding? Arrays in, named numbers out; a model is never seen."""

from selfview.evaluation.clustering import matched_accuracy
from selfview.evaluation.measures import MEASURES, evaluate
from selfview.evaluation.selection import best_of

__all__ = ["MEASURES", "best_of", "evaluate", "matched_accuracy"]
