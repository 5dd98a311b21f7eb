from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import ops
from textgrad_engine.autograd.layers import LAYERS
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel


def answer(request: Request) -> Any:
    """Says the last message in capitals; where JSON is wanted, each text names its key and the question's digest."""
    wanted = request.config.response_format
    if wanted is None:
        return request.messages[-1].text.upper()
    digest = hashlib.sha256("\0".join(message.text for message in request.messages).encode()).hexdigest()[:6]

    def fill(schema: Any, key: str) -> Any:
        if schema["type"] == "object":
            return {name: fill(below, name) for name, below in schema["properties"].items()}
        return {"string": f"{key} {digest}", "boolean": False}.get(schema["type"], 0)

    return fill(wanted.json_schema, wanted.name)


@pytest.fixture(autouse=True)
def no_layer_is_left() -> Iterator[None]:
    """No test, and no transform in it, leaks a layer."""
    assert LAYERS.get() == ()
    yield
    assert LAYERS.get() == ()


@pytest.fixture
def model() -> Iterator[FunctionModel]:
    """A deterministic model that answers everything and counts."""
    made = FunctionModel(answer)
    with tg.use_models(forward=made):
        yield made


def _chat(prompt: Any, text: Any) -> tg.Variable:
    return ops.chat_completion(None, [{"role": "system", "content": prompt}, {"role": "user", "content": text}])


@pytest.fixture
def chat() -> Any:
    """A program with a prompt and a text."""
    return _chat


@pytest.fixture
def loss() -> Any:
    """Its exact-match loss: ``loss(prompt, text, target)``."""

    def scored(prompt: Any, text: Any, target: Any) -> tg.Variable:
        return ops.exact_match_evaluator(_chat(prompt, text), target)[0]

    return scored
