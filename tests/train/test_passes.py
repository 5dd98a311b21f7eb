"""What of a minibatch was not to be had."""

from __future__ import annotations

import pytest

import textgrad_engine as tg
from textgrad_engine import nn
from textgrad_engine.autograd import example
from textgrad_engine.errors import (
    ConnectionFailed,
    ContentFiltered,
    ContextOverflow,
    DeadlineExceeded,
    RateLimited,
    ServerFailed,
)
from textgrad_engine.llm import Request
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


def test_failures_that_differ_in_numbers_alone_are_told_once_with_their_examples() -> None:
    """Of twelve contracts that are too long a report needs no twelve times the same six lines, and names them."""

    def refuse(request: Request) -> str:
        raise ContextOverflow(f"{len(request.messages[-1].text)} tokens are more than 90; state it with context=...")

    chat = nn.ChatCompletion("{text}", system=nn.Parameter("Be kind."), model=FunctionModel(lambda request: "no"))
    losses = []
    for n in range(3):
        with example(f"c{n}"):
            losses.append(nn.ExactMatch()(chat(text="long " * 10**n), "yes"))
    with tg.use_models(backward=FunctionModel(refuse)):
        (told,) = go_backward(losses)
    assert told.startswith("no feedback from ChatCompletionBackward (c0 and 2 more): ContextOverflow: ")
    assert told.count("context=") == 1  # the endpoint's error names the repair itself
