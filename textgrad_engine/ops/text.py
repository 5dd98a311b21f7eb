"""Plain operations on text and numbers: add, sum, join, split, format. They call no model.

The role of a result is made of the roles of its inputs, each once, in order, joined by "and"; inputs without a role do
not count. Feedback on a result goes to each of its inputs as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from textgrad_engine import pytree, templates
from textgrad_engine.autograd import Function, Variable

__all__ = ["Add", "Compute", "add", "format", "join", "joined_role", "split", "sum"]

Value: TypeAlias = Variable | str | int | float


def joined_role(*values: Any) -> str:
    """The role of a result: the roles of the variables among `values`, each once.

    Example:
        >>> joined_role(Variable("a", role="question"), "b", [Variable("c", role="answer")])
        'question and answer'
    """
    leaves = [leaf for leaf in pytree.leaves(values) if isinstance(leaf, Variable)]
    return " and ".join(dict.fromkeys(leaf.role for leaf in leaves if leaf.role))


def _data(value: Any) -> Any:
    return value.data if isinstance(value, Variable) else value


class _PassOn(Function):
    """Base of the plain operations: what is said about the result is said to every input that wants to hear it."""

    deferrable = True

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Remember the shapes of the arguments."""
        ctx.specs = [pytree.flatten(value) for value in inputs]

    @staticmethod
    def output_role(*args: Any) -> str:
        """The role of the result."""
        return joined_role(*args)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        """Pass the feedback on."""
        return tuple(
            [
                pytree.unflatten(spec, [grad_out if isinstance(leaf, Variable) else None for leaf in leaves])
                if needed
                else None
                for needed, (leaves, spec) in zip(ctx.needs_input_grad, ctx.specs)
            ]
        )


class Add(Function):
    """``a + b`` of texts or numbers; a batch is added entry by entry, and one value to every entry of a batch."""

    deferrable = True

    @staticmethod
    def forward(a: Value, b: Value | None) -> Variable:
        """Add, or copy when there is only one."""
        if b is None:
            return Variable(_data(a), role=joined_role(a))
        return Variable(_plus(_data(a), _data(b)), role=joined_role(a, b))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Nothing is needed but the two places."""

    @staticmethod
    def output_role(a: Value, b: Value | None) -> str:
        """The role of the result."""
        return joined_role(a, b)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        """Pass the feedback on."""
        a, b = ctx.needs_input_grad
        return grad_out if a else None, grad_out if b else None


def _plus(a: Any, b: Any) -> Any:
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            raise ValueError(f"add: batches of {len(a)} and {len(b)} entries do not fit together")
        return [_plus(x, y) for x, y in zip(a, b)]
    if isinstance(a, list):
        return [_plus(x, b) for x in a]
    if isinstance(b, list):
        return [_plus(a, y) for y in b]
    if isinstance(a, str) != isinstance(b, str):
        raise TypeError(f"add: text and number do not add up ({a!r:.40} + {b!r:.40}); make both text with str()")
    return a + b


def add(a: Value, b: Value) -> Variable:
    """The sum of two numbers, or two texts one after the other.

    Example:
        >>> add(Variable("Be brief."), " Thanks.").data
        'Be brief. Thanks.'
    """
    result: Variable = Add.apply(a, b)
    return result


def _add_rule(a: Value, b: Value | None) -> Variable:
    result: Variable = Add.apply(a, b)
    return result


class _Sum(_PassOn):
    @staticmethod
    def forward(values: list[Value]) -> Variable:
        data = [_data(value) for value in values]
        if any(isinstance(item, str) for item in data):
            return Variable("\n".join(str(item) for item in data), role=joined_role(values))
        total: Any = 0
        for item in data:
            total = _plus(total, item)
        return Variable(total, role=joined_role(values))


def sum(values: Sequence[Value]) -> Variable:  # noqa: A001  PyTorch's name
    """All numbers added up, e.g. the losses of a batch; texts are put one below the other.

    Example:
        >>> sum([Variable(1.0), Variable(0.0), 1]).data
        2.0
    """
    result: Variable = _Sum.apply(list(values))
    return result


class _Join(_PassOn):
    @staticmethod
    def forward(values: list[Value], separator: Value) -> Variable:
        text = str(_data(separator)).join(str(_data(value)) for value in values)
        return Variable(text, role=joined_role(values))

    @staticmethod
    def output_role(values: list[Value], separator: Value) -> str:
        """The separator has no say in the role."""
        return joined_role(values)


def join(values: Sequence[Value], separator: Value = "") -> Variable:
    """The texts of `values` with `separator` in between.

    Example:
        >>> join([Variable("a"), "b"], ", ").data
        'a, b'
    """
    result: Variable = _Join.apply(list(values), separator)
    return result


class _Split(Function):
    @staticmethod
    def forward(text: Variable, separator: str | None, maxsplit: int) -> Any:
        parts = str(text.data).split(separator, maxsplit)
        return tuple([Variable(part, role=f"part {n} of {text.role}") for n, part in enumerate(parts, 1)])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.count = len(output)

    @staticmethod
    def backward(ctx: Any, *grad_outs: Variable) -> Any:
        if ctx.count == 1:
            return list(grad_outs[0].grad), None, None
        items = []
        for number, grad_out in enumerate(grad_outs, 1):
            for item in grad_out.grad:
                about = add(f"On part {number} of {ctx.count}: ", item)
                about.role, about.source = item.role, item.source
                items.append(about)
        return items, None, None


def split(value: Variable, separator: str | None = None, maxsplit: int = -1) -> list[Variable]:
    """The pieces of a text, as `str.split` makes them; waits for the text, since their number depends on it.

    Example:
        >>> [part.data for part in split(Variable("a, b"), ", ")]
        ['a', 'b']
    """
    return list(_Split.apply(value, separator, maxsplit))


class _Format(_PassOn):
    @staticmethod
    def forward(template: Value, slots: dict[str, Value]) -> Variable:
        values = {name: str(_data(value)) for name, value in slots.items()}
        text = str(_data(template))
        if missing := [name for name in values if name not in templates.slots_of(text)]:
            raise ValueError(f"format: the template has no {{{missing[0]}}}; it has {list(templates.slots_of(text))}")
        return Variable(templates.fill(text, values), role=joined_role(template, slots))


def format(template: Value, **slots: Value) -> Variable:  # noqa: A001  str's name
    """The template with each ``{slot}`` replaced; values are never scanned again, other braces stay as they are.

    Raises:
        ValueError: the template lacks a slot that a value was given for.

    Example:
        >>> format('Sort {x} as {"json": 1}', x=Variable("{x}")).data
        'Sort {x} as {"json": 1}'
    """
    result: Variable = _Format.apply(template, dict(slots))
    return result


class Compute(_PassOn):
    """Text made from other values by a quick, pure function: `Compute.apply(function, values, role)`.

    `function` gets `values` with each Variable replaced by its data.
    """

    @staticmethod
    def forward(function: Callable[[Any], str], values: Any, role: str) -> Variable:
        """Call the function."""
        return Variable(function(pytree.map_leaves(_data, values)), role=role)

    @staticmethod
    def output_role(function: Any, values: Any, role: str) -> str:
        """The role that was given."""
        return role


Variable.add_rule = staticmethod(_add_rule)
