"""`reduce`: a model merges many pieces of feedback into few, and each remembers what it was made from."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from textgrad_engine import templates
from textgrad_engine.autograd import Function, Source, Variable, no_grad
from textgrad_engine.autograd.value import label_of
from textgrad_engine.checks import at_least, check, in_order
from textgrad_engine.dispatch import aside, waits
from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm.context import room_of
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import Purpose
from textgrad_engine.llm.roles import model_for
from textgrad_engine.llm.schema import integer
from textgrad_engine.llm.tokens import count
from textgrad_engine.ops.json_answers import object_schema
from textgrad_engine.ops.messages import answer_form
from textgrad_engine.ops.model_call import ask
from textgrad_engine.ops.parts import place_in_words
from textgrad_engine.ops.pass_on import Compute, edit_of_parts
from textgrad_engine.ops.shortening import CASES_AT_LEAST, fitted_case, fitted_text

MERGE_ATTEMPTS = 2
"""How often the model is asked: a second time with what was wrong with the first answer."""

_ITEM = object_schema({"text": {"type": "string"}, "numbers": {"type": "array", "items": {"type": "integer"}}})
MERGE_SCHEMA = object_schema({"items": {"type": "array", "items": _ITEM}})
_FORM = answer_form("reduce", MERGE_SCHEMA)
"""What the prompt ``reduce`` is answered with."""


class Piece(NamedTuple):
    """A piece of feedback: its role and its text, how often it was said, whether it is a call as it was, and whether
    an evaluator said it of the text itself, as a log of its tests is.
    """

    role: str
    text: str
    times: int = 1
    case: bool = False
    direct: bool = False


Merged: TypeAlias = tuple[str, list[int]]
"""The text of a merged piece, and the numbers of those that it stands for."""

_AROUND = 40
"""Tokens of what stands around a piece in the prompt, and of the prompt's own sentences."""


@waits("await ops.areduce(...)")
def reduce(
    feedbacks: Sequence[Variable | str],
    max_items: int = 5,
    model: str | Model | None = None,
    *,
    purpose: Purpose = "backward",
) -> list[Variable]:
    """Merge many pieces of feedback into few. It waits for them, since no model is asked if they are few already.

    Args:
        feedbacks: the pieces, such as the `.grad` of a prompt; empty ones are left out.
        max_items: how many may be left, at least 1.
        model: asks this model; None stands for the one of `use_models` for the purpose.
        purpose: why it is asked; calls are counted by it.

    Returns:
        At most `max_items` Variables, the most important first: the pieces themselves when there are few enough, else
        new ones. The `source.because` of a new one is the tuple of the pieces that it stands for, and feedback on it
        flows to these. Where the context of the model has no room for all, they are merged in rounds.

    Raises:
        ValueError: max_items is below 1.
        TypeError: a piece is a batch.
        ContextOverflow: two pieces together are longer than the context of the model, also without the middles of cases
            and of what evaluators said of a text itself, such as long logs.
        MalformedResponse: twice the model named a number that there is not, left one out, or gave too many pieces.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> merger = ScriptedModel([{"items": [{"text": "Say it shorter, in French.", "numbers": [1, 2, 3]}]}])
        >>> (one,) = reduce(["shorter", "too long", "in French"], max_items=1, model=merger)
        >>> one.data, [piece.data for piece in one.source.because]
        ('Say it shorter, in French.', ['shorter', 'too long', 'in French'])
    """
    check(reduce, locals(), at_least(1, "max_items"))
    pieces = [
        Variable(piece, role="feedback") if isinstance(piece, str) else piece
        for piece in in_order(feedbacks, "reduce: ")
    ]
    for position, piece in enumerate(pieces):
        if isinstance(piece.data, list):
            raise TypeError(f"reduce: piece {position} ({label_of(piece)}) is a batch; give its entries one by one")
    pieces = [piece for piece in pieces if str(piece.data).strip()]
    if len(pieces) <= max_items:
        return pieces
    work = in_rounds(
        [_piece(piece) for piece in pieces],
        max_items,
        model_for(purpose, model),
    )
    groups = next(work)
    while True:
        started = [
            _start(merge_slots(group, most), model, purpose) for group, most in groups
        ]  # all of a round at the same time
        found = [_finish(answer, group, most, model, purpose) for answer, (group, most) in zip(started, groups)]
        try:
            groups = work.send(found)
        except StopIteration as finished:
            return [_merged(text, [pieces[n - 1] for n in numbers]) for text, numbers in finished.value]


