"""A gradient is an ordered list of feedback items; a backward rule sees it as one Variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from textgrad_engine.autograd.function import Function
from textgrad_engine.autograd.grad_mode import GRAD_ENABLED
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.errors import AutogradError

__all__ = [
    "SEED",
    "Items",
    "PartSeed",
    "as_items",
    "combine",
    "in_words",
    "is_seed",
    "is_start",
    "texts_for",
    "uncombined",
    "without_zeros",
]

Items: TypeAlias = list[Variable]


class _Start(Variable):
    """The start of a pass: it has no words, and is no zero."""

    __slots__ = ()

    def _says_nothing(self) -> bool:
        return False


SEED = _Start("", role="the start of a backward pass")
"""The gradient that a loss begins with: it says nothing, and is no zero (as a tensor's is one)."""


class PartSeed(_Start):
    """The start of a pass at some entries of a batch of losses.

    Attributes:
        entries: for each entry what it begins with; empty where no pass begins.
    """

    __slots__ = ("entries",)

    def __init__(self, entries: Sequence[Items]) -> None:
        super().__init__([""] * len(entries), role=SEED.role)
        self.entries = tuple(entries)


def is_start(item: Variable) -> bool:
    """Whether an item is the start of a pass rather than words; inside `vmap`, for any example."""
    if item._layer is None:
        return isinstance(item, _Start)
    return isinstance(item._inner, list) and any(is_start(part) for part in item._parts())


def is_seed(gradient: Variable) -> bool:
    """Whether a gradient is only the start of a pass, with no words in it."""
    return is_start(gradient) or (
        gradient._combined and bool(gradient.grad) and all(is_start(item) for item in gradient.grad)
    )


def without_zeros(items: Items) -> Items:
    """The items that say something; the list itself where all do."""
    for item in items:
        if item._says_nothing():
            return [item for item in items if not item._says_nothing()]
    return items


class _Join(Function):
    """Items joined to one text; feedback on the whole is feedback on each."""

    deferrable = True

    @staticmethod
    def forward(items: list[Variable]) -> Variable:
        return Variable(_text(items))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.count = len(inputs[0])

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        return ([grad_out] * ctx.count,)

    @staticmethod
    def jvp(ctx: Any, edits: list[Variable | None]) -> Any:
        return _Join.apply([edit for edit in edits if edit is not None])


def combine(items: Items) -> Variable:
    """One Variable for a list of items: `data` their texts in order, `grad` the list; recorded if anything is."""
    role = "feedback"
    if len(items) == 1:
        role = items[0].role if items[0]._role is None else items[0]._role
    for item in items:
        if item._layer is not None or (item._requires_grad and GRAD_ENABLED.get()):
            whole: Variable = _Join.apply(
                items
            )  # also of one: in a batch, examples may have different numbers of items
            whole._role = role
            return _held(whole, items)
    if len(items) == 1:
        item = items[0]
        whole = Variable(item._data if item._call is None else item.data, role)
    else:
        whole = Variable(_text(items), role)
    whole._grad, whole._combined = items, True
    return whole


def uncombined(items: Items) -> Variable:
    """One Variable that only holds the items, for rules that look at nothing else."""
    return _held(Variable(""), items)


def _held(whole: Variable, items: Items) -> Variable:
    whole._grad = items
    whole._combined = True
    return whole


def _text(items: Items) -> Any:
    items = [item for item in items if not is_start(item)]
    if not items:
        return ""
    if len(items) == 1:
        return items[0].data
    if all(isinstance(item.data, list) for item in items):  # batches are joined entry by entry
        return [_lines(parts) for parts in zip(*(item.data for item in items), strict=True)]
    return _lines(item.data for item in items)


def _lines(parts: Any) -> str:
    return "\n".join(str(part) for part in parts if part not in ("", []))


def as_items(gradient: Any, giver: str) -> Items:
    """The items of what a rule, a hook or a user gives as a gradient.

    Args:
        gradient: None, a text, a Variable, a combined gradient (whose items are taken), or a list of these.
        giver: who gave it, for the message.

    Raises:
        TypeError: it is something else.
    """
    if gradient is None:
        return []
    if isinstance(gradient, Variable):
        return list(gradient.grad) if gradient._combined else [gradient]
    if isinstance(gradient, str):
        return [Variable(gradient, role="feedback")]
    if isinstance(gradient, list | tuple):
        return [item for part in gradient for item in as_items(part, giver)]
    raise TypeError(
        f"{giver} gave {type(gradient).__name__} as a gradient: {gradient!r:.60}. Give a Variable, a text or None."
    )


def in_words(gradient: Any) -> bool:
    """Whether it is a text, or (nested) lists of nothing but texts."""
    return isinstance(gradient, str) or (isinstance(gradient, list | tuple) and all(map(in_words, gradient)))


def texts_for(data: Any, texts: Any, root: Variable) -> Any:
    """Feedback on a batch in its shape; one text for a row is about every entry of the row."""
    if isinstance(texts, str):
        return [texts_for(entry, texts, root) for entry in data] if isinstance(data, list) else texts
    if not isinstance(data, list) or len(texts) != len(data):
        size = f"a batch of {len(data)} entries" if isinstance(data, list) else "a single value"
        raise AutogradError(
            f"feedback on {root._name()}: it has {size} where a list of {len(texts)} texts was given: {texts!r:.60}. "
            'Give one text for each entry, "" where there is nothing to say, or one text for all.'
        )
    return [texts_for(entry, part, root) for entry, part in zip(data, texts)]
