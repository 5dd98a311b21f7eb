"""The simulated model of a task: recognises what a request asks for, and answers in its part."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from textgrad_engine.llm import tokens
from textgrad_engine.llm.cachekey import sample_number
from textgrad_engine.llm.request import Purpose, Request
from textgrad_engine.llm.response import Completion, Usage
from textgrad_engine.llm.simulated.critic import reads_as_instructions
from textgrad_engine.llm.simulated.judge import judge, marks, text_loss
from textgrad_engine.llm.simulated.model import kind_of
from textgrad_engine.llm.simulated.reading import (
    Case,
    Task,
    blocks,
    expected_in,
    read_feedback_request,
    read_optimizer_request,
    with_cases_read,
)
from textgrad_engine.llm.simulated.schema import fit
from textgrad_engine.llm.simulated.tried import original_in, tried_in
from textgrad_engine.testing.simulated.critic import Critic
from textgrad_engine.testing.simulated.guesses import guessed, paraphrased
from textgrad_engine.testing.simulated.proposer import Proposer
from textgrad_engine.testing.simulated.reducer import most_items, reduce_items
from textgrad_engine.testing.simulated.task_model import TaskModel, note_in, parcel_in

_PURPOSES: dict[str, Purpose] = {
    "feedback": "backward",
    "reduce": "backward",
    "criticism": "judge",
    "judge": "judge",
    "rubric": "judge",
    "patch": "optimizer",
    "rewrite": "optimizer",
}


class Foreign(Protocol):
    """A request in other words than this library's, as other optimizers ask it."""

    @property
    def kind(self) -> Purpose:
        """What it is for."""
        ...

    def answer(self, critic: Critic, proposer: Proposer, sample: tuple[int, ...] = ()) -> str:
        """The answer in the form that was asked for."""
        ...


Reader: TypeAlias = Callable[[str, str], Foreign | None]
"""Reads a system text and what a user asks; None when it is no such request."""


