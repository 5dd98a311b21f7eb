"""Feedback without a critic: whoever rewrites a text is shown the calls in which it stood, as they were.

GEPA (arXiv 2507.19457) and Trace's OptoPrime (arXiv 2406.16218) do it like this. The words are in ``prompts/case.md``.
"""

from __future__ import annotations

import functools
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Source, Variable
from textgrad_engine.ops.cases import Case, Part, view_of
from textgrad_engine.ops.pass_on import Compute


def as_it_was(case: Case, data: list[Any] | None) -> dict[int, Variable]:
    """For each input of a call that wants feedback the call itself, its answer, and what was said of that.

    Where nothing was said of the answer it is the empty text. Images are named and not shown, as an optimizer's request
    has none; tools and the form of the answer are left out.

    Args:
        case: the call.
        data: its values, its answer and the feedback on it, in plain; None where these are Variables still.

    Returns:
        The feedback, by the position of the input among the values of the call.
    """
    scores = [item.source.score for item in case.feedback if item.source is not None]
    score = next((each for each in scores if each is not None), None)
    found = {}
    for part in case.questions.parts:
        role = f"feedback on the {part.role or part.key}"
        if data is None:
            make = functools.partial(_in_words, case, part)
            said = Compute.apply(make, [case.values, case.answer, case.feedback], role)
        else:
            said = Variable(_in_words(case, part, data), role=role)
        said.source = Source(score=score, case=True)
        found[part.position] = said
    return found


def _in_words(case: Case, part: Part, data: list[Any]) -> str:
    view = view_of(case, *data)
    if not view.feedback:
        return ""
    mine = f"`{part.key}`"
    messages = []
    for (role, keys), text in zip(view.heads, view.texts):
        holds = mine in keys.split(", ")
        messages.append(
            {
                "role": role,
                "text": text,
                "here": holds and part.shown == "message",
                "tag": part.key if holds and part.shown == "tags" else "",
                "made": holds and part.shown == "beside",
            }
        )
    return templates.load("case").render(messages=messages, answer=view.answer, feedback=view.feedback)
