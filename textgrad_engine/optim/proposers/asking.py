"""How proposers ask a model: which one, by which prompt, and what is taken of its answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from textgrad_engine import templates
from textgrad_engine.errors import ContractError, NoModelError
from textgrad_engine.llm.context import refuse_overflow, room_for
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import GenerateConfig, Message, Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.response_format import ResponseFormat
from textgrad_engine.llm.roles import model_for
from textgrad_engine.llm.usage import call_key_scope
from textgrad_engine.ops.parts import without_repeat
from textgrad_engine.optim.cells import Evidence
from textgrad_engine.optim.feedback import FeedbackItem
from textgrad_engine.optim.patch import REWRITE_SCHEMA, origins_of_rewrite
from textgrad_engine.optim.proposers.base import Brief, Proposal
from textgrad_engine.optim.proposers.legible import legible
from textgrad_engine.optim.showing import left_over, unwrapped


class LateModel:
    """The optimizer's model, looked up when it is asked: proposers that ask nobody work where no model was named.

    Args:
        override: a name or a model to use instead of the optimizer of `use_models`.
    """

    asks_resolved = True

    def __init__(self, override: str | Model | None = None) -> None:
        self.override = override

    @property
    def name(self) -> str:
        """The name of the model that would be asked.

        Raises:
            NoModelError: none was named.
        """
        return model_for("optimizer", self.override).name

    async def complete(self, request: Request) -> Completion:
        """Ask it.

        Raises:
            NoModelError: none was named.
            ContextOverflow: the request is longer than its context.
        """
        model = model_for("optimizer", self.override)
        refuse_overflow(model, request, "a request to the optimizer")
        return await model.complete(request)

    def room(self, at_most: int, beside: Iterable[str]) -> int:
        """A budget in tokens, cut to what the model has room for beside other texts; whole where no model was named."""
        try:
            return room_for(model_for("optimizer", self.override), at_most, beside)
        except NoModelError:
            return at_most


def shared_slots(brief: Brief, problem: str) -> dict[str, Any]:
    """The slots that the prompts of all proposers have."""
    return {
        "role": brief.role or "prompt",
        "feedback": [asdict(_without_text(item, brief.text)) for item in brief.items],
        "left_out": brief.left_out,
        "constraints": [text for contract in brief.contracts if (text := contract.describe(brief.text))],
        "history": list(brief.history),
        "problem": problem,
        "refused": brief.refused,
    }


def slots_without_feedback(brief: Brief, problem: str) -> dict[str, Any]:
    """Those of them that tell of no feedback, and of no edits of the past."""
    shared = shared_slots(brief, problem)
    return {name: shared[name] for name in ("role", "constraints", "problem", "refused")}


def _without_text(item: FeedbackItem, text: str) -> FeedbackItem:
    """What evaluators said of a text, which is shown above it once, and with numbers before its lines."""
    return replace(item, text=without_repeat(item.text, text, "text")) if item.direct else item


async def ask_for_text(
    model: Model,
    prompt_name: str,
    slots: dict[str, Any],
    brief: Brief,
    evidence: Sequence[Evidence] = (),
    *,
    may_stay: bool = False,
) -> Proposal:
    """Put a prompt that asks for a whole new text to a model, and take its answer for a proposal.

    Args:
        model: who is asked.
        prompt_name: the prompt.
        slots: what it says.
        brief: what the proposal is for.
        evidence: the feedback that every new line is to name.
        may_stay: whether the prompt says that an empty text proposes nothing, as an empty list of edits does. Where it
            asks for another text in any case, an empty one is none that could be used.

    Raises:
        ModelError: there is no answer, or none in the form that is asked for.
        ContractError: the answer holds what texts are only shown with.
    """
    body = await ask(model, prompt_name, "rewrite", REWRITE_SCHEMA, slots)
    shown = [brief.text, *(text for text, _ in brief.others), *brief.tried, *brief.examples]
    (text,) = legible([str(body["text"])], brief)
    text = unwrapped(text, shown).strip("\n")
    if found := left_over(text, shown):
        raise ContractError(f"the text has `{found}`, which is only how texts are shown; leave it out")
    if may_stay and not text.strip():
        return Proposal(brief.text, brief.origins)
    if text == brief.text.strip("\n"):  # line ends around the text are no change
        text = brief.text
    origins = origins_of_rewrite(brief.text, brief.origins, text, body["reason"], evidence, brief.step)
    return Proposal(text, tuple(origins))


async def ask(model: Model, prompt_name: str, answer: str, schema: dict[str, Any], slots: dict[str, Any]) -> Any:
    """The JSON that a model answers to a prompt of `prompts/`.

    Args:
        model: who is asked.
        prompt_name: the name of the prompt.
        answer: the name of the answer's form, which the endpoint sees.
        schema: the answer's JSON schema.
        slots: the values of the prompt's slots.

    Raises:
        ModelError: there was no answer, or none that fits the schema.
    """
    prompt = templates.load(prompt_name)
    request = Request(
        messages=(
            Message(role="system", content=prompt.system),
            Message(role="user", content=prompt.render(**slots)),
        ),
        config=GenerateConfig(response_format=ResponseFormat(name=answer, json_schema=schema)),
        purpose="optimizer",
    )
    with call_key_scope("step"):
        completion = await model.complete(request)
    return json.loads(completion.text)
