from __future__ import annotations

import asyncio
import json
from typing import Any

import pydantic
import pytest

from textgrad_engine.llm import GenerateConfig, Message, Request, ResponseFormat
from textgrad_engine.llm.parsing import check_json
from textgrad_engine.ops.echo import EchoModel


def request(text: str, schema: Any = None) -> Request:
    return Request(messages=(Message(role="user", content=text),), config=GenerateConfig(response_format=schema))


def answers(model: EchoModel, *requests: Request) -> list[str]:
    async def ask() -> list[str]:
        return [done.text for done in await asyncio.gather(*map(model.complete, requests))]

    return asyncio.run(ask())


def test_forward_it_repeats_nothing() -> None:
    """Else a mark could get round the rule, by way of the answer; equal requests have equal answers."""
    first, second, third = answers(EchoModel(), request("valuemark1 feedbackmark1"), request("b"), request("b"))
    assert "mark" not in first
    assert first != second == third


def test_backward_it_repeats_the_marks_of_the_request() -> None:
    """Those of feedback in their order, those of values sorted; each once, in any case, and nothing else."""
    model = EchoModel()
    model.repeats = True
    text = "Feedbackmark2 feedbackmark1 VALUEMARK1 valuemark0 feedbackmark2 other"
    assert answers(model, request(text)) == ["criticmark feedbackmark2 feedbackmark1 valuemark0 valuemark1"]
    assert model.requests == [f"user:\n{text}"]


def test_it_fits_every_schema_that_rules_ask_for() -> None:
    """The words stand wherever a text may."""

    class Inner(pydantic.BaseModel):
        reason: str
        sure: bool
        count: int

    class Outer(pydantic.BaseModel):
        items: list[Inner]
        kind: Any = None
        maybe: str | None
        score: float

    model = EchoModel(score=3)
    model.repeats = True
    wanted = ResponseFormat.of(Outer)
    (text,) = answers(model, request("valuemark7", wanted))
    check_json(text, wanted, "the answer")
    body = json.loads(text)
    assert body["items"] == [{"reason": "criticmark valuemark7", "sure": False, "count": 3}]
    assert body["score"] == 3
    enum = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"const": 4}, "c": {"type": "null"}}}
    (text,) = answers(model, request("z", ResponseFormat(name="n", json_schema=enum)))
    assert json.loads(text) == {"a": "x", "b": 4, "c": None}


def test_of_several_cases_each_field_repeats_its_own() -> None:
    """Else feedback that went to the wrong case of a shared question would look right."""
    model = EchoModel()
    model.repeats = True
    text = "valuemark9\n## Case 1\nvaluemark1 feedbackmark1\n## Case 2\nvaluemark2 feedbackmark2"
    schema = {"type": "object", "properties": {f"case_{number}": {"type": "string"} for number in (1, 2, 3)}}
    (body,) = answers(model, request(text, ResponseFormat(name="n", json_schema=schema)))
    assert json.loads(body) == {
        "case_1": "criticmark feedbackmark1 valuemark1 valuemark9",
        "case_2": "criticmark feedbackmark2 valuemark2 valuemark9",
        "case_3": "criticmark feedbackmark1 feedbackmark2 valuemark1 valuemark2 valuemark9",
    }


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_seed_decides_who_is_answered_first(seed: int) -> None:
    """Without a seed in the order of the requests, with one in an order of its own, the same each time."""

    async def order() -> list[int]:
        model, finished = EchoModel(seed), []

        async def ask(number: int) -> None:
            await model.complete(request(str(number)))
            finished.append(number)

        await asyncio.gather(*map(ask, range(8)))
        return finished

    first, second = asyncio.run(order()), asyncio.run(order())
    assert first == second
    assert (first == list(range(8))) == (seed == 0)