async def areduce(
    feedbacks: Sequence[Variable | str],
    max_items: int = 5,
    model: str | Model | None = None,
    *,
    purpose: Purpose = "backward",
) -> list[Variable]:
    """`reduce` for code that has an event loop of its own; the loop is not blocked.

    When the wait for it is cancelled, so are its calls.

    Example:
        >>> import asyncio
        >>> [piece.data for piece in asyncio.run(areduce(["shorter", "", "in French"]))]
        ['shorter', 'in French']
    """
    return await aside(lambda: reduce(feedbacks, max_items, model, purpose=purpose))


def in_rounds(
    pieces: Sequence[Piece], max_items: int, model: Model
) -> Generator[list[tuple[list[Piece], int]], list[list[Merged]], list[Merged]]:
    """What a model is to be asked so that many pieces become few: in one request where its context has room for all.

    Where it has not, neighbours that fit together are merged first, each group into half as many, and what comes of
    that is merged again. Nothing is left out, but for the middles of cases and logs that are long (`ops.shortening`): a
    group holds several of them.

    Args:
        pieces: the pieces.
        max_items: how many may be left.
        model: who will be asked.

    Yields:
        Groups of pieces, and how many of each may be left; wants to be sent the merged pieces of each, with numbers
        that count from 1 within the group.

    Returns:
        The merged pieces, with the numbers of the pieces that they stand for, from 1.

    Raises:
        ContextOverflow: two pieces are longer together than the model's context.
    """
    room = room_of(model)
    beside = count(templates.load("reduce").system) + _AROUND
    if room is not None:
        pieces = _shortened(pieces, room.tokens - beside)
    current = [(piece, [number]) for number, piece in enumerate(pieces, 1)]
    while True:
        groups = [[*range(len(current))]]
        if room is not None:
            costs = [_cost(piece) for piece, _ in current]
            groups = _neighbours(costs, room.tokens - beside)
            if len(groups) == len(costs) > 1:  # of long ones, more than half of the context
                groups = _neighbours(costs, room.most - beside)
            if len(groups) == len(costs) > 1:
                pair = min(map(sum, pairwise(costs)))
                raise room.overflow("a request to merge two pieces of feedback", beside + pair)
        if len(groups) == 1:
            (found,) = yield [([piece for piece, _ in current], max_items)]
            return [(text, _behind(current, groups[0], numbers)) for text, numbers in found]
        asked = [group for group in groups if len(group) > 1]
        shares = [max(len(group) // 2, -(-max_items * len(group) // len(current))) for group in asked]
        jobs = [([current[n][0] for n in group], min(share, len(group) - 1)) for group, share in zip(asked, shares)]
        answers = iter((yield jobs))
        merged: list[tuple[Piece, list[int]]] = []
        for group in groups:
            if len(group) == 1:
                merged.append(current[group[0]])
                continue
            for text, numbers in next(answers):
                members = [current[group[n - 1]][0] for n in numbers]
                role = " and ".join(dict.fromkeys(member.role for member in members if member.role))
                piece = Piece(role, text, sum(member.times for member in members))
                merged.append((piece, _behind(current, group, numbers)))
        current = merged
        if len(current) <= max_items:
            return [(piece.text, numbers) for piece, numbers in current]


def _piece(said: Variable) -> Piece:
    text, source = f"{place_in_words(said)}{said.data}", said.source
    return Piece(said.role, text, case=source is not None and source.case, direct=source is not None and source.direct)


def _cost(piece: Piece) -> int:
    return count(piece.role) + count(piece.text) + _AROUND


def _shortened(pieces: Sequence[Piece], room: int) -> list[Piece]:
    """Where there is no room for all, cases and logs that would take that of several others, without their middles."""
    if sum(map(_cost, pieces)) <= room:
        return list(pieces)
    share = room // min(CASES_AT_LEAST, len(pieces)) - _AROUND
    return [_fitted(piece, max(1, share - count(piece.role))) for piece in pieces]


def _fitted(piece: Piece, most: int) -> Piece:
    if not (piece.case or piece.direct):
        return piece
    return piece._replace(text=(fitted_case if piece.case else fitted_text)(piece.text, most))


def _neighbours(costs: list[int], room: int) -> list[list[int]]:
    """Positions in groups, each as many neighbours as there is room for."""
    groups: list[list[int]] = []
    spent = 0
    for position, cost in enumerate(costs):
        if groups and spent + cost <= room:
            groups[-1].append(position)
            spent += cost
        else:
            groups.append([position])
            spent = cost
    return groups


def _behind(current: list[tuple[Piece, list[int]]], group: list[int], numbers: list[int]) -> list[int]:
    """The numbers of the first pieces that some pieces of a group stand for."""
    return list(dict.fromkeys(first for number in numbers for first in current[group[number - 1]][1]))


def _start(slots: dict[str, Any], model: str | Model | None, purpose: Purpose) -> Variable:
    with no_grad():  # feedback on a merged piece goes to the pieces themselves, not through the model
        user = Compute.apply(_render, slots, "request to merge feedback")
        return ask("reduce", user, _FORM, purpose=purpose, role="merged feedback", model=model)


def _finish(
    answer: Variable, pieces: list[Piece], max_items: int, model: str | Model | None, purpose: Purpose
) -> list[Merged]:
    """What an answer says; where it cannot be used, what the next one says, which is told the problem."""
    for attempt in range(1, MERGE_ATTEMPTS + 1):
        found = merged_items(answer.data)
        problem = merge_problem(found, len(pieces), max_items)
        if not problem:
            return found
        if attempt < MERGE_ATTEMPTS:
            answer = _start(merge_slots(pieces, max_items, problem, answer.data), model, purpose)
    raise unusable(len(pieces), max_items, problem, answer.data)


def _render(slots: dict[str, Any]) -> str:
    return templates.load("reduce").render(**slots)


def merge_slots(pieces: Sequence[Piece], max_items: int, problem: str = "", refused: str = "") -> dict[str, Any]:
    """The slots of the prompt ``reduce``.

    Args:
        pieces: the pieces.
        max_items: how many may be left.
        problem: what was wrong with the last answer, "" where there is none.
        refused: that answer.
    """
    feedback = [piece._asdict() for piece in pieces]
    return {"feedback": feedback, "max_items": max_items, "problem": problem, "refused": refused}


def merged_items(answer: str) -> list[Merged]:
    """For each merged piece of an answer its text and the numbers that it stands for, from 1.

    Raises:
        MalformedResponse: the answer has another form.
    """
    try:
        items = json.loads(answer)["items"]
        return [(item["text"].strip(), list(dict.fromkeys(map(integer, item["numbers"])))) for item in items]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedResponse(f"the answer holds no merged feedback ({error!r}): {answer!r:.200}") from error


def merge_problem(items: list[Merged], total: int, max_items: int) -> str:
    """What is wrong with an answer about so many pieces, in words for the model; "" when nothing is."""
    if len(items) > max_items:
        return f"it has {len(items)} pieces, and the limit is {max_items}"
    for position, (text, numbers) in enumerate(items, 1):
        if not text:
            return f"piece {position} has no text"
        if not numbers:
            return f"piece {position} names no numbers"
        if unknown := [number for number in numbers if not 1 <= number <= total]:
            return f"piece {position} names number {unknown[0]}, and there are 1 to {total}"
    named = {number for _, numbers in items for number in numbers}
    if missing := [str(number) for number in range(1, total + 1) if number not in named]:
        return f"it leaves out {'number' if len(missing) == 1 else 'numbers'} {', '.join(missing)}"
    return ""


def unusable(total: int, max_items: int, problem: str, answer: str) -> MalformedResponse:
    """The error about the last answer when no attempt is left."""
    return MalformedResponse(
        f"reduce: the model was asked {MERGE_ATTEMPTS} times to merge {total} pieces of feedback into {max_items}, "
        f"and its last answer could not be used: {problem}: {answer!r:.200}"
    )


def _merged(text: str, pieces: list[Variable]) -> Variable:
    merged: Variable = _Merge.apply(pieces, text)
    sources = [piece.source for piece in pieces if piece.source is not None]
    merged.source = Source.joined(sources, "reduce", pieces)
    return merged


class _Merge(Function):
    """`_Merge.apply(pieces, text)`: a text that stands for some pieces of feedback; feedback on it is about each."""

    @staticmethod
    def forward(pieces: list[Variable], text: str) -> Variable:
        roles = dict.fromkeys(piece.role for piece in pieces if piece.role)
        return Variable(text, role=" and ".join(roles) or "feedback")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.count = len(inputs[0])

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        return [grad_out] * ctx.count, None

    @staticmethod
    def jvp(ctx: Any, edits: list[Variable | None], text: None) -> Variable | None:
        pairs = enumerate(zip(ctx.primals[0], edits), 1)
        return edit_of_parts([(f"piece {n} of the {ctx.count} merged", piece, edit) for n, (piece, edit) in pairs])
