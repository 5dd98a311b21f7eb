"""`reduce`: a model merges many pieces of feedback into few, and each remembers what it was made from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from textgrad_engine import templates
from textgrad_engine.autograd import Function, Source, Variable, no_grad
from textgrad_engine.errors import MalformedResponse
from textgrad_engine.llm.model import Model
from textgrad_engine.llm.request import Purpose
from textgrad_engine.ops.chat_completion import ask
from textgrad_engine.ops.feedback import object_schema
from textgrad_engine.ops.text import Compute, edit_of_parts

__all__ = ["MERGE_ATTEMPTS", "MERGE_SCHEMA", "merge_problem", "merge_slots", "merged_items", "reduce", "unusable"]

MERGE_ATTEMPTS = 2
"""How often the model is asked: a second time with what was wrong with the first answer."""

_ITEM = object_schema({"text": {"type": "string"}, "numbers": {"type": "array", "items": {"type": "integer"}}})
MERGE_SCHEMA = object_schema({"items": {"type": "array", "items": _ITEM}})
"""What the prompt ``reduce`` is answered with."""


def reduce(
    feedbacks: Sequence[Variable | str],
    max_items: int = 5,
    model: str | Model | None = None,
    *,
    purpose: Purpose = "backward",
) -> list[Variable]:
    """Merge many pieces of feedback into few; waits for them, since nobody is asked when they are few already.

    Args:
        feedbacks: the pieces, such as the `.grad` of a prompt; empty ones are left out.
        max_items: how many may be left, at least 1.
        model: asks this model; None stands for the one of `use_models` for the purpose.
        purpose: why it is asked; calls are counted by it.

    Returns:
        At most `max_items` Variables, the most important first: the pieces themselves when there are few enough, else
        new ones. The `source.because` of a new one is the tuple of the pieces that it stands for, and feedback on it
        flows to these.

    Raises:
        ValueError: max_items is below 1.
        TypeError: a piece is a batch.
        MalformedResponse: twice the model named a number that there is not, left one out, or gave too many pieces.

    Example:
        >>> from textgrad_engine.testing import ScriptedModel
        >>> merger = ScriptedModel([{"items": [{"text": "Say it shorter, in French.", "numbers": [1, 2, 3]}]}])
        >>> (one,) = reduce(["shorter", "too long", "in French"], max_items=1, model=merger)
        >>> one.data, [piece.data for piece in one.source.because]
        ('Say it shorter, in French.', ['shorter', 'too long', 'in French'])
    """
    if max_items < 1:
        raise ValueError(f"reduce: max_items must be at least 1, got {max_items}")
    pieces = [Variable(piece, role="feedback") if isinstance(piece, str) else piece for piece in feedbacks]
    for position, piece in enumerate(pieces):
        if isinstance(piece.data, list):
            raise TypeError(f"reduce: piece {position} ({piece._name()}) is a batch; give its entries one by one")
    pieces = [piece for piece in pieces if str(piece.data).strip()]
    if len(pieces) <= max_items:
        return pieces
    return [
        _merged(text, [pieces[n - 1] for n in numbers]) for text, numbers in _ask(pieces, max_items, model, purpose)
    ]


def _ask(
    pieces: list[Variable], max_items: int, model: str | Model | None, purpose: Purpose
) -> list[tuple[str, list[int]]]:
    """For each merged piece its text and the numbers that it stands for, from 1."""
    problem, answer = "", None
    for _ in range(MERGE_ATTEMPTS):
        slots = merge_slots([(piece.role, piece.data, 1) for piece in pieces], max_items, problem)
        with no_grad():  # feedback on a merged piece goes to the pieces themselves, not through the model
            user = Compute.apply(_render, slots, "request to merge feedback")
            answer = ask("reduce", user, MERGE_SCHEMA, purpose=purpose, role="merged feedback", model=model)
        found = merged_items(answer.data)
        problem = merge_problem(found, len(pieces), max_items)
        if not problem:
            return found
    assert answer is not None
    raise unusable(len(pieces), max_items, problem, answer.data)


def _render(slots: dict[str, Any]) -> str:
    return templates.load("reduce").render(**slots)


def merge_slots(pieces: Sequence[tuple[str, str, int]], max_items: int, problem: str) -> dict[str, Any]:
    """The slots of the prompt ``reduce``.

    Args:
        pieces: the role and the text of each piece, and how often it was said.
        max_items: how many may be left.
        problem: what was wrong with the last answer, "" for the first.
    """
    feedback = [{"role": role, "text": text, "times": times} for role, text, times in pieces]
    return {"feedback": feedback, "max_items": max_items, "problem": problem}


def merged_items(answer: str) -> list[tuple[str, list[int]]]:
    """For each merged piece of an answer its text and the numbers that it stands for, from 1.

    Raises:
        MalformedResponse: the answer has another form.
    """
    try:
        items = json.loads(answer)["items"]
        return [(item["text"].strip(), list(dict.fromkeys(item["numbers"]))) for item in items]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedResponse(f"the answer holds no merged feedback ({error!r}): {answer!r:.200}") from error


def merge_problem(items: list[tuple[str, list[int]]], count: int, max_items: int) -> str:
    """What is wrong with an answer about so many pieces, in words for the model; "" when nothing is."""
    if len(items) > max_items:
        return f"it has {len(items)} pieces, and at most {max_items} are allowed"
    for position, (text, numbers) in enumerate(items, 1):
        if not text:
            return f"piece {position} has no text"
        if not numbers:
            return f"piece {position} names no numbers"
        if unknown := [number for number in numbers if not 1 <= number <= count]:
            return f"piece {position} names number {unknown[0]}, and there are 1 to {count}"
    named = {number for _, numbers in items for number in numbers}
    if missing := [str(number) for number in range(1, count + 1) if number not in named]:
        return f"it leaves out {'number' if len(missing) == 1 else 'numbers'} {', '.join(missing)}"
    return ""


def unusable(count: int, max_items: int, problem: str, answer: str) -> MalformedResponse:
    """The error about the last answer when no attempt is left."""
    return MalformedResponse(
        f"reduce: the model was asked {MERGE_ATTEMPTS} times to merge {count} pieces of feedback into {max_items}, "
        f"and its last answer could not be used: {problem}: {answer!r:.200}"
    )


def _merged(text: str, pieces: list[Variable]) -> Variable:
    merged: Variable = _Merge.apply(pieces, text)
    sources = [piece.source for piece in pieces if piece.source is not None]
    merged.source = Source(
        example=", ".join(dict.fromkeys(source.example for source in sources if source.example)),
        node="reduce",
        score=next((source.score for source in sources if source.score is not None), None),
        because=tuple(pieces),
    )
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
