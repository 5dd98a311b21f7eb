"""Plain operations on text and numbers: add, sum, scale, join, split, format. They call no model.

The role of a result is made of the roles of its inputs, each once, in order, joined by "and"; inputs without a role do
not count. Feedback on a result goes to each of its inputs; what is made of several Variables is said to each with the
place that it has in it. See NOTE [Parts] and NOTE [Batches] in ``entrywise.py``.
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from textgrad_engine import fences
from textgrad_engine.autograd import Function, Variable
from textgrad_engine.autograd.operators import Operators
from textgrad_engine.ops.entrywise import Entrywise, by_entry, sized
from textgrad_engine.ops.fillers import note_template
from textgrad_engine.ops.operands import check_operands, listed, numbered, places_of
from textgrad_engine.ops.parts import place_in_words, told_of_place
from textgrad_engine.ops.pass_on import data_of, edit_of_parts, joined_role, share_of_edit
from textgrad_engine.plain_values import is_number, is_whole
from textgrad_engine.slots import by_composed_name, fill, slots_of
from textgrad_engine.wording import told

Value: TypeAlias = Variable | str | int | float


class Add(Entrywise):
    """``a + b`` of texts or numbers; a batch is added entry by entry, and one value to every entry of a batch."""

    collects = adds_up = True

    @staticmethod
    def forward(a: Value, b: Value | None) -> Variable:
        """Add, or copy when there is only one."""
        if b is None:
            return Variable(data_of(a), role=joined_role(a))
        return Variable(_plus(data_of(a), data_of(b)), role=joined_role(a, b))

    @staticmethod
    def places(a: Any, b: Any) -> tuple[Any, ...]:
        """The first and the second; a copy has no parts."""
        return (None, None) if b is None else tuple(places_of(2))

    @staticmethod
    def jvp(ctx: Any, *tangents: Variable | None) -> Variable | None:
        """The edit of a part is an edit of the whole; a copy is edited as its original."""
        return tangents[0] if ctx.primals[1] is None else edit_of_parts(numbered(ctx.primals, tangents))


def _plus(a: Any, b: Any) -> Any:
    if type(a) is list or type(b) is list:
        return by_entry("add", lambda pair: _plus(*pair), [a, b])
    if isinstance(a, str) != isinstance(b, str):
        raise TypeError(
            f"add: text and number do not add up ({a!r:.40} + {b!r:.40}); ops.join([a, b]) makes one text of both. "
            "Python's sum() begins with 0: add texts and losses with ops.sum([…]), or go backward from all of "
            "the losses with tg.backward([loss, …])"
        )
    return a + b


def add(a: Value, b: Value) -> Variable:
    """The sum of two numbers, or two texts one after the other.

    Raises:
        TypeError: one of them is neither a text nor a number, nor a batch of these; or one is a text, one a number.
        ValueError: they are batches that differ in size.

    Example:
        >>> add(Variable("Be brief."), " Thanks.").data
        'Be brief. Thanks.'
    """
    check_operands("add", (a, b))
    return sized(Add.apply(a, b), (a, b))


def _copy(value: Variable) -> Variable:
    return sized(Add.apply(value, None), (value,))


class _Sum(Entrywise):
    collects = adds_up = True

    @staticmethod
    def forward(values: list[Value]) -> Variable:
        return Variable(by_entry("sum", _total, [data_of(value) for value in values]), role=joined_role(values))

    @staticmethod
    def places(values: list[Any]) -> tuple[Any, ...]:
        return (places_of(len(values)),)

    @staticmethod
    def jvp(ctx: Any, edits: list[Variable | None]) -> Variable | None:
        return edit_of_parts(numbered(ctx.primals[0], edits))


def _total(values: list[Any]) -> Any:
    if any(isinstance(value, str) for value in values):
        return "\n".join(map(fences.as_text, values))
    total: Any = 0
    for value in values:
        total = total + value
    return total


def sum(values: Sequence[Value]) -> Variable:  # noqa: A001  PyTorch's name
    """All numbers added up, e.g. the losses of a batch; texts are put one below the other. Batches: entry by entry.

    A backward pass begins by itself at a sum of losses, also of losses that are texts (`nn.TextLoss`).

    Raises:
        TypeError: `values` is no list, or something in it is neither a text nor a number, nor a batch of these.
        ValueError: batches differ in size.

    Example:
        >>> sum([Variable(1.0), Variable(0.0), 1]).data
        2.0
    """
    values = listed("sum", values)
    return sized(_Sum.apply(values), values)


class Scale(Entrywise):
    """A number times a factor; of a batch each entry."""

    collects = adds_up = True

    @staticmethod
    def forward(value: Value, factor: float) -> Variable:
        """Multiply."""
        return Variable(
            by_entry("scale", lambda one: _scaled(one[0], factor), [data_of(value)]), role=joined_role(value)
        )

    @staticmethod
    def output_role(value: Value, factor: float) -> str:
        """That of the value."""
        return joined_role(value)

    @staticmethod
    def places(value: Any, factor: Any) -> tuple[Any, ...]:
        """There is one part, which is the whole."""
        return None, None

    @staticmethod
    def jvp(ctx: Any, edit: Variable | None, factor: None) -> Variable | None:
        """The edit as it is: what changes the value changes this."""
        return edit


def _scaled(value: Any, factor: float) -> float:
    if isinstance(value, str):
        raise TypeError(f"scale: a number is scaled, and this is the text {value!r:.40}")
    return float(value * factor)


def scale(value: Variable, factor: float) -> Variable:
    """A score times a factor, also ``0.7 * score``: several scores become one by their weights.

    Feedback on the result is passed on unchanged, whatever the factor; a satisfied score sends none.

    Args:
        value: a number, or a batch of them.
        factor: above 0, as feedback asks for more of a score, and words cannot be turned round.

    Raises:
        TypeError: the factor is no number, or the value is a text.
        ValueError: the factor is not above 0.

    Example:
        >>> right, brief = Variable(1.0, role="right"), Variable(0.5, role="brief")
        >>> loss = 0.75 * right + brief / 4
        >>> loss.data, loss.role
        (0.875, 'right and brief')
    """
    scaled: object = value
    if not isinstance(scaled, Variable | str) and not is_number(scaled):
        raise TypeError(f"scale: value must be a number or a Variable, got {told(scaled)}")
    given: object = factor
    if isinstance(given, bool) or not isinstance(given, numbers.Real):
        kind = "a Variable" if isinstance(given, Variable) else f"{type(given).__name__} {given!r:.40}"
        raise TypeError(f"scale: the factor is a number that you choose, such as 0.5; got {kind}")
    try:
        factor = float(factor)
    except OverflowError:
        factor = float("inf")
    if factor == float("inf"):
        raise ValueError("scale: the factor is larger than any number that a score can be; give one such as 0.5")
    if not factor > 0:
        raise ValueError(
            f"scale: the factor must be above 0, got {factor:g}; feedback asks for a higher score, and cannot be "
            "turned round: let the loss itself give more for what is wanted"
        )
    return sized(Scale.apply(value, factor), (value,))


class _Join(Entrywise):
    @staticmethod
    def forward(values: list[Value], separator: Value) -> Variable:
        data = [data_of(separator), *[data_of(value) for value in values]]
        return Variable(by_entry("join", _joined, data), role=joined_role(values))

    @staticmethod
    def output_role(values: list[Value], separator: Value) -> str:
        """The separator has no say in the role."""
        return joined_role(values)

    @staticmethod
    def places(values: list[Any], separator: Any) -> tuple[Any, ...]:
        """The numbers of the parts."""
        return places_of(len(values)), _SEPARATOR

    @staticmethod
    def jvp(ctx: Any, edits: list[Variable | None] | None, separator: Variable | None) -> Variable | None:
        values, between = ctx.primals
        return edit_of_parts([*numbered(values, edits), (_SEPARATOR, between, separator)])


_SEPARATOR = "each separator"


def _joined(texts: list[Any]) -> str:
    separator, *parts = map(fences.as_text, texts)
    return separator.join(parts)


def join(values: Sequence[Value], sep: Value = "") -> Variable:
    """The texts of `values` with `sep` in between; with batches among them, entry by entry.

    Raises:
        TypeError: `values` is no list (a text is none), or something in it is neither a text nor a number, nor a batch
            of these.
        ValueError: batches differ in size.

    Example:
        >>> join([Variable("a"), "b"], ", ").data
        'a, b'
        >>> join([Variable(["a", "b"]), "c"], "-").data
        ['a-c', 'b-c']
    """
    values = listed("join", values)
    check_operands("join", (sep,))
    return sized(_Join.apply(values, sep), [*values, sep])


class _Split(Function):
    @staticmethod
    def forward(text: Variable, separator: str | None, maxsplit: int) -> Any:
        data = data_of(text)
        if isinstance(data, list):
            raise TypeError(
                f"split: got a batch of {len(data)} entries, each of which may have another number of pieces. Split "
                "the entries one by one, or inside func.vmap where all have as many."
            )
        parts = str(data).split(separator, maxsplit)
        return tuple([Variable(part, role=f"part {n} of {text.role or 'a text'}") for n, part in enumerate(parts, 1)])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.count = len(output)

    @staticmethod
    def backward(ctx: Any, *grad_outs: Variable) -> Any:
        if ctx.count == 1:
            return list(grad_outs[0].grad), None, None
        items = []
        for number, grad_out in enumerate(grad_outs, 1):
            place = f"part {number} of {ctx.count}"
            for item in grad_out.grad:
                about = add(f"{told_of_place('on_part', place)}{place_in_words(item)}", item)
                about.role = item.role
                about.source = item.source and replace(item.source, places=())
                items.append(about)
        return items, None, None

    @staticmethod
    def jvp(ctx: Any, edit: Variable, *_: None) -> Any:
        if ctx.count == 1:
            return (edit,)
        return tuple([share_of_edit(edit, f"part {number} of {ctx.count}") for number in range(1, ctx.count + 1)])


def split(value: Variable | str, sep: str | None = None, maxsplit: int = -1) -> list[Variable]:
    """The pieces of a text, as `str.split` makes them; waits for the text, since their number depends on it.

    Raises:
        TypeError: the value is a batch, or no text; the separator is no text, or maxsplit no whole number.
        ValueError: the separator is empty.

    Example:
        >>> [part.data for part in split(Variable("a, b"), ", ")]
        ['a', 'b']
    """
    _check_split(value, sep, maxsplit)
    return list(_Split.apply(Variable(value) if isinstance(value, str) else value, sep, operator.index(maxsplit)))


def _check_split(value: object, sep: object, maxsplit: object) -> None:
    if not isinstance(value, Variable | str):
        raise TypeError(f"split: takes a text or a Variable, got {type(value).__name__} {value!r:.40}")
    if sep is not None and not isinstance(sep, str):
        own = "; of a Variable take its .data" if isinstance(sep, Variable) else ""
        raise TypeError(
            f"split: a separator is a text, or None for any white space, got {type(sep).__name__} {sep!r:.40}{own}"
        )
    if sep == "":
        raise ValueError("split: the separator is empty; None splits at white space")
    if not is_whole(maxsplit):
        raise TypeError(
            f"split: maxsplit is a whole number, -1 for all pieces, got {type(maxsplit).__name__} {maxsplit!r:.40}"
        )


class _Format(Entrywise):
    @staticmethod
    def forward(template: Value, slots: dict[str, Value]) -> Variable:
        data = [data_of(template), *[data_of(value) for value in slots.values()]]
        filled = by_entry("format", lambda texts: _filled(texts[0], dict(zip(slots, texts[1:]))), data)
        return Variable(filled, role=joined_role(template, slots))

    @staticmethod
    def places(template: Any, slots: dict[str, Any]) -> tuple[Any, ...]:
        """The slots."""
        return None, {name: f"{{{name}}}" for name in slots}

    @staticmethod
    def jvp(ctx: Any, template: Variable | None, edits: dict[str, Variable | None] | None) -> Variable | None:
        text, slots = ctx.primals
        _, places = _Format.places(text, slots)
        in_slots = [(places[name], slots[name], edit) for name, edit in (edits or {}).items()]
        return edit_of_parts([("the template", text, template), *in_slots])


def _filled(template: Any, slots: dict[str, Any]) -> str:
    text = fences.as_text(template)
    if missing := [name for name in slots if name not in slots_of(text)]:
        raise ValueError(f"format: the template has no {{{missing[0]}}}; it has {list(slots_of(text))}")
    return fill(text, {name: fences.as_text(value) for name, value in slots.items()})


def format(template: Value, /, **slots: Value) -> Variable:  # noqa: A001  str's name
    """The template with each ``{slot}`` replaced; values are never scanned again, other braces stay as they are.

    With batches among the template and the values, entry by entry.

    Raises:
        TypeError: the template or a value is neither a text nor a number, nor a batch of these.
        ValueError: the template lacks a slot that a value was given for, or batches differ in size.

    Example:
        >>> format('Sort {x} as {"json": 1}', x=Variable("{x}")).data
        'Sort {x} as {"json": 1}'
    """
    check_operands("format", (template,))
    for name, value in slots.items():
        check_operands("format", (value,), f"for {{{name}}}")
    note_template(template)
    return sized(_Format.apply(template, by_composed_name(slots)), [template, *slots.values()])


Operators.add_rule = staticmethod(add)
Operators.copy_rule = staticmethod(_copy)
Operators.scale_rule = staticmethod(scale)
