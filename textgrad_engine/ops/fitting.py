"""Fitting what a critic is shown to what it reads: see NOTE [What is left out] in `llm.context`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from textgrad_engine.llm.context import LeftOut, Room, by_worth, fit, note_left_out
from textgrad_engine.llm.tokens import count
from textgrad_engine.ops.shortening import LEAST, fitted_text, largest, marked, without_middle

_MARK = 40
"""Tokens of the sentences that say what was left out of a case."""

_PART = 8
"""One of so many parts of the room may be feedback beside a text that is too long for it."""

_SHORTEST = 200
"""Tokens of room that a message is worth which is shown without its middle; it would tell nothing in less."""


@dataclass(slots=True)  # not frozen, for which each attribute would be set by a call
class View:
    """A call of a model as the critic sees it.

    Attributes:
        heads: for each message who said it, and the names of the inputs in it that want feedback, "" for none; what
            holds one is always shown.
        texts: what each message says; the last one, or the last before the calls of tools, is always shown.
        answer: what the model answered.
        feedback: the pieces of feedback on that; one of them is always shown.
        scores: the score that each piece is about, as far as it is known.
        calls: which of the pieces are later calls as they were, with what was said of their answers.
        left_out_messages: how many messages are not in `texts`.
        left_out_feedback: how many pieces are not in `feedback`.
    """

    heads: tuple[tuple[str, str], ...]
    texts: list[str]
    answer: str
    feedback: list[str] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    left_out_messages: int = 0
    left_out_feedback: int = 0


def fitted(views: Sequence[View], render: Callable[[Sequence[View]], str], room: Room, beside: int, what: str) -> str:
    """A request that shows some calls, with as much left out as it takes to fit.

    Whole items go first, and long messages are shown without their middle in the room that is left. Where all that is
    still longer than the context, the middle of all long passages goes.

    Args:
        views: the calls.
        render: makes the request of them.
        room: what there is room for.
        beside: tokens that go along with it, such as those of a system message.
        what: what it is, with the examples that it is about, for the log and for errors.

    Raises:
        ContextOverflow: it is longer than the model's context with everything left out that can be.
    """
    text = render(views)
    if len(text) + beside <= room.tokens:  # no text has more tokens than characters, as we estimate them
        return text
    over = count(text) + beside - room.tokens
    if over <= 0:
        return text
    shown, middles = _without(views, over, room.tokens // _PART)
    if shown != list(views):
        text = render(shown)
    if count(text) + beside > room.most:
        whole = shown
        for inputs in (False, True):  # an input that is a whole message is judged, so it is cut only where it must be
            shown, text = _without_middles(whole, render, room, beside, inputs)
            if (size := count(text) + beside) <= room.most:
                break
        else:
            raise room.overflow(what, size)
        middles += sum(a != b for view, cut in zip(whole, shown) for a, b in zip(_passages(view), _passages(cut)))
    if shown != list(views):
        messages = sum(cut.left_out_messages - view.left_out_messages for view, cut in zip(views, shown))
        feedback = sum(cut.left_out_feedback - view.left_out_feedback for view, cut in zip(views, shown))
        note_left_out(LeftOut(what, room.model, messages, feedback, middles), room)
    return text


def _without_middles(
    views: list[View], render: Callable[[Sequence[View]], str], room: Room, beside: int, inputs: bool
) -> tuple[list[View], str]:
    """The views without the middle of long passages, and what is rendered of them.

    Where what stays whole takes the half of the context that there is for requests, half of the rest is filled, too.
    """
    made: dict[str, list[View]] = {}

    def make(characters: int) -> str:
        cut = [_cut(view, characters, inputs) for view in views]
        made[text := render(cut)] = cut
        return text

    longest = max(len(passage) for view in views for passage in _passages(view))
    text = ""
    for most in (room.tokens - beside, (room.tokens + room.most) // 2 - beside):
        text = largest(make, functools.partial(_fits, most), LEAST, longest + 1)
        if _fits(most, text):
            break
    return made[text], text


def _fits(most: int, text: str) -> bool:
    return count(text) <= most


def _cut(view: View, most: int, inputs: bool) -> View:
    """A view without the middle of long passages, but for inputs that are whole messages, or of these too."""
    return replace(
        view,
        texts=[
            text if keys and not inputs and not marked(text) else without_middle(text, most)
            for (_, keys), text in zip(view.heads, view.texts)
        ],
        answer=without_middle(view.answer, most),
        feedback=[without_middle(piece, most) for piece in view.feedback],
    )


def _passages(view: View) -> list[str]:
    return [*view.texts, view.answer, *view.feedback]


def _without(views: Sequence[View], over: int, beside: int) -> tuple[list[View], int]:
    """The views without the items of least worth, so many that about `over` tokens go.

    A message that is longer than all the room that is left, such as what a tool gave, is shown without its middle.
    Where what must be shown is too long by itself, it loses its middle later, and short feedback stays beside it.

    Args:
        views: the calls.
        over: tokens that are to go.
        beside: so many tokens of feedback may stay beside what is too long by itself.

    Returns:
        The views, and how many messages are shown like this.
    """
    items: list[tuple[int, str, int]] = []  # the most valuable first: view, kind, position
    for number, view in enumerate(views):
        items += [(number, "feedback", position) for position in by_worth(view.scores)[1:]]
    for number, view in enumerate(views):
        answered = _answered(view)
        items += [
            (number, "messages", position)
            for position in range(len(view.texts) - 1, -1, -1)
            if not view.heads[position][1] and position != answered
        ]
    if not items:
        return list(views), 0
    costs = [
        count(views[number].feedback[position] if kind == "feedback" else views[number].texts[position])
        for number, kind, position in items
    ]
    room = sum(costs) - over - _MARK * len(views)
    if room >= 0:
        kept = set(fit(costs, room))
        spare = room - sum(costs[n] for n in kept)
    else:
        pieces = sum(kind == "feedback" for _, kind, _ in items)  # which come first
        kept, spare = set(fit(costs[:pieces], min(room + _longer(views), beside))), 0
    gone = [item for n, item in enumerate(items) if n not in kept]
    cut = {}
    messages = [item for item in gone if item[1] == "messages"][: spare // _SHORTEST]
    for number, kind, position in messages:  # the newest ones, each in an equal part of the room
        shorter = fitted_text(views[number].texts[position], spare // len(messages) - _MARK)
        cut[number, kind, position] = shorter
    left_out = {item for item in gone if item not in cut}
    return [_kept(view, number, left_out, cut) for number, view in enumerate(views)], len(cut)


def _longer(views: Sequence[View]) -> int:
    """By how many tokens what is shown in any case is longer than it has to be."""
    must = [view.answer for view in views] + [view.texts[_answered(view)] for view in views if view.texts]
    must += [view.feedback[by_worth(view.scores)[0]] for view in views if view.feedback]
    return sum(max(0, count(text) - _SHORTEST) for text in must)


def _answered(view: View) -> int:
    """The position of the message that was answered: the last one, or the last before the calls of tools."""
    last = len(view.texts) - 1
    at = last
    while at >= 0 and view.heads[at][0] == "tool":
        at -= 1
        while at >= 0 and view.heads[at][0] == "assistant":
            at -= 1
    return at if at >= 0 else last


def _kept(view: View, number: int, gone: set[tuple[int, str, int]], cut: Mapping[tuple[int, str, int], str]) -> View:
    messages = [n for n in range(len(view.texts)) if (number, "messages", n) not in gone]
    pieces = [n for n in range(len(view.feedback)) if (number, "feedback", n) not in gone]
    return replace(
        view,
        heads=tuple([view.heads[n] for n in messages]),
        texts=[cut.get((number, "messages", n), view.texts[n]) for n in messages],
        feedback=[view.feedback[n] for n in pieces],
        scores=[view.scores[n] for n in pieces],
        left_out_messages=view.left_out_messages + len(view.texts) - len(messages),
        left_out_feedback=view.left_out_feedback + len(view.feedback) - len(pieces),
    )
