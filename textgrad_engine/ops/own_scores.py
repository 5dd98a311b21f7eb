"""What a user's function that scores says of an answer, and what is said where it fails."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from textgrad_engine import dispatch
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.errors import ScoreError, TextgradError
from textgrad_engine.ops.scores import decimal_of, plain_number

_TAKEN_FOR_AN_OBJECT = ("'str' object has no attribute", "string indices must be integers")


async def outcome_of(
    eval_fn: Callable[..., Any], purpose: str, arguments: tuple[Any, ...], scale: tuple[float, float] | None
) -> tuple[Any, Any]:
    """What a function says of one answer: the score and the remark on it.

    Args:
        eval_fn: the function.
        purpose: what it checks, in words.
        arguments: the answer, and the target if there is one.
        scale: the lowest and the highest score, if it has a scale.

    Raises:
        ScoreError: it gave something else, or a score outside of the scale.
    """
    try:
        return _score_in(await dispatch.called(eval_fn, *arguments), purpose, scale)
    except Exception as error:
        if isinstance(error, ScoreError) or not isinstance(error, TextgradError):
            error.add_note(_asked(purpose, arguments))
            if hint := _of_text(error, arguments[0]):
                error.add_note(hint)
        raise


def _score_in(outcome: Any, purpose: str, scale: tuple[float, float] | None) -> tuple[float, str | None]:
    """The score and the remark in what the user's function gave.

    Raises:
        ScoreError: it is something else, or the score is outside of the scale.
    """
    said, remark = outcome if isinstance(outcome, tuple) and len(outcome) == 2 else (outcome, "")
    score = plain_number(said)
    apart = _in_fields(said)
    if score is None or apart or not math.isfinite(score) or not isinstance(remark, str | None):
        several = ". Several scores become one by their weights, in it or as losses: 0.7 * nn.Metric(...)(answer) + ..."
        raise ScoreError(
            f"the metric {purpose!r} must return a number, or (number, text); got {outcome!r:.60}"
            + (apart or _as_data(said) or (several if isinstance(outcome, tuple | list | Mapping) else ""))
        )
    score = decimal_of(score)
    if scale is not None and not scale[0] <= score <= scale[1]:
        raise ScoreError(
            f"the metric {purpose!r} gave {score:g} on a scale from {scale[0]:g} to {scale[1]:g}; give it the scale= "
            "of the scores that it returns"
        )
    return score, remark


def _in_fields(said: Any) -> str:
    """How to return what has score and words as fields; of such an object that stands for a number these would be lost.

    As `dspy.Prediction` does.
    """
    if isinstance(said, Mapping) and {"score", "feedback"} <= said.keys():
        return '. Of such an object return (it["score"], it["feedback"])'
    if hasattr(said, "score") and hasattr(said, "feedback"):
        return ". Of such an object return (it.score, it.feedback)"
    return ""


def _as_data(said: Any) -> str:
    """How to return a Variable, such as the score of a judge that is asked inside of a metric."""
    if not isinstance(said, Variable):
        return ""
    return ". Return its .data; or write the loss as an nn.Module whose forward gives the Variable"


def _asked(purpose: str, arguments: tuple[Any, ...]) -> str:
    """What a metric that failed was asked about, for a note on its error."""
    name = EXAMPLE.get()
    about = " and ".join([f"the {what} {value!r:.200}" for what, value in zip(("prediction", "target"), arguments)])
    return f"in the metric {purpose!r}{f', on example {name!r}' if name else ''}: {about}"


def _of_text(error: Exception, answer: Any) -> str:
    """How to read fields of an answer, where a function took its text for an object; "" where it did not."""
    if not (isinstance(answer, str) and str(error).startswith(_TAKEN_FOR_AN_OBJECT)):
        return ""
    said = "a metric's function is given the answer as text"
    try:
        fields = json.loads(answer)
    except ValueError:
        return said
    said += ", here JSON, which json.loads(...) reads"
    if not isinstance(fields, dict) or not fields:
        return said
    name = json.dumps(next(iter(fields)))
    return f"{said}; nn.OnField(loss, {name}), in a config field = {name}, scores one field"