@dataclass(frozen=True)
class ParcelsModel:
    """Task model, critic and proposer of a simulated task in one, told apart by what a request asks for.

    It has no state: an answer is a function of the request, and of which sample of it is wanted (`llm.repeat`). It is a
    simulation, and no figure made with it says anything about real models.

    Attributes:
        task: the part that gives codes to parcels.
        critic: the part that says what is wrong.
        proposer: the part that edits texts.
        readers: of requests in other words than this library's; the first one that knows a request answers it.
    """

    task: TaskModel
    critic: Critic
    proposer: Proposer
    readers: tuple[Reader, ...] = ()
    name = "simulated/parcels"
    free = True

    async def complete(self, request: Request) -> Completion:
        """Answer one request; never waits and never fails."""
        text = self._answer(request)
        usage = Usage(
            input_tokens=tokens.count_request(request), output_tokens=tokens.count(text), calls=1, dollars=0.0
        )
        return Completion(text=text, usage=usage, model=self.name)

    def purpose_of(self, request: Request) -> Purpose:
        """What a request is for, read from what it asks; over HTTP nothing else tells."""
        asked = _Asked.of(request)
        if (foreign := self._foreign(asked)) is not None:
            return foreign.kind
        return _PURPOSES.get(asked.kind, "forward")

    def _answer(self, request: Request) -> str:
        asked = _Asked.of(request)
        sample = sample_number(request.model_dump_json().encode())
        if (foreign := self._foreign(asked)) is not None:
            return foreign.answer(self.critic, self.proposer, sample)
        if asked.kind == "task" and (note := note_in(asked.user)) is not None:
            return self.task.read(asked.system, note)
        if asked.kind == "task":
            before, parcel = parcel_in(asked.user) or ("", asked.user)
            word = self.task.answer("\n".join(part for part in (asked.system, before) if part), parcel, sample)
            return word if asked.schema is None else json.dumps(fit(asked.schema, {}, word))
        answer = self._part(asked.kind, asked.user, asked.schema, sample)
        return json.dumps(answer if asked.schema is None else fit(asked.schema, answer), ensure_ascii=False)

    def _foreign(self, asked: _Asked) -> Foreign | None:
        if asked.schema is not None or asked.kind != "task":
            return None
        return next((found for read in self.readers if (found := read(asked.system, asked.user)) is not None), None)

    def _part(self, kind: str, user: str, schema: Mapping[str, Any] | None, sample: tuple[int, ...]) -> dict[str, Any]:
        if kind == "patch":
            return self.proposer.patch(self._asked(user, True, sample), _lacking(user), sample)
        if kind == "rewrite" and (original := original_in(user)) is not None:
            return paraphrased(original, self.proposer.seed, self.proposer.sloppiness, sample)
        if kind == "rewrite" and (tried := tried_in(user)) is not None:
            return guessed(tried, self.proposer.seed, self.proposer.sloppiness, sample)
        if kind == "rewrite":
            return self.proposer.rewrite(self._asked(user, False, sample), (), sample)
        if kind == "reduce":
            return reduce_items(self._asked(user, False, sample).items, most_items(user))
        if kind == "judge":
            return judge(user)
        if kind == "rubric":
            return marks(user)
        if kind == "criticism":
            return text_loss(user)
        return self._feedback(user, schema, sample)

    def _asked(self, user: str, numbered: bool, sample: tuple[int, ...]) -> Task:
        """What the proposer is asked; what it is shown of cases it looks at as the critic does."""
        return with_cases_read(read_optimizer_request(user, numbered), lambda case: self._on_instructions(case, sample))

    def _feedback(self, user: str, schema: Mapping[str, Any] | None, sample: tuple[int, ...]) -> dict[str, Any]:
        inputs, cases = read_feedback_request(user)
        answer: dict[str, Any] = {}
        for number, case in enumerate(cases, 1):
            part = (schema or {}).get("properties", {}).get(f"case_{number}", {})
            keys = tuple(part.get("properties", inputs))
            said = self._on_instructions(case, sample)
            _, parcel = parcel_in(case.last_user) or ("", case.last_user)
            on_line = self.critic.on_line(parcel, _expected(case), case.answer)
            answer[f"case_{number}"] = {
                key: (said if not on_line else "") if reads_as_instructions(key, inputs.get(key, ""), case) else on_line
                for key in keys
            }
        return answer

    def _on_instructions(self, case: Case, sample: tuple[int, ...]) -> str:
        if note_in(case.last_user) is not None:
            return self.critic.on_reading(case.answer, " ".join(case.feedback))
        before, parcel = parcel_in(case.last_user) or ("", case.last_user)
        prompt = "\n".join(text for text in (case.text_of("system", "developer"), before) if text)
        return self.critic.say(prompt, parcel, _expected(case), case.answer, sample)


def _expected(case: Case) -> str | None:
    return next((found for text in case.feedback if (found := expected_in(text))), None)


@dataclass(frozen=True)
class _Asked:
    """A request, taken apart: its kind, its messages and its schema."""

    kind: str
    system: str
    user: str
    schema: Mapping[str, Any] | None

    @classmethod
    def of(cls, request: Request) -> _Asked:
        form = request.config.response_format
        user = next((message.text for message in reversed(request.messages) if message.role == "user"), "")
        system = "\n".join(message.text for message in request.messages if message.role in ("system", "developer"))
        merging = '{"items": [{"text":' in blocks(user)[-1][0] if form is None else form.name == "reduce"
        kind = "reduce" if merging else kind_of(request)
        return cls(kind, system, user, None if form is None else form.json_schema)


def _lacking(user: str) -> tuple[str, ...]:
    """In a request to merge two texts, the lines of the other one that are marked as new."""
    other = next((content for _, label, content in blocks(user) if label == "other"), "")
    return tuple(line.removeprefix("+| ") for line in other.split("\n") if line.startswith("+| "))
