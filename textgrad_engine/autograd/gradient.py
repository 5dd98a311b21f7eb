"""A gradient is an ordered list of feedback items; a backward rule sees it as one Variable."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from textgrad_engine.autograd.function import Function
from textgrad_engine.autograd.grad_mode import GRAD_ENABLED
from textgrad_engine.autograd.graph import Source
from textgrad_engine.autograd.value import Start, label_of, shape_of
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.errors import AutogradError
from textgrad_engine.wording import told

Items: TypeAlias = list[Variable]


START = Start()


def start(data: Any = START) -> Variable:
    """The gradient that a loss begins with: it says nothing, and is no zero.

    Args:
        data: `START`; for a batch of losses a list with it for each entry that a pass begins at, and "" for the others.
    """
    return Variable(data, role="the start of a backward pass")


def is_start(item: Variable) -> bool:
    """Whether an item is the start of a pass rather than words; inside `vmap`, for any example."""
    if item._layer is None:
        data = item._data
        return type(data) is Start or (type(data) is list and _starts_in(data))
    return isinstance(item._inner, list) and any(is_start(part) for part in item._parts())


def _starts_in(entries: list[Any]) -> bool:
    return any(type(entry) is Start or (type(entry) is list and _starts_in(entry)) for entry in entries)


def started(starts: Sequence[Any]) -> Any:
    """One for the data of several starts of a pass at the same place; "" where there is none."""
    if any(type(data) is Start for data in starts):
        return START
    batches = [data for data in starts if type(data) is list]
    return [started(entries) for entries in zip(*batches, strict=True)] if batches else ""


def is_seed(gradient: Variable) -> bool:
    """Whether a gradient is only the start of a pass, with no words in it.

    Raises:
        TypeError: it is no Variable.

    Example:
        >>> from textgrad_engine import autograd, nn
        >>> answer = Variable("no", role="answer", requires_grad=True)
        >>> with answer.register_hook(lambda gradient: print(autograd.is_seed(gradient))):
        ...     answer.backward("Say yes.")
        False
    """
    if not isinstance(gradient, Variable):
        raise TypeError(f"is_seed: gradient must be a Variable, got {told(gradient)}")
    if is_start(gradient):
        return True
    items = gradient.grad if isinstance(gradient, Gradient) and not gradient._version else []
    return bool(items) and all(is_start(item) for item in items)


class Gradient(Variable):
    """A list of feedback items as one Variable: `data` their texts in order, `grad` the items.

    A copy of it has copies of the items, with where they came from. When its data was edited, it is a text like any
    other: the items are what it was.
    """

    __slots__ = ()

    def clone(self) -> Variable:
        """A copy of each item; feedback on it flows back to them."""
        return super().clone() if self._version else self._of([item._alias() for item in self.grad])

    def detach(self) -> Variable:
        """A copy of each item, cut off from the graph and from all transforms."""
        return super().detach() if self._version else self._of([item._detached() for item in self.grad])

    def _alias(self, kind: type[Variable] | None = None) -> Variable:
        other = super()._alias(kind)
        if kind is None:
            other._grad = list(self.grad)
        return other

    def _of(self, items: Items) -> Variable:
        other = combine(items)
        other._role = self._role
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        other = memo[id(self)] = copy.copy(self)
        return other

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        _, (_, *made_of), _ = super().__reduce_ex__(protocol)  # refuses what has a graph
        return (Variable, tuple(made_of)) if self._version else (_new_gradient, (self.grad, self.role))


def _new_gradient(items: Items, role: str) -> Variable:
    other = combine([item._detached() for item in items])
    other.role = role
    return other


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
    def forward(items: list[Variable], shape: Any) -> Variable:
        return Variable(spread(_text(items), shape), role=_role_of(items))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.count = len(inputs[0])

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        return [grad_out] * ctx.count, None

    @staticmethod
    def jvp(ctx: Any, edits: list[Variable | None], shape: None) -> Any:
        return _Join.apply([edit for edit in edits if edit is not None], ctx.primals[1])


def combine(items: Items, shape: Any = None) -> Variable:
    """One Variable for a list of items: `data` their texts in order, `grad` the list; recorded if anything is.

    Args:
        items: the items.
        shape: of a batch that they are about (see `shape_of`): a text is then about every entry.
    """
    for item in items:
        if item._layer is not None or (item._requires_grad and GRAD_ENABLED.get()):
            # also of one: in a batch, examples may have different numbers of items
            whole: Variable = _Join.apply(items, shape)
            whole._grad = items
            whole.__class__ = Gradient
            return whole
    if len(items) == 1:
        item = items[0]
        data = item._data if item._call is None else item.data
    else:
        data = _text(items)
    role = _OF_SEVERAL
    if len(items) == 1:
        role = items[0].role if items[0]._role is None else items[0]._role
    whole = Gradient(data if shape is None else spread(data, shape), role)
    whole._grad = items
    return whole


_OF_SEVERAL = "feedback"
"""The role of several items together, and of none."""


def _role_of(items: Items) -> str:
    """That of the only item which says anything: in a batch, examples may have different numbers of them."""
    said = without_zeros(items)
    return said[0].role if len(said) == 1 else _OF_SEVERAL


def uncombined(items: Items) -> Gradient:
    """One Variable that only holds the items, for rules that look at nothing else."""
    whole = Gradient("")
    whole._grad = items
    return whole


def _text(items: Items) -> Any:
    starts = [item for item in items if is_start(item)]
    if len(starts) == len(items):
        return started([item.data for item in starts])
    items = [item for item in items if not is_start(item)]
    return items[0].data if len(items) == 1 else _joined([item.data for item in items])


def _joined(parts: Sequence[Any]) -> Any:
    """Texts one below the other; with batches among them entry by entry, where a single text is about every entry."""
    said = [part for part in parts if part not in ("", [])]
    sizes = [len(part) for part in said if isinstance(part, list)]
    if not sizes:
        return "\n".join(map(str, said))
    columns = [part if isinstance(part, list) else [part] * sizes[0] for part in said]
    return [_joined(entries) for entries in zip(*columns, strict=True)]


def spread(said: Any, shape: Any) -> Any:
    """What is said about a batch, with a text for each entry: a single text is about all of them."""
    if not isinstance(shape, list) or (isinstance(said, list) and len(said) != len(shape)):
        return said
    return [spread(part, entry) for part, entry in zip(said if isinstance(said, list) else [said] * len(shape), shape)]


def as_items(gradient: Any, giver: str) -> Items:
    """The items of what a rule, a hook or a user gives as a gradient.

    Args:
        gradient: None, a text, a Variable, a `Gradient` (whose items are taken, unless its text was edited), or a list
            of these.
        giver: who gave it, for the message.

    Raises:
        TypeError: it is something else.
    """
    if gradient is None:
        return []
    if isinstance(gradient, Variable):
        if not isinstance(gradient, Gradient):
            return [gradient]
        return [gradient._alias(Variable)] if gradient._version else list(gradient.grad)
    if isinstance(gradient, str):
        return [Variable(gradient, role="feedback")]
    if isinstance(gradient, list | tuple):
        return [item for part in gradient for item in as_items(part, giver)]
    raise TypeError(
        f"{giver} gave {type(gradient).__name__} as a gradient: {gradient!r:.60}. Give a Variable, a text or None."
    )


class Intake:
    """Makes what a rule or a hook gave the items of a pass: each an object at one place, of this pass alone.

    So whoever gave it may give it again, and what is written on an item (`source`, an edit) is written on it alone.
    What had arrived is handed through as it is, the first time.

    Args:
        arrived: the items that the rule or the hook was shown.
    """

    __slots__ = ("_arrived", "_placed")

    def __init__(self, arrived: Sequence[Items]) -> None:
        self._arrived = {id(item) for items in arrived for item in items}
        self._placed: set[int] = set()

    def take(self, given: Items) -> Items:
        """The items for one place."""
        found = []
        for item in given:
            if id(item) not in self._arrived or id(item) in self._placed:
                found.append(entered(item))
            else:
                self._placed.add(id(item))
                found.append(item)
        return found

    def hands_through(self, item: Variable) -> bool:
        """Whether an item is one that had arrived."""
        return id(item) in self._arrived


def entered(item: Variable) -> Variable:
    """A Variable as an item of a pass: an object of its own, with its place in the graph where that is recorded."""
    return item._alias() if item._layer is not None or GRAD_ENABLED.get() else item._detached()


def inherited(items: Items) -> Source | None:
    """Where feedback came from that stands for these items; None where they do not say."""
    sources = [item.source for item in items if item.source is not None]
    if len(items) == 1 or not sources:
        return sources[0] if sources else None
    places = {() if item.source is None else item.source.places for item in items}
    case = all(source.case for source in sources)
    return replace(Source.joined(sources, "hook", items), places=places.pop() if len(places) == 1 else (), case=case)


def in_words(gradient: Any) -> bool:
    """Whether it is a text, or (nested) lists of nothing but texts."""
    return isinstance(gradient, str) or (isinstance(gradient, list | tuple) and all(map(in_words, gradient)))


def texts_for(data: Any, texts: Any, root: Variable) -> Any:
    """Feedback on a batch in its shape; one text for a row is about every entry of the row."""
    if isinstance(texts, str):
        return spread(texts, shape_of(data))
    if not isinstance(data, list) or len(texts) != len(data):
        given = f"a list of {len(texts)} texts was given: {texts!r:.60}"
        if isinstance(data, list):
            raise AutogradError(
                f"feedback on {label_of(root)}: it has a batch of {len(data)} entries where {given}. "
                'Give one text for each entry, "" where there is nothing to say, or one text for all.'
            )
        raise AutogradError(
            f"feedback on {label_of(root)}: it has a single value where {given}. Give one text, "
            "or for several pieces of feedback a list of Variables."
        )
    return [texts_for(entry, part, root) for entry, part in zip(data, texts)]
