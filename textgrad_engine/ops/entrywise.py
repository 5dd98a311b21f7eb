"""Plain operations on batches, entry by entry.

NOTE [Batches]
    A batch goes through an operation entry by entry, and a single value goes together with every entry, as a number
    does with every entry of a tensor. Feedback on the result is then a list with a text for each entry: a batch hears
    it as it is, a single value hears what is said about each entry, in order, one after the other.

NOTE [Parts]
    What is said of a text that was made of several Variables goes on to each of them with the place that it has in that
    text (`source.places`): "the second answer is wrong" is no feedback on the first one. Where all else are literals,
    and where numbers are added up, there is no place to tell. Nor is there for the template of a format: it is no part
    of the outcome, and what is said of that is said of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textgrad_engine import pytree
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.gradient import Items
from textgrad_engine.ops.batching import batch_of_feedback, parts_of_items
from textgrad_engine.ops.parts import said_to_part
from textgrad_engine.ops.pass_on import PassOn
from textgrad_engine.ops.sizes import note_size, size_of


def by_entry(operation: str, function: Callable[[list[Any]], Any], values: list[Any]) -> Any:
    """Apply a function to values; entry by entry where some are batches, see NOTE [Batches].

    Args:
        operation: its name, for the message.
        function: gets one entry of each.
        values: data: texts, numbers, lists.

    Raises:
        ValueError: two batches differ in size.
    """
    sizes = list(dict.fromkeys([len(value) for value in values if type(value) is list]))
    if not sizes:
        return function(values)
    if len(sizes) > 1:
        raise ValueError(f"{operation}: batches of {sizes[0]} and {sizes[1]} entries do not fit together")
    return [
        by_entry(operation, function, [value[n] if type(value) is list else value for value in values])
        for n in range(sizes[0])
    ]


def sized(result: Variable, values: Sequence[Any]) -> Variable:
    """A result, known to be a batch while it is still computed, where a value that it is made of is one."""
    if result._call is not None:
        note_size(result, next((size for size in map(size_of, values) if size is not None), None))
    return result


class Entrywise(PassOn):
    """Base of the plain operations that take batches; see NOTE [Batches] and NOTE [Parts].

    Attributes:
        adds_up: of numbers it makes a number, in which none has a place.
    """

    adds_up: ClassVar[bool] = False

    @staticmethod
    def places(*args: Any) -> tuple[Any, ...]:
        """Where each Variable among the arguments stands in the result, in the shape of the arguments.

        None for one that hears feedback on the result as it is.
        """
        raise NotImplementedError

    @classmethod
    def setup_context(cls, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Remember where the Variables are, and which of them are batches; what they hold is not kept."""
        ctx.shapes = tuple([pytree.map_leaves(_shape_of, value) for value in inputs])
        ctx.places, ctx.adds_up = cls.places, cls.adds_up

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        """Pass the feedback on."""
        shapes = pytree.map_leaves(_known, ctx.shapes)
        whole = max(pytree.leaves(shapes), key=_depth)

        variables = [shape for shape in pytree.leaves(shapes) if shape is not None]
        of_parts = len(variables) > 1 and (not ctx.adds_up or any(_is_text(shape) for shape in variables))

        def hears(shape: _Shape | None, place: str | None) -> Any:
            if shape is None:
                return None
            if _depth(shape) == _depth(whole):
                return grad_out if place is None else said_to_part(grad_out.grad, place)
            items = _heard(list(grad_out.grad), shape, whole)
            return items if place is None else said_to_part(items, place)

        found: list[Any] = []
        for needed, value, place in zip(ctx.needs_input_grad, shapes, ctx.places(*shapes)):
            if not needed:
                found.append(None)
            elif isinstance(value, dict):
                found.append({name: hears(shape, place[name] if of_parts else None) for name, shape in value.items()})
            elif isinstance(value, list):
                found.append([hears(*pair) for pair in zip(value, place if of_parts else [None] * len(value))])
            else:
                found.append(hears(value, place if of_parts else None))
        return tuple(found)


class _Shape:
    """The shape of a value: that of each entry of a batch, nothing for a single value."""

    __slots__ = ("entries",)

    def __init__(self, data: Any) -> None:
        self.entries = [_Shape(entry) if type(entry) is list else _single(entry) for entry in data]


_TEXT, _NUMBER = _Shape(()), _Shape(())


def _single(data: Any) -> _Shape:
    return _TEXT if isinstance(data, str) else _NUMBER


def _is_single(shape: _Shape | None) -> bool:
    return shape is _TEXT or shape is _NUMBER


def _is_text(shape: _Shape) -> bool:
    return shape is _TEXT or any(map(_is_text, shape.entries))


def _shape_of(value: Any) -> _Shape | Variable | None:
    """The shape of a Variable; the Variable itself while there is no value yet, None for anything else."""
    if not isinstance(value, Variable):
        return None
    call = value._call
    if call is not None and (not call.done or call.failed):
        return value
    data = value.data
    return _Shape(data) if type(data) is list else _single(data)


def _known(shape: _Shape | Variable | None) -> _Shape | None:
    known = _shape_of(shape) if isinstance(shape, Variable) else shape
    assert not isinstance(known, Variable)  # a rule runs when what its call was made from is there
    return known


def _depth(shape: _Shape | None) -> int:
    if shape is None or _is_single(shape):
        return 0
    return 1 + max(map(_depth, shape.entries), default=0)


def _heard(items: Items, shape: _Shape, whole: _Shape) -> Items:
    """What a value of one shape hears of feedback on a result of another; see NOTE [Batches]."""
    if _is_single(whole):
        return items
    parts = parts_of_items(items, len(whole.entries))
    if _is_single(shape):
        return [item for part, inner in zip(parts, whole.entries) for item in _heard(part, shape, inner)]
    pairs = zip(parts, shape.entries, whole.entries)
    return batch_of_feedback([_heard(part, own, inner) for part, own, inner in pairs])
