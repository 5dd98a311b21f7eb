"""Programs with prompts to search for, and models that obey these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import textgrad_engine as tg
from textgrad_engine import nn, optim
from textgrad_engine.errors import ContentFiltered
from textgrad_engine.llm import Request
from textgrad_engine.optim import Optimizer, proposers
from textgrad_engine.optim.search.objective import FeedbackOn, Texts
from textgrad_engine.testing import FunctionModel, feedback_for
from textgrad_engine.train import Objective

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")
SEED, LOUD = ("Repeat the word.",), ("SHOUT the word.",)
EVERY = range(8)

OPTIMIZERS: dict[str, Callable[[Any], Optimizer]] = {
    "TGD": optim.TGD,
    "PatchSearch": optim.PatchSearch,
    "RandomSearch": lambda params: optim.RandomSearch(params, proposers.Rewrite(), proposals=3),
    "ParetoSearch": optim.ParetoSearch,
    "BeamSearch": lambda params: optim.BeamSearch(params, rounds=1, batch_size=8),
    "OPRO": lambda params: optim.OPRO(params, rounds=1),
}
"""Of each kind one, that takes little."""


def rows(*words: str) -> list[dict[str, Any]]:
    return [{"id": word, "word": word, "target": word.upper()} for word in words or WORDS]


class Shouting:
    """A program that is right when its text says SHOUT; ``before`` is called with every request."""

    def __init__(self, before: Callable[[Request], Any] = lambda request: None, **settings: Any) -> None:
        self.before = before
        self.model = FunctionModel(self.answer)
        self.program = nn.ChatCompletion("{word}", system=nn.Parameter(*SEED, role="system prompt"), model=self.model)
        self.objective = Objective(self.program, nn.ExactMatch(), rows(), rows(), **settings)

    async def answer(self, request: Request) -> Any:
        waits = self.before(request)
        if waits is not None:
            await waits
        if request.purpose == "backward":
            return feedback_for(request, "Say to shout.")
        word = request.messages[-1].text
        return word.upper() if "SHOUT" in request.messages[0].text else word

    def feedback(self, texts: Texts, positions: Iterable[int]) -> FeedbackOn:
        """Feedback, for which the same model is the critic."""
        with tg.use_models(backward=self.model):
            return self.objective.feedback(texts, list(positions))

    @property
    def asked(self) -> int:
        """How many requests came since the last look."""
        count = len(self.model.requests)
        self.model.requests.clear()
        return count


def improving(request: Request, line: str, text: str) -> Any:
    """What a critic says, and an optimizer proposes: a line more, or a text."""
    if request.purpose == "backward":
        return feedback_for(request, "Say to shout.")
    fields = request.config.response_format.json_schema["properties"]
    if "edits" in fields:
        return {"edits": [{"op": "add", "line": 1, "text": line, "reason": "asked", "feedback": [1]}]}
    return {name: text if name == "text" else "asked" for name in fields}


def losing(*lost: str, text: str = "") -> Callable[[Request], None]:
    """No answer to some words, with texts that contain ``text``."""

    def before(request: Request) -> None:
        if request.purpose == "forward" and request.messages[-1].text in lost and text in request.messages[0].text:
            raise ContentFiltered(f"no answer to {request.messages[-1].text}")

    return before


class Chain(nn.Module):
    """Two prompts, one after the other."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.draft = nn.ChatCompletion("{word}", system=nn.Parameter("Draft.", role="drafter"), model=model)
        self.check = nn.ChatCompletion("Check {word}", system=nn.Parameter("Check.", role="checker"), model=model)

    def forward(self, word: str) -> Any:
        return self.check(word=self.draft(word=word))


def chained(request: Request) -> Any:
    if request.purpose == "backward":
        cases = request.config.response_format.json_schema["properties"]
        return {case: {key: f"about {key}" for key in schema["properties"]} for case, schema in cases.items()}
    return request.messages[-1].text
