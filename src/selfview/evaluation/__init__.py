"""Scores of an embedding: arrays in, named numbers out; models are never seen."""

from selfview.evaluation.clustering import matched_accuracy
from selfview.evaluation.measures import MEASURES, evaluate

__all__ = ["MEASURES", "evaluate", "matched_accuracy"]
