"""The request to the critic about some calls: how it is written, and which texts it asks for.

The words are in ``prompts/feedback.md``.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from textgrad_engine import templates
from textgrad_engine.ops.cases import Case, Shown
from textgrad_engine.ops.fitting import View
from textgrad_engine.ops.json_answers import Texts, object_schema
from textgrad_engine.ops.messages import ChatSettings, answer_form

Wanted: TypeAlias = tuple[tuple[str, str], ...]
"""The key and the role of each input of a case that wants feedback."""

_STRING = {"type": "string"}


def texts_wanted(cases: list[Case]) -> Texts:
    """The texts that the critic is asked for about some cases."""
    if len(cases) > 1:
        return _texts_for(tuple([case.questions.wanted for case in cases]))
    questions = cases[0].questions
    known: Texts | None = questions.made.get(Texts)
    if known is None:
        known = questions.made[Texts] = _texts_for((questions.wanted,))
    return known


@functools.lru_cache(maxsize=256)
def _texts_for(wanted: tuple[Wanted, ...]) -> Texts:
    """The texts that the critic is asked for."""
    schemas = {f"case_{n}": object_schema({key: _STRING for key, _ in parts}) for n, parts in enumerate(wanted, 1)}
    form = answer_form("feedback", object_schema(schemas))
    return Texts(
        ChatSettings(config=form, purpose="backward", role="answer of the critic"),
        tuple([(f"case_{n}", key) for n, parts in enumerate(wanted, 1) for key, _ in parts]),
        tuple([f"feedback on the {role or key}" for parts in wanted for key, role in parts]),
    )


def request_about(prompt: templates.Prompt, cases: list[Case], data: list[Any], views: Sequence[View]) -> str:
    """The request about these views of some cases; messages that all cases begin with are shown once."""
    texts: list[str] = []
    wanted: tuple[Wanted, ...]
    first = cases[0]  # calls of one place share a request, so these are the same for all cases
    tools, schema = first.offered if first.plan.offered is None else first.offers(data[0][0])
    if tools is not None:
        texts.append(tools)
    if schema is not None:
        texts.append(schema)
    given = tools is not None, schema is not None
    if len(cases) == 1:
        questions, view = cases[0].questions, views[0]
        for position in questions.beside:
            texts.append(str(data[0][0][position]))  # noqa: PERF401  a comprehension would cost a frame
        if view.heads is questions.heads and not view.left_out_feedback:  # nothing is left out
            texts += view.texts
            texts.append(view.answer)
            texts += view.feedback
            kind = prompt, len(view.feedback), given
            form = questions.made.get(kind)
            if form is None:
                shown = (view.heads, kind[1], 0, 0)
                form = questions.made[kind] = _form(prompt, given, questions.inputs, (), (shown,), (questions.wanted,))
            return str(form.fill(texts))
        inputs, common, wanted = questions.inputs, 0, (questions.wanted,)
    else:
        wanted = tuple([case.questions.wanted for case in cases])
        inputs, beside = _inputs(cases, data)
        texts += beside
        common = _common(views)
        texts += views[0].texts[:common]
    kinds = []
    for view in views:
        texts += view.texts[common:]
        texts.append(view.answer)
        texts += view.feedback
        kinds.append((view.heads[common:], len(view.feedback), view.left_out_messages, view.left_out_feedback))
    return _form(prompt, given, inputs, views[0].heads[:common], tuple(kinds), wanted).fill(texts)


def _inputs(cases: list[Case], data: list[Any]) -> tuple[tuple[tuple[str, str, Shown], ...], list[str]]:
    """The inputs of all cases, as `Questions.inputs`; and the texts of those that are beside the messages of all."""
    inputs: dict[str, tuple[str, Shown, str]] = {}
    for case, (values, _, _) in zip(cases, data):
        for part in case.questions.parts:
            text = str(values[part.position]) if part.shown == "beside" else ""
            role, shown, known = inputs.setdefault(part.key, (part.role, part.shown, text))
            # What differs from case to case is shown there; and a role that does says nothing about the others.
            where: Shown = shown if (shown, known) == (part.shown, text) else "message"
            inputs[part.key] = role if role == part.role else "", where, known
    shown_at = tuple([(key, role, shown) for key, (role, shown, _) in inputs.items()])
    return shown_at, [text for _, shown, text in inputs.values() if shown == "beside"]


def _common(views: Sequence[View]) -> int:
    """How many messages all views begin with."""
    each = [list(zip(view.heads, view.texts)) for view in views]
    common = 0
    while all(len(m) > common and m[common] == each[0][common] for m in each):
        common += 1
    return common


@functools.lru_cache(maxsize=256)
def _form(
    prompt: templates.Prompt,
    offered: tuple[bool, bool],
    inputs: tuple[tuple[str, str, Shown], ...],
    shared: tuple[tuple[str, str], ...],
    cases: tuple[tuple[tuple[tuple[str, str], ...], int, int, int], ...],
    wanted: tuple[Wanted, ...],
) -> templates.Form:
    """The request about cases of one kind, without the texts: those of tools and schema, of inputs, of shared
    messages, of the cases.

    Args:
        prompt: the prompt.
        offered: whether there are tools that the model could call, and a schema that its answer must fit.
        inputs: for each input its key, its role, and where its text is.
        shared: the heads of the messages that all cases begin with.
        cases: for each case the heads of its messages, how many pieces of feedback there are, and what is left out.
        wanted: for each case the keys and roles of the feedback that is wanted.
    """
    blanks = map(templates.Blank, itertools.count())

    def messages(heads: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
        return [{"role": role, "keys": keys, "text": next(blanks)} for role, keys in heads]

    return prompt.form(
        tools=next(blanks) if offered[0] else None,
        schema=next(blanks) if offered[1] else None,
        inputs=[
            {
                "key": key,
                "role": role or "an input",
                "text": next(blanks) if shown == "beside" else None,
                "in_tags": shown in ("tags", "tool"),
            }
            for key, role, shown in inputs
        ],
        shared=messages(shared),
        cases=[
            {
                "messages": messages(heads),
                "answer": next(blanks),
                "feedback": [next(blanks) for _ in range(pieces)],
                "left_out_messages": left_out_messages,
                "left_out_feedback": left_out_feedback,
            }
            for heads, pieces, left_out_messages, left_out_feedback in cases
        ],
        example=_example(wanted),
    )


def _example(wanted: tuple[Wanted, ...]) -> str:
    """What an answer looks like; of many cases the first one and the last one.

    In the first it says what each text is to be: of three dots a small model makes the input anew instead of feedback.
    """
    inside = [
        json.dumps(
            {key: "..." if n else f"what to add to, change in or remove from `{key}`" for key, _ in parts},
            ensure_ascii=False,
        )
        for n, parts in enumerate(wanted)
    ]
    cases = [f'"case_{n}": {each}' for n, each in enumerate(inside, 1)]
    return f"{{{', '.join(cases if len(cases) < 4 else [cases[0], '...', cases[-1]])}}}"
