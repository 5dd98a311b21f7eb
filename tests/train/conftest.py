from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import nn
from textgrad_engine.llm import Request
from textgrad_engine.optim import TGD
from textgrad_engine.testing import FunctionModel

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "kiwi", "lynx")


def words(*some: str) -> list[dict[str, Any]]:
    return [{"id": word, "word": word, "target": word.upper()} for word in some]


class World:
    """A task in which a prompt that says SHOUT is right, one that says HALF is right on every second word."""

    def __init__(self, *proposals: str | None) -> None:
        self.proposals = list(proposals)
        self.model = FunctionModel(self.answer)
        self.program = nn.ChatCompletion("{word}", system=nn.Parameter("Repeat the word.", role="system prompt"))
        self.optimizer = TGD(self.program.parameters(), momentum=3)
        self.before: Callable[[Request], Any] = lambda request: None

    async def answer(self, request: Request) -> Any:
        waits = self.before(request)
        if waits is not None:
            await waits
        if request.purpose == "backward":
            cases = request.config.response_format.json_schema["properties"]
            return {case: dict.fromkeys(schema["properties"], "Say to shout.") for case, schema in cases.items()}
        if request.purpose == "optimizer":
            line = self.proposals.pop(0) if self.proposals else None
            edit = {"op": "add", "line": 1, "text": line, "reason": "asked for", "feedback": [1]}
            return {"edits": [] if line is None else [edit]}
        system, word = request.messages[0].text, request.messages[-1].text
        right = "SHOUT" in system or ("HALF" in system and WORDS.index(word) % 2 == 0)
        return word.upper() if right else word

    def asked(self, purpose: str, word: str | None = None) -> int:
        """How many requests of a purpose came, about a word."""
        return sum(r.purpose == purpose and word in (None, r.messages[-1].text) for r in self.model.requests)


@pytest.fixture
def world() -> type[World]:
    """The task; made with the lines that its optimizer proposes, None for no edit."""
    return World


@pytest.fixture
def rows() -> Callable[..., list[dict[str, Any]]]:
    """Examples of some words."""
    return words
