"""The simulated model of a task: recognises what a request asks for, and answers in its part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from textgrad_engine.llm import tokens
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion, Usage
from textgrad_engine.llm.simulated.critic import reads_as_instructions
from textgrad_engine.llm.simulated.judge import judge, text_loss
from textgrad_engine.llm.simulated.model import kind_of
from textgrad_engine.llm.simulated.reading import blocks, expected_in, read_feedback_request, read_optimizer_request
from textgrad_engine.llm.simulated.schema import fit
from textgrad_engine.testing.simulated.critic import Critic
from textgrad_engine.testing.simulated.proposer import Proposer
from textgrad_engine.testing.simulated.reducer import most_items, reduce_items
from textgrad_engine.testing.simulated.task_model import TaskModel, parcel_in

__all__ = ["ParcelsModel"]


@dataclass(frozen=True)
class ParcelsModel:
    """Task model, critic and proposer of a simulated task in one, told apart by what a request asks for.

    It has no state: an answer is a function of the request alone. It is a simulation, and no figure made with it says
    anything about real models.

    Attributes:
        task: the part that gives codes to parcels.
        critic: the part that says what is wrong.
        proposer: the part that edits texts.
    """

    task: TaskModel
    critic: Critic
    proposer: Proposer
    name = "simulated/parcels"
    free = True

    async def complete(self, request: Request) -> Completion:
        """Answer one request; never waits and never fails."""
        text = self._answer(request)
        usage = Usage(
            input_tokens=tokens.count_request(request), output_tokens=tokens.count(text), calls=1, dollars=0.0
        )
        return Completion(text=text, usage=usage, model=self.name)

    def _answer(self, request: Request) -> str:
        form = request.config.response_format
        schema = None if form is None else form.json_schema
        kind = "reduce" if form is not None and form.name == "reduce" else kind_of(request)
        user = next((message.text for message in reversed(request.messages) if message.role == "user"), "")
        if kind == "task":
            word = self._code(request, user)
            return word if schema is None else json.dumps(fit(schema, {}, word))
        answer = self._part(kind, user, schema)
        return json.dumps(answer if schema is None else fit(schema, answer), ensure_ascii=False)

    def _code(self, request: Request, user: str) -> str:
        system = "\n".join(message.text for message in request.messages if message.role in ("system", "developer"))
        before, parcel = parcel_in(user) or ("", user)
        return self.task.answer("\n".join(part for part in (system, before) if part), parcel)

    def _part(self, kind: str, user: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        if kind == "patch":
            return self.proposer.patch(read_optimizer_request(user, numbered=True), _lacking(user))
        if kind == "rewrite":
            return self.proposer.rewrite(read_optimizer_request(user, numbered=False))
        if kind == "reduce":
            return reduce_items(read_optimizer_request(user, numbered=False).items, most_items(user))
        if kind == "judge":
            return judge(user)
        if kind == "criticism":
            return text_loss(user)
        return self._feedback(user, schema)

    def _feedback(self, user: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        inputs, cases = read_feedback_request(user)
        answer: dict[str, Any] = {}
        for number, case in enumerate(cases, 1):
            part = (schema or {}).get("properties", {}).get(f"case_{number}", {})
            keys = tuple(part.get("properties", inputs))
            before, parcel = parcel_in(case.last_user) or ("", case.last_user)
            prompt = "\n".join(text for text in (case.text_of("system", "developer"), before) if text)
            expected = next((found for text in case.feedback if (found := expected_in(text))), None)
            said = self.critic.say(prompt, parcel, expected, case.answer)
            answer[f"case_{number}"] = {
                key: said if reads_as_instructions(key, inputs.get(key, ""), case) else "" for key in keys
            }
        return answer


def _lacking(user: str) -> tuple[str, ...]:
    """In a request to merge two texts, the lines of the other one that are marked as new."""
    other = next((content for _, label, content in blocks(user) if label == "other"), "")
    return tuple(line.removeprefix("+| ") for line in other.split("\n") if line.startswith("+| "))
