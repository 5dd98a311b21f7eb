from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from textgrad_engine import nn, use_models
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.llm import Request
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.testing.simulated import SimulatedTask, simulated_task
from textgrad_engine.train import Objective

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")
ROWS = [{"id": word, "word": word, "target": word.upper()} for word in WORDS]


class World:
    """A task of words to repeat in capitals: a text that says SHOUT does all, one that says HALF every second word.

    Args:
        proposals: what the optimizer writes, a whole text at a time; the last one again and again.
    """

    def __init__(self, *proposals: Any) -> None:
        self.proposals = list(proposals)
        self.model = FunctionModel(self.answer)
        self.system = nn.Parameter("Repeat.", role="system prompt")
        self.program = nn.ChatCompletion("{word}", system=self.system)
        self.rows = ROWS

    def answer(self, request: Request) -> Any:
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        if request.purpose == "optimizer":
            proposed = self.proposals.pop(0) if len(self.proposals) > 1 else self.proposals[0]
            if isinstance(proposed, Exception):
                raise proposed
            return proposed if isinstance(proposed, dict) else {"text": proposed, "reason": "asked for"}
        system, word = request.messages[0].text, request.messages[-1].text
        right = "SHOUT" in system or ("HALF" in system and WORDS.index(word) % 2 == 0)
        return word.upper() if right else word

    def steps(self, search: Any, most: int = 50, **settings: Any) -> list[Any]:
        """The decisions of a search until it is finished, or `most` of them."""
        objective = Objective(self.program, nn.ExactMatch(), self.rows, self.rows, **settings)
        found = []
        with use_models(forward=self.model):
            while len(found) < most and (decided := search.step(objective)) is not None:
                found.append(decided)
        search.close()
        return found

    def withhold(self, where: Callable[[str, str], bool]) -> None:
        """Have no answer of the program for the texts and the words of which `where` says so."""
        real = self.model._fn

        def answer(request: Request) -> Any:
            if request.purpose == "forward" and where(request.messages[0].text, request.messages[-1].text):
                raise ContentFiltered("withheld")
            return real(request)

        self.model._fn = answer

    def asked(self, purpose: str) -> list[Request]:
        """The requests of a purpose."""
        return [request for request in self.model.requests if request.purpose == purpose]


@pytest.fixture
def world() -> type[World]:
    """The task of words; made with what its optimizer proposes."""
    return World


class Two(nn.Module):
    """A program of two prompts: what the first makes of a word is what the second works on."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.ChatCompletion("{word}", system=nn.Parameter("one", role="first prompt"))
        self.second = nn.ChatCompletion("{draft}", system=nn.Parameter("two", role="second prompt"))

    def forward(self, word: Any) -> Any:
        return self.second(draft=self.first(word=word))


@pytest.fixture
def two() -> type[Two]:
    """The program of two prompts; made anew for each search."""
    return Two


class TwoPrompts(World):
    """The same words through two prompts, and no text does any better: one example speaks to the first, seven to the
    second.
    """

    def __init__(self) -> None:
        super().__init__(*(f"Repeat loudly {number}." for number in range(200)))
        self.program = Two()  # type: ignore[assignment]

    def answer(self, request: Request) -> Any:
        if request.purpose != "backward":
            return super().answer(request)
        cases = request.config.response_format.json_schema["properties"]
        return {
            case: {
                key: "Shout." if len(schema["properties"]) == 1 or (key == "system") == (case != "case_1") else ""
                for key in schema["properties"]
            }
            for case, schema in cases.items()
        }


@pytest.fixture
def two_prompts() -> TwoPrompts:
    """A task of two prompts, of which the second gets most of the feedback."""
    return TwoPrompts()


@pytest.fixture
def parcels() -> Callable[..., SimulatedTask]:
    """A small simulated task."""

    def make(**settings: Any) -> SimulatedTask:
        return simulated_task(**{"rules": 4, "train": 24, "val": 24, "test": 24, "noise": 0.0, "seed": 3, **settings})

    return make
