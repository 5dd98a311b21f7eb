"""Feedback without a critic: whoever rewrites a text is shown the calls in which it stood, as they were.

GEPA (arXiv 2507.19457) and Trace's OptoPrime (arXiv 2406.16218) do it like this. The words are in ``prompts/case.md``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Source, Variable
from textgrad_engine.autograd.graph import FunctionNode
from textgrad_engine.fences import quoted
from textgrad_engine.ops.cases import Case, Part, view_of
from textgrad_engine.ops.parts import without_repeat, without_repeated_part
from textgrad_engine.ops.pass_on import Compute
from textgrad_engine.ops.shortening import without_middles

MOST_AFTER = 10_000
"""Characters of the cases of several later calls that an answer was given to; what comes of one is shown whole.

Where each of three agents reads the answers of all, round after round, it would be three times as much in each round.
"""

MOST_OF_MESSAGE = 4_000
"""Characters that are shown of a message of a later call."""


def as_it_was(case: Case, data: list[Any] | None) -> dict[int, Variable]:
    """For each input of a call that wants feedback the call itself, its answer, and what was said of that.

    Where nothing was said of the answer it is the empty text. An answer that several later calls were given, as in a
    conversation, hears of each of them once, as far as there is room, and without the middle of long messages. Images
    are named and not shown, as an optimizer's request has none; tools and the form of the answer are left out.

    Args:
        case: the call.
        data: its values, its answer and the feedback on it, in plain; None where these are Variables still.

    Returns:
        The feedback, by the position of the input among the values of the call.
    """
    case, data = _each_call_once(case, data)
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


def _each_call_once(case: Case, data: list[Any] | None) -> tuple[Case, list[Any] | None]:
    """Without the later calls that are shown in the cases of other later calls; else a conversation would be 2 ** n."""
    if len(case.feedback) < 2:
        return case, data
    inside: set[Any] = set()
    waiting = [below for item in case.feedback for below in _cases_below(item)]
    while waiting:
        item = waiting.pop()
        if (call := _call_of(item)) not in inside:
            inside.add(call)
            waiting += _cases_below(item)
    kept = []
    for n, item in enumerate(case.feedback):
        if _is_case(item):
            if (call := _call_of(item)) in inside:
                continue
            inside.add(call)  # two fields of the answer may have gone into one call
        kept.append(n)
    case = replace(case, feedback=[case.feedback[n] for n in kept])
    return case, None if data is None else [*data[:2], [data[2][n] for n in kept]]


def _with_room(items: Sequence[Variable], texts: Sequence[Any], answer: str, note: str) -> tuple[list[Any], int]:
    """What is said of an answer, and how many of several cases that came of it are left out for want of room.

    Args:
        items: the feedback on the answer.
        texts: what each of it says.
        answer: the answer, which is shown above.
        note: what people noted of the example, which each of several cases shows; the first one does here.
    """
    found, size, left_out = [], 0, 0
    noted = re.compile(r"\n[^\n]*:" + re.escape(quoted(note, "feedback"))) if note else None
    again = False
    for item, text in zip(items, texts):
        if text and _is_case(item):
            text = without_repeat(str(text), answer, "answer", "message")
            text = without_repeated_part(text, answer, "answer")
            if noted and (shown := noted.search(text)):
                first, behind = text[: shown.start()], text[shown.end() :]
                text = first + ("" if again else shown[0]) + noted.sub("", behind)
                again = True
            text = without_middles(text, MOST_OF_MESSAGE, ("message",))  # a document may be in each call of a chain
            if size and size + len(text) > MOST_AFTER:
                left_out += 1
                text = ""
            size += len(text)
        found.append(text)
    return found, left_out


def _is_case(item: Variable) -> bool:
    return item.source is not None and item.source.case


def _cases_below(item: Variable) -> list[Variable]:
    """The cases that are shown in a case."""
    return [] if item.source is None or not item.source.case else list(filter(_is_case, item.source.because))


def _call_of(item: Variable) -> tuple[Any, ...]:
    """What the cases of one call have in common, whichever of its inputs they are for."""
    source = item.source or Source()
    return source.node, source.output, *map(id, source.because)


def _in_words(case: Case, part: Part, data: list[Any]) -> str:
    values, answer, feedback = data
    feedback, left_out = _with_room(case.feedback, feedback, str(answer), case.note)
    view = view_of(case, values, answer, feedback, of=part)
    if not view.feedback:
        return ""
    # Who rewrites a text has it before them, and what operations made of a text not.
    before_them = not isinstance(case.told_apart(part.position - len(case.values)).node, FunctionNode)
    own, mine = str(values[part.position]), f"`{part.key}`"
    messages = []
    for (role, keys), text in zip(view.heads, view.texts):
        place = ""
        if mine in keys.split(", "):
            place = part.shown
            if place != "beside" and (text == own or place == "message"):  # tags stand where it is first, or nowhere
                place = "message" if text == own else "part"
        messages.append({"role": role, "text": text, "place": place})
    return templates.load("case").render(
        messages=messages,
        name="this text" if before_them else "the text that this is feedback on",
        shown=not before_them,
        tag=part.key,
        of_tool=part.shown == "tool",
        answer=view.answer,
        feedback=view.feedback,
        calls=view.calls,
        left_out=left_out,
    )
