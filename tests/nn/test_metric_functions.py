"""A metric's function is called with the prediction and the target as it wants them, or refused when it is named."""

from __future__ import annotations

import functools
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import nn

ROWS = [{"text": "ab", "target": "abc"}]


class Starts:
    def __call__(self, *, prediction: str, target: str) -> bool:
        return target.startswith(prediction)


def begins_with(*, prediction: str, target: str) -> float:
    return float(target.startswith(prediction))


async def later(answer: str, *, target: str) -> bool:
    return target.startswith(answer)


@pytest.mark.parametrize(
    "function",
    [
        lambda prediction, target: target.startswith(prediction),
        lambda answer, *, target: target.startswith(answer),
        lambda *, target, prediction: target.startswith(prediction),
        lambda target, prediction: target.startswith(prediction),
        lambda *, gold, pred: gold.startswith(pred),
        lambda answer, *, expected: expected.startswith(answer),
        lambda answer, *, target, label=None: target.startswith(answer) and label is None,
        lambda answer, target, *, example=None: target.startswith(answer) and example is None,
        lambda answer, *, target, inputs: target.startswith(answer) and inputs == {"text": "ab"},
        lambda *, prediction, inputs: prediction == inputs["text"],
        lambda gold, text: gold == "ab" and text == "abc",
        lambda gold, pred, trace=None: gold.startswith(pred),
        lambda y_true, y_pred, inputs: y_true.startswith(y_pred) and inputs == {"text": "ab"},
        lambda answer, target, strict=False: target.startswith(answer),
        functools.partial(lambda answer, target, strict: target.startswith(answer), strict=True),
        functools.partial(lambda prediction, language, target: target.startswith(prediction), language="en"),
        Starts(),
        later,
    ],
)
def test_it_is_given_prediction_and_target_as_it_wants_them(function: Callable[..., Any]) -> None:
    metric = nn.Metric(function, "how it starts")
    assert metric.fn is function
    assert tg.evaluate(lambda text: text, ROWS, metric).scores == (1.0,)


def test_what_a_partial_settles_stays_settled() -> None:
    """Whoever made it compares all answers with one text, and rows have other ones."""
    metric = nn.Metric(functools.partial(lambda prediction, target: prediction == target, target="yes"), "equality")
    assert metric(tg.Variable("yes"), "what the row holds").data == 1


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda: 1, r"is called with the prediction and the target, and takes \(\): too many"),
        (lambda answer, *, strict: 1, r"takes \(answer, \*, strict\): missing a required .*argument: 'strict'"),
        (lambda a, b, c: 1, r"takes \(a, b, c\): missing a required argument: 'c'; write \(prediction, target\), or"),
    ],
)
def test_one_that_cannot_be_called_so_is_refused_when_it_is_named(function: Callable[..., Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        nn.Metric(function, "a")
    with pytest.raises(TypeError, match=says):
        tg.evaluate(lambda text: text, ROWS, function)


def test_a_loss_of_ones_own_is_given_its_target_by_name() -> None:
    def loss(answer: tg.Variable, *, target: str) -> tg.Variable:
        return nn.Metric(lambda a, t: t.startswith(a), "a")(answer, target)

    assert tg.evaluate(lambda text: tg.Variable(text), ROWS, loss).scores == (1.0,)


def test_a_target_by_name_alone_is_needed_unless_it_has_a_default() -> None:
    rows = [{"text": "ab"}]
    with pytest.raises(tg.errors.DataError, match="has no field 'target'"):
        tg.evaluate(lambda text: text, rows, nn.Metric(lambda answer, *, target: 1, "a"))
    assert tg.evaluate(lambda text: text, rows, nn.Metric(lambda answer, *, target=None: 1, "a")).scores == (1.0,)


def with_inputs(answer: str, inputs: dict[str, str]) -> float:
    return float(answer == inputs["text"])


def test_it_can_be_given_another_function_and_pickled() -> None:
    metric = nn.Metric(operator.eq, "a")
    metric.fn = begins_with
    assert pickle.loads(pickle.dumps(metric))(tg.Variable("ab"), "abc").data == 1.0
    metric.fn = with_inputs
    assert metric.reads_inputs
    assert metric(tg.Variable("ab"), None, {"text": "ab"}).data == 1.0
