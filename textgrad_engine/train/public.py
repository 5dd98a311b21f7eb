"""What there is in `textgrad_engine.train`."""

from textgrad_engine.train import events
from textgrad_engine.train.comparison import Comparison, compare
from textgrad_engine.train.controls import Control, Controls
from textgrad_engine.train.crossval import across_validate, cross_validate
from textgrad_engine.train.doubtful import Doubtful
from textgrad_engine.train.evaluation import Evaluation
from textgrad_engine.train.evaluator import aevaluate, evaluate
from textgrad_engine.train.events import Callback, StopTraining
from textgrad_engine.train.front import FrontPoint
from textgrad_engine.train.guards import Guards
from textgrad_engine.train.objective import Objective
from textgrad_engine.train.pooled import CrossValidation
from textgrad_engine.train.result import TrainResult
from textgrad_engine.train.shrinking import ShrinkResult, ashrink, shrink
from textgrad_engine.train.standing import Standing
from textgrad_engine.train.trainer import Trainer

__all__ = [
    "Callback",
    "Comparison",
    "Control",
    "Controls",
    "CrossValidation",
    "Doubtful",
    "Evaluation",
    "FrontPoint",
    "Guards",
    "Objective",
    "ShrinkResult",
    "Standing",
    "StopTraining",
    "TrainResult",
    "Trainer",
    "across_validate",
    "aevaluate",
    "ashrink",
    "compare",
    "cross_validate",
    "evaluate",
    "events",
    "shrink",
]
