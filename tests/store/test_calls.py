"""Calls on record come back as they were, and are known for the same ones."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from textgrad_engine import func, nn, use_models
from textgrad_engine.errors import (
    AuthenticationFailed,
    BadRequest,
    ModelError,
    ServerFailed,
    TruncatedResponse,
    is_by_the_request,
)
from textgrad_engine.llm import CallRecord, Completion, GenerateConfig, Message, Request, Usage, observe
from textgrad_engine.llm.answers import entry_of
from textgrad_engine.llm.charged import mark
from textgrad_engine.llm.ids import digest
from textgrad_engine.store.calls import Place, answer_from_json, canonical_order, completion_to_json
from textgrad_engine.store.paid import identity_of
from textgrad_engine.store.records import dumps
from textgrad_engine.testing import FunctionModel
from textgrad_engine.train.events import CallEnded


def test_the_order_does_not_look_at_times() -> None:
    """Equal calls are equal, whenever they came."""
    entry = {"phase": 1, "purpose": "forward", "example": "x", "request": {"a": 1}, "text": "y"}
    assert canonical_order({**entry, "time": 1, "latency": 2}) == canonical_order({**entry, "time": 3, "latency": 4})
    assert canonical_order(entry) < canonical_order({**entry, "phase": 2})


REQUEST = Request(
    messages=(Message(role="user", content="a \udc80"),), config=GenerateConfig(extra={"b": None, "a": 1})
)
ANSWERS = {
    "an answer": Completion(text="x", usage=Usage(calls=1, dollars=None), latency=1 / 3, attempts=2),
    "of another model": Completion(text="x", model="other"),
    "from the cache": Completion(
        text="x", usage=Usage(), cached=True, saved=Usage(calls=1, input_tokens=3), saved_latency=0.1, attempts=0
    ),
    "tools": Completion(text="", finish_reason="tool_calls", tool_calls=({"id": "1"},), items=({"type": "reasoning"},)),
    "of an endpoint without structured output": Completion(text="{}", words="Write one JSON object."),
    "of estimated cost": Completion(text="x", raw={"usage_estimated": True}),
}


@pytest.mark.parametrize("which", ANSWERS)
def test_an_answer_can_be_played_back(which: str) -> None:
    """All that a program sees of it, and what it cost."""
    answer = ANSWERS[which]
    record = CallRecord("forward", "m", REQUEST, answer, None, 12.0, "e", attempts=answer.attempts)
    entry = json.loads(dumps(completion_to_json(CallEnded(3, record), Place(3, "test", 1))))
    found = answer_from_json(entry, nth=4, line=5, source=6)
    assert found.outcome == answer
    assert (found.model, found.example, found.phase, found.nth, found.line, found.source) == ("m", "e", 3, 4, 5, 6)
    assert found.digest == digest(entry_of(FunctionModel(str, name="m"), REQUEST)["request"])


def test_a_failure_can_be_played_back() -> None:
    """With its class, what it used, and whether it may have used what nobody knows."""
    paid, free, unknown = TruncatedResponse("too: long"), AuthenticationFailed("no", status=401), ServerFailed("broke")
    paid.add_note("three attempts")
    mark(paid, usage=Usage(calls=3), estimated=True)
    for error, sent in ((paid, None), (free, False), (unknown, None)):
        record = CallRecord("forward", "m", REQUEST, None, error, 12.0, "e")
        entry = json.loads(dumps(completion_to_json(CallEnded(3, record), Place())))
        found = answer_from_json(entry, nth=0, line=1, source=0).outcome
        assert isinstance(found, type(error))
        assert (str(found), found.usage, found.sent) == (str(error), error.usage, sent)
        assert found.usage_estimated is error.usage_estimated
        assert getattr(found, "__notes__", []) == getattr(error, "__notes__", [])


@pytest.mark.parametrize(("field", "value"), [("setting", "seed"), ("unserved", True)])
def test_what_is_refused_whatever_is_asked_can_be_played_back_as_that(field: str, value: Any) -> None:
    """A run goes another way where an answer is lost by what was asked; a finished one has to go the same again."""
    error = BadRequest("no", status=400)
    setattr(error, field, value)
    record = CallRecord("forward", "m", REQUEST, None, error, 12.0, "e")
    entry = json.loads(dumps(completion_to_json(CallEnded(3, record), Place())))
    found = answer_from_json(entry, nth=0, line=1, source=0).outcome
    assert isinstance(found, BadRequest)
    assert (getattr(found, field), is_by_the_request(found)) == (value, False)


def test_a_failure_that_is_none_of_ours_keeps_its_name() -> None:
    """It was cancelled, or the user's own model raised it."""
    record = CallRecord("forward", "m", REQUEST, None, asyncio.CancelledError(), 12.0, "e")
    entry = {**completion_to_json(CallEnded(3, record), Place()), "usage": Usage(calls=1).model_dump()}
    outcome = answer_from_json(entry, nth=0, line=1, source=0).outcome
    assert isinstance(outcome, ModelError)
    again = completion_to_json(CallEnded(9, CallRecord("forward", "m", REQUEST, None, outcome, 50.0, "e")), Place(9))
    assert identity_of(again) == identity_of(entry)


def test_equal_requests_are_told_apart_by_the_microsecond_of_asking() -> None:
    """Which of them got which answer is known again by it."""
    times = []
    for started in (12.000001, 12.000002):
        record = CallRecord("forward", "m", REQUEST, ANSWERS["an answer"], None, started, "e")
        times.append(completion_to_json(CallEnded(3, record), Place())["time"])
    assert times == ["1970-01-01T00:00:12.000001Z", "1970-01-01T00:00:12.000002Z"]


def test_a_call_keeps_its_item_of_a_pmap() -> None:
    """A resumed run gives each item its own answer by it; it says nothing about what was asked."""
    records: list[CallRecord] = []
    chat = nn.ChatCompletion("A name?")
    with use_models(forward=FunctionModel(lambda _: "Ann")), observe(records.append):
        func.pmap(lambda _: chat().data)([0, 1])
        assert chat().data == "Ann"
    entries = [json.loads(dumps(completion_to_json(CallEnded(1, record), Place(1)))) for record in records]
    assert sorted(answer_from_json(entry, nth=0, line=1, source=0).item for entry in entries) == [(), (0,), (1,)]
    assert len({identity_of(entry) for entry in entries}) == 1
