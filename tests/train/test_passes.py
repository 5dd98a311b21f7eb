"""What of a minibatch was not to be had."""

from __future__ import annotations

import pytest

import textgrad_engine as tg
from textgrad_engine import nn
from textgrad_engine.errors import (
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    DeadlineExceeded,
    RateLimited,
    ServerFailed,
)
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train.passes import go_backward, none_reached

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


def test_a_request_that_was_too_long_for_the_critic_names_what_has_it_fitted() -> None:
    """Nobody knew its context, so all was sent; another failure has no such repair."""

    def refuse(request: object) -> str:
        raise failures.pop()

    failures: list[Exception] = [ContentFiltered("no"), ContextOverflow("4,096 tokens at most")]
    found = []
    for _ in range(2):
        chat = nn.ChatCompletion("Hello.", system=nn.Parameter("Be kind."), model=FunctionModel(lambda request: "no"))
        with tg.use_models(backward=FunctionModel(refuse)):
            found += go_backward([nn.ExactMatch()(chat(), "yes")])
    long, filtered = found
    assert "ContextOverflow: 4,096 tokens at most; state its context (context under [models]" in long
    assert filtered.endswith("ContentFiltered: no")
