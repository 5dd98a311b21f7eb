"""A user's function that scores: what is said where it takes the answer for something else than its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import Variable, nn

GIVEN = "a metric's function is given the answer as text"
ORDER = '{"urgency": "high", "items": ["lamp"]}'


@pytest.mark.parametrize(
    "function",
    [
        lambda prediction, target: prediction["urgency"] == target["urgency"],
        lambda prediction, target: prediction.urgency == target["urgency"],
        lambda gold, pred, trace=None: pred.urgency == gold["urgency"],
    ],
)
def test_a_function_that_reads_fields_of_an_answer_is_told_that_it_is_json(function: Callable[..., Any]) -> None:
    """As those of DSPy and GEPA do, whose predictions are objects."""
    with pytest.raises((TypeError, AttributeError)) as raised:
        _ = nn.Metric(function, "the urgency")(Variable(ORDER), {"urgency": "high"}).data
    (note,) = [note for note in raised.value.__notes__ if "given" in note]
    assert f"{GIVEN}, here JSON, which json.loads(...) reads" in note
    assert note.endswith('; nn.OnField(loss, "urgency"), in a config field = "urgency", scores one field')


def test_an_answer_without_fields_names_none() -> None:
    """So the hint is no error of its own."""
    with pytest.raises(TypeError) as raised:
        _ = nn.Metric(lambda prediction, target: prediction["urgency"] == target, "it")(Variable("{}"), "high").data
    assert (
        "a metric's function is given the answer as text, here JSON, which json.loads(...) reads"
        in raised.value.__notes__
    )


def test_a_function_that_reads_a_field_of_a_plain_answer_is_told_that_it_is_text() -> None:
    """There is no field to name."""
    with pytest.raises(AttributeError) as raised:
        _ = nn.Metric(lambda prediction, target: prediction.answer == target, "it")(Variable("high"), "high").data
    (note,) = [note for note in raised.value.__notes__ if "given" in note]
    assert note == GIVEN


def test_another_error_of_a_function_is_told_as_it_is() -> None:
    """Nothing is guessed where the answer's kind has no part in it."""
    with pytest.raises(TypeError) as raised:
        _ = nn.Metric(lambda prediction, target: len(target), "it")(Variable(ORDER), 7).data
    assert not [note for note in raised.value.__notes__ if "given" in note]
