"""Forward mode for what a model answers: the words are in ``prompts/what_if.md`` and ``prompts/apply_edit.md``."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Variable
from textgrad_engine.errors import AutogradError
from textgrad_engine.llm.tokens import count
from textgrad_engine.ops.cases import Case, case_of, view_of
from textgrad_engine.ops.feedback import critic_room
from textgrad_engine.ops.fitting import View, fitted
from textgrad_engine.ops.images import FEEDBACK_IMAGES, Gallery, Show, gallery_of, not_shown
from textgrad_engine.ops.json_answers import Extract, object_schema
from textgrad_engine.ops.messages import Plan, answer_form
from textgrad_engine.ops.pass_on import Compute

_CHANGE = answer_form("what_if", object_schema({"change": {"type": "string"}}))
_TEXT = answer_form("apply_edit", object_schema({"text": {"type": "string"}}))


def what_if(
    plan: Plan,
    values: list[Any],
    edits: Sequence[Variable | None],
    answer: Variable,
    ask: Callable[..., Variable],
) -> Variable | None:
    """Ask what would change in a model's answer if its inputs were edited; nobody is asked when all edits are empty.

    Args:
        plan: the messages, with holes.
        values: what is in the holes.
        edits: for each value how it is edited, or None.
        answer: what the model answered.
        ask: `model_call.ask`, handed in because that file stands above this one.
    """

    def case_with(edited: list[bool]) -> Case:
        return case_of(plan, values, edited, answer, [], lambda number: id(edits[number]))

    given = [edits[part.position] for part in case_with([edit is not None for edit in edits]).questions.parts]
    if not given:  # only what decides whether the model is asked is edited, and that says nothing to it
        return None
    gallery = gallery_of(plan.images(values), FEEDBACK_IMAGES.get(), critic_room(), "a question about an edit")

    def render(data: list[Any]) -> str:
        """The request; it shows the same whether an edit is known to be empty beforehand or turns out to be."""
        shown, said, texts = data
        by_edit = {id(edit): text for edit, text in zip(given, texts)}
        case = case_with([bool(by_edit.get(id(edit))) for edit in edits])
        return _render(case, gallery, shown, said, [by_edit[id(edits[part.position])] for part in case.questions.parts])

    user = Compute.apply(render, [values, answer, given], "request about an edit")
    asked = values[plan.gate] if plan.gate is not None else "yes"
    gate = Compute.apply(lambda data: "".join(map(str, data[1])) if data[0] else "", [asked, given], "")
    reply = ask(
        "what_if",
        user,
        _CHANGE,
        purpose="backward",
        role="answer about an edit",
        gate=gate,
        silence=json.dumps({"change": ""}),
        gallery=gallery,
    )
    change: Variable = Extract.apply(reply, (("change",),), ("edit of the answer",))
    return change


def _render(case: Case, gallery: Gallery | None, values: list[Any], answer: str, edits: list[str]) -> str:
    if gallery is None:
        return _fitted(case, values, answer, edits, 0, not_shown)
    return gallery.text(lambda show: _fitted(case, values, answer, edits, gallery.tokens, show))


def _fitted(case: Case, values: list[Any], answer: str, edits: list[str], beside: int, show: Show) -> str:
    room, whole = critic_room(), view_of(case, values, answer, [], show=show)
    if room is None:
        return _rendered(case, values, edits, [whole])
    beside += count(templates.load("what_if").system)
    return fitted([whole], functools.partial(_rendered, case, values, edits), room, beside, "a question about an edit")


def _rendered(case: Case, values: list[Any], edits: list[str], views: Sequence[View]) -> str:
    (view,) = views
    return templates.load("what_if").render(
        inputs=[
            {
                "key": part.key,
                "role": part.role or "an input",
                "text": str(values[part.position]) if part.shown in ("beside", "tool") else None,
                "in_tags": part.shown == "tags",
                "edit": edit,
            }
            for part, edit in zip(case.questions.parts, edits)
        ],
        messages=[{"role": role, "keys": keys, "text": text} for (role, keys), text in zip(view.heads, view.texts)],
        answer=view.answer,
    )


def edited_text(value: Any, edit: Variable | None, ask: Callable[..., Variable]) -> Any:
    """A text with a described edit made in it by a model; the text as it is when there is no edit, or an empty one."""
    if edit is None:
        return value
    user = Compute.apply(lambda data: _one_edit(*data), [value, edit], "request to make an edit")
    reply = ask(
        "apply_edit",
        user,
        _TEXT,
        purpose="backward",
        role="edited text",
        gate=edit,
        silence=json.dumps({"text": ""}),
    )
    text = Extract.apply(reply, (("text",),), ("edited text",))
    role = getattr(value, "_role", None) or "edited text"
    chosen: Variable = Compute.apply(lambda data: data[2] if data[1] else data[0], [value, edit, text], role)
    return chosen


def _one_edit(text: Any, edit: Any) -> str:
    if isinstance(text, list) or isinstance(edit, list):
        raise AutogradError(
            "forward mode runs an evaluator again on one edited prediction, and got a batch. Put the evaluator inside "
            "func.vmap, which hands it one example at a time."
        )
    return templates.load("apply_edit").render(text=text, edit=edit)


def described_change(before: Variable, after: Variable) -> Variable:
    """How a value would change, described from what it is and what it would be; empty where it stays."""
    change: Variable = Compute.apply(_difference, [before, after], "edit")
    return change


def _difference(pair: list[Any]) -> str:
    now, then = pair
    return "" if now == then else templates.load("becomes").render(now=repr(now), then=repr(then))
