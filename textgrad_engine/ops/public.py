"""What there is in `textgrad_engine.ops`."""

from textgrad_engine.ops.chat_completion import chat_completion
from textgrad_engine.ops.entries import unbind
from textgrad_engine.ops.evaluators import deterministic_evaluator
from textgrad_engine.ops.exact_match import exact_match_evaluator
from textgrad_engine.ops.example_notes import notes
from textgrad_engine.ops.extract import extract
from textgrad_engine.ops.feedback import critic, feedback_batch_size
from textgrad_engine.ops.field import field
from textgrad_engine.ops.images import feedback_images
from textgrad_engine.ops.judges import judge, lm_judge_evaluator
from textgrad_engine.ops.reduce import areduce, reduce
from textgrad_engine.ops.rubrics import rubric
from textgrad_engine.ops.straight_through import straight_through
from textgrad_engine.ops.text import add, format, join, scale, split, sum  # noqa: A004  the field's names
from textgrad_engine.ops.text_loss import text_loss

__all__ = [
    "add",
    "areduce",
    "chat_completion",
    "critic",
    "deterministic_evaluator",
    "exact_match_evaluator",
    "extract",
    "feedback_batch_size",
    "feedback_images",
    "field",
    "format",
    "join",
    "judge",
    "lm_judge_evaluator",
    "notes",
    "reduce",
    "rubric",
    "scale",
    "split",
    "straight_through",
    "sum",
    "text_loss",
    "unbind",
]
