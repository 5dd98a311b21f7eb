"""The model itself: recognises what kind of request it is given and answers in its part.

This is a simulation. It lets people try and test the machinery (graph, feedback, optimizer, trainer, reports) offline,
at no cost and with the same result every time. What it scores is no evidence about real models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from textgrad_engine.llm import tokens
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion, Usage
from textgrad_engine.llm.simulated.critic import criticize, reads_as_instructions
from textgrad_engine.llm.simulated.judge import judge, marks, text_loss
from textgrad_engine.llm.simulated.optimizer import merged, patch, rewrite
from textgrad_engine.llm.simulated.reading import (
    Task,
    blocks,
    items_read,
    read_feedback_request,
    read_optimizer_request,
    read_reduce_request,
    with_cases_read,
)
from textgrad_engine.llm.simulated.schema import fit
from textgrad_engine.llm.simulated.task import sort_ticket
from textgrad_engine.llm.simulated.tried import better_than_tried, original_in, tried_in

Kind = Literal["task", "feedback", "patch", "rewrite", "judge", "rubric", "criticism", "reduce"]

_SHAPES: tuple[tuple[Kind, frozenset[str], re.Pattern[str]], ...] = (
    ("patch", frozenset({"edits"}), re.compile(r'\{"edits":')),
    ("rewrite", frozenset({"text", "reason"}), re.compile(r'\{"text":.*"reason":', re.DOTALL)),
    ("judge", frozenset({"score", "explanation"}), re.compile(r'\{"explanation":.*"score":', re.DOTALL)),
    ("rubric", frozenset({"1"}), re.compile(r'\{"1": \{"explanation":')),
    ("criticism", frozenset({"criticism"}), re.compile(r'\{(?:"nothing_wrong":.*)?"criticism":')),
    ("reduce", frozenset({"items"}), re.compile(r'\{"items":')),
    ("feedback", frozenset({"case_1"}), re.compile(r'\{"case_1":')),
)


class TicketsModel:
    """A simulated model that sorts support tickets, criticizes instructions and rewrites them.

    It is a simulation, made to try and test the machinery; no result of it says anything about a real model. As task
    model it knows the language of support mail (a lexicon of concepts in several languages, written together with the
    example's tickets) and a newcomer's guess for each concept, and it applies the house rules that it finds stated in
    its instructions. As critic and as optimizer it uses only what the request shows. It never reads data, labels or
    files, and it slips, is vague or wrong at fixed rates. Every choice is a hash of the seed and the request, so an
    answer never depends on what was asked before or beside it.

    Args:
        seed: chooses among the possible behaviours; equal seeds give equal answers.
        noise: how often the task model slips, from 0 to 1, when its instructions are short and free of contradictions.

    Raises:
        ValueError: `noise` is not between 0 and 1.

    Example:
        >>> import asyncio
        >>> from textgrad_engine.llm.request import Message, Request
        >>> rules = "Queues: billing, account or technical. Gift cards go to account. Answer with the name only."
        >>> mail = Message(role="user", content="My gift card is not accepted.")
        >>> request = Request(messages=(Message(role="system", content=rules), mail))
        >>> asyncio.run(TicketsModel(noise=0.0).complete(request)).text
        'account'
    """

    name = "simulated/tickets"
    free = True

    def __init__(self, seed: int = 0, noise: float = 0.04) -> None:
        if not 0 <= noise <= 1:
            raise ValueError(f"noise is a rate between 0 and 1, got {noise}")
        self.seed = seed
        self.noise = noise

    async def complete(self, request: Request) -> Completion:
        """Answer one request; never waits and never fails."""
        text = self._answer(request)
        usage = Usage(
            input_tokens=tokens.count_request(request), output_tokens=tokens.count(text), calls=1, dollars=0.0
        )
        return Completion(text=text, usage=usage, model=self.name)

    def __repr__(self) -> str:
        return f"TicketsModel(seed={self.seed}, noise={self.noise})"

    def _answer(self, request: Request) -> str:
        kind = kind_of(request)
        user = _last_user(request)
        schema = _schema(request)
        if kind == "task":
            system = "\n".join(message.text for message in request.messages if message.role in ("system", "developer"))
            word = sort_ticket(system, user, self.seed, self.noise)
            return word if schema is None else json.dumps(fit(schema, {}, word), ensure_ascii=False)
        answer = self._part(kind, user, schema)
        return json.dumps(answer if schema is None else fit(schema, answer), ensure_ascii=False)

    def _part(self, kind: Kind, user: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        if kind == "patch":
            return patch(self._asked(user, numbered=True), self.seed)
        if kind == "rewrite" and (original := original_in(user)) is not None:
            return {"text": original, "reason": "It is clear as it is."}
        if kind == "rewrite" and (tried := tried_in(user)) is not None:
            return better_than_tried(tried, self.seed)
        if kind == "rewrite":
            return rewrite(self._asked(user, numbered=False), self.seed)
        if kind == "judge":
            return judge(user)
        if kind == "rubric":
            return marks(user)
        if kind == "criticism":
            return text_loss(user)
        if kind == "reduce":
            items, limit = read_reduce_request(user)
            return merged(items_read(items, lambda case: criticize(case, self.seed)), limit)
        inputs, cases = read_feedback_request(user)
        answer: dict[str, Any] = {}
        for number, case in enumerate(cases, 1):
            part = (schema or {}).get("properties", {}).get(f"case_{number}", {})
            keys = tuple(part.get("properties", inputs))
            asked = {key: reads_as_instructions(key, inputs.get(key, ""), case) for key in keys}
            said = criticize(case, self.seed) if any(asked.values()) else ""
            answer[f"case_{number}"] = {key: said if asked[key] else "" for key in keys}
        return answer

    def _asked(self, user: str, *, numbered: bool) -> Task:
        """What an optimizer is asked; what it is shown of cases it looks at as the critic does."""
        return with_cases_read(read_optimizer_request(user, numbered), lambda case: criticize(case, self.seed))


def kind_of(request: Request) -> Kind:
    """Which part a request asks for, from its response format or, without one, from the words of its last message.

    `Request.purpose` is not looked at: over HTTP it is not sent.
    """
    form = request.config.response_format
    if form is not None:
        keys = frozenset(form.json_schema.get("properties", {}))
        return next((kind for kind, shape, _ in _SHAPES if form.name == kind and shape <= keys), "task")
    tail = blocks(_last_user(request))
    if len(tail) < 2:
        return "task"
    return next((kind for kind, _, marker in _SHAPES if marker.search(tail[-1][0])), "task")


def _last_user(request: Request) -> str:
    return next((message.text for message in reversed(request.messages) if message.role == "user"), "")


def _schema(request: Request) -> Mapping[str, Any] | None:
    form = request.config.response_format
    return None if form is None else form.json_schema
