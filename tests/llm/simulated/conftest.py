from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import fences, templates
from textgrad_engine.llm.request import GenerateConfig, Message, Request
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.llm.simulated import TicketsModel

HEAD = """You sort support mail. Choose the queue:
- billing: payments and invoices
- shipping: deliveries
- returns: sending goods back
- account: profiles
- technical: devices
- trust: fraud
Answer with the name of the queue and nothing else."""

TEXT = {"type": "string"}
SHAPES: dict[str, Any] = {
    "patch": {
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "op": {"type": "string", "enum": ["add", "replace", "remove"]},
                    "line": {"type": "integer"},
                    "text": TEXT,
                    "reason": TEXT,
                    "feedback": {"type": "array", "items": {"type": "integer"}},
                },
            },
        }
    },
    "rewrite": {"text": TEXT, "reason": TEXT},
    "judge": {"score": {"type": "number"}, "explanation": TEXT},
    "criticism": {"nothing_wrong": {"type": "boolean"}, "criticism": TEXT},
}


def shape_of_feedback(keys: list[str], cases: int) -> dict[str, Any]:
    one = {"type": "object", "properties": dict.fromkeys(keys, TEXT), "required": keys, "additionalProperties": False}
    return {f"case_{number}": one for number in range(1, cases + 1)}


def build(prompt: str, name: str, properties: dict[str, Any] | None, **slots: Any) -> Request:
    """A request as the library sends it: the prompt's system part, its user part, and the response format."""
    loaded = templates.load(prompt)
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties or ()),
        "additionalProperties": False,
    }
    form = None if properties is None else ResponseFormat(name=name, json_schema=schema)
    return Request(
        messages=(Message(role="system", content=loaded.system), Message(role="user", content=loaded.render(**slots))),
        config=GenerateConfig(response_format=form),
    )


@pytest.fixture
def ask() -> Callable[..., str]:
    """The text that a model answers to a request."""

    def answer(request: Request, model: TicketsModel | None = None) -> str:
        return asyncio.run((model or TicketsModel()).complete(request)).text

    return answer


@pytest.fixture
def ask_json(ask: Callable[..., str]) -> Callable[..., Any]:
    """The JSON that a model answers to a request."""
    return lambda request, model=None: json.loads(ask(request, model))


@pytest.fixture
def sort(ask: Callable[..., str]) -> Callable[..., str]:
    """The queue that a model without slips chooses for a ticket."""

    def answer(ticket: str, rules: str = "", seed: int = 0, noise: float = 0.0, system: str = HEAD) -> str:
        messages = (Message(role="system", content=f"{system}\n{rules}".strip()), Message(role="user", content=ticket))
        return ask(Request(messages=messages), TicketsModel(seed, noise))

    return answer


@pytest.fixture
def head() -> str:
    return HEAD


@pytest.fixture
def feedback_request() -> Callable[..., Request]:
    """A critic request over (ticket, answer, expected) cases; expected None leaves the reference out."""

    def request(cases: list[tuple[str, str, str | None]], system: str = HEAD, structured: bool = True) -> Request:
        inputs = [
            {"key": "system", "role": "system prompt of the ticket sorter", "text": None, "in_tags": False},
            {"key": "ticket", "role": "ticket of a customer", "text": None, "in_tags": True},
        ]
        shown = []
        for ticket, answer, expected in cases:
            if expected is None:
                said = "This is not right."
            else:
                said = templates.load("exact_match").render(prediction=answer, target=expected, got="", unseen="")
            messages = [
                {"role": "system", "keys": "`system`", "text": system},
                {"role": "user", "keys": "`ticket`", "text": fences.mark(ticket, "ticket")},
            ]
            shown.append({"messages": messages, "answer": answer, "feedback": [said]})
        example = json.dumps({"case_1": {"system": "...", "ticket": "..."}})
        properties = shape_of_feedback(["system", "ticket"], len(cases)) if structured else None
        slots = {"tools": None, "schema": None, "inputs": inputs, "shared": [], "cases": shown, "example": example}
        return build("feedback", "feedback", properties, **slots)

    return request


@pytest.fixture
def optimizer_request() -> Callable[..., Request]:
    """An optimizer request for a text, with feedback as (text, times)."""

    def request(
        text: str, feedback: list[tuple[str, int]], kind: str = "patch", structured: bool = True, **more: Any
    ) -> Request:
        items = [{"text": said, "times": times, "answer": ""} for said, times in feedback]
        slots: dict[str, Any] = {
            "role": "system prompt",
            "feedback": items,
            "left_out": 0,
            "constraints": [],
            "history": [],
            "problem": "",
            "refused": "",
        }
        if kind in ("patch", "crossover"):
            slots["lines"] = "\n".join(f"{number}| {line}" for number, line in enumerate(text.split("\n"), 1))
            slots["sentences"] = False
            slots["max_edits"] = 4
        else:
            slots["text"] = text
        if kind != "crossover":
            slots["examples"] = []
        name = "rewrite" if kind == "rewrite" else "patch"
        return build(f"optimizer_{kind}", name, SHAPES[name] if structured else None, **(slots | more))

    return request


@pytest.fixture
def scoring_request() -> Callable[..., Request]:
    """A judge or text-loss request."""

    def request(kind: str, prediction: str, target: str | None) -> Request:
        slots: dict[str, Any] = {"instructions": "Is it right?", "prediction": prediction, "target": target}
        slots["inputs"] = []
        if kind == "judge":
            return build("judge", "judge", SHAPES["judge"], low=1, high=5, **slots)
        return build("text_loss", "criticism", SHAPES["criticism"], **slots)

    return request
