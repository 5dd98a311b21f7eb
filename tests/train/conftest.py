from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from textgrad_engine import nn, use_models
from textgrad_engine.llm import Request
from textgrad_engine.optim import TGD
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Trainer, TrainResult
from textgrad_engine.train.events import Event

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "kiwi", "lynx")


def words(*some: str) -> list[dict[str, Any]]:
    return [{"id": word, "word": word, "target": word.upper()} for word in some]


class Listener:
    """Keeps every event; says so when two come at once."""

    def __init__(self, then: Callable[[Event], None] = lambda event: None) -> None:
        self.events: list[Event] = []
        self.then = then
        self._busy = threading.Lock()

    def on_event(self, event: Event) -> None:
        assert self._busy.acquire(blocking=False), "two events at once"
        try:
            self.events.append(event)
            self.then(event)
        finally:
            self._busy.release()

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class World:
    """A task in which a prompt that says SHOUT is right, one that says HALF is right on every second word."""

    listener = Listener

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
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            line = self.proposals.pop(0) if self.proposals else None
            edit = {"op": "add", "line": 1, "text": line, "reason": "asked for", "feedback": [1]}
            return {"edits": [] if line is None else [edit]}
        system, word = request.messages[0].text, request.messages[-1].text
        right = "SHOUT" in system or ("HALF" in system and WORDS.index(word) % 2 == 0)
        return word.upper() if right else word

    def fit(self, train: Any, val: Any, test: Any = None, **settings: Any) -> TrainResult:
        """Train the program, in minibatches of two unless told otherwise."""
        with use_models(forward=self.model):
            return Trainer(**{"batch_size": 2, **settings}).fit(
                self.program, nn.ExactMatch(), self.optimizer, train, val, test
            )

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


@pytest.fixture
def main_waits() -> Callable[[], Awaitable[None]]:
    """What a model awaits to answer only when the main thread is blocked on a value, as it is by a slow model."""
    main = threading.main_thread().ident
    assert main is not None

    def blocked() -> bool:
        frame = sys._current_frames()[main]
        return frame.f_code.co_name == "wait" and frame.f_code.co_filename == threading.__file__

    async def until_blocked() -> None:
        while not blocked():
            await asyncio.sleep(0)

    return until_blocked
