"""What of a minibatch was not to be had."""

from __future__ import annotations

import pytest

from textgrad_engine.errors import ConnectionFailed, ContentFiltered, DeadlineExceeded, RateLimited, ServerFailed
from textgrad_engine.train.passes import none_reached

DOWN = [ConnectionFailed("no route"), DeadlineExceeded("late"), RateLimited("full"), ServerFailed("503")]


@pytest.mark.parametrize("failure", DOWN)
def test_an_endpoint_that_is_down_for_a_whole_minibatch_is_told(failure: Exception) -> None:
    """In whichever way it is."""
    (told,) = none_reached(2, [failure, DOWN[0]])
    assert told == f"none of the 2 training examples was answered: {type(failure).__name__}: {failure}"


@pytest.mark.parametrize("failures", [[], DOWN, [*DOWN, ContentFiltered("no")]])
def test_an_endpoint_that_answers_or_refuses_any_of_it_is_not_down(failures: list[Exception]) -> None:
    """Five examples: none failed, one was answered, one was refused."""
    assert none_reached(5, failures) == []
