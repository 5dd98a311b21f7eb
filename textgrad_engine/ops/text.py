"""Plain operations on text and numbers: add, sum, join, split, format. They call no model.

The role of a result is made of the roles of its inputs, each once, in order, joined by "and"; inputs without a role do
not count. Feedback on a result goes to each of its inputs as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from textgrad_engine import pytree, templates
from textgrad_engine.autograd import Function, Variable
from textgrad_engine.ops.sizes import note_size, size_of

__all__ = ["Add", "Compute", "add", "edit_of_parts", "format", "join", "joined_role", "share_of_edit", "split", "sum"]

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


def edit_of_parts(parts: Sequence[tuple[str, Any, Variable | None]]) -> Variable | None:
    """The edit of a whole that follows from edits of its parts: it names the parts; entry by entry for batches.

    Args:
        parts: for each part where it stands in the whole, its value, and its edit (None where it stays).

    Returns:
        One described edit, empty where the edits of all parts are; None where no part has one.
    """
    edited = [(place, value, edit) for place, value, edit in parts if edit is not None]
    if not edited:
        return None
    places = [(place, value.detach() if isinstance(value, Variable) else None) for place, value, _ in edited]
    unnamed = [value for _, value in places if value is not None and value._role is None]  # known when they are there
    edits = [edit for _, _, edit in edited]
    result: Variable = Compute.apply(
        lambda data: _in_places([_named(place, value) for place, value in places], data[0]), [edits, unnamed], "edit"
    )
    return result


def _named(place: str, value: Variable | None) -> str:
    return f"{place} (the {value.role})" if value is not None and value.role else place


def _in_places(places: list[str], edits: list[Any]) -> Any:
    sizes = [len(edit) for edit in edits if isinstance(edit, list)]
    if sizes:
        by_entry = [[edit[n] if isinstance(edit, list) else edit for edit in edits] for n in range(sizes[0])]
        return [_in_places(places, entry) for entry in by_entry]
    return "\n".join(f"In {place}: {edit}" for place, edit in zip(places, edits) if edit)


def share_of_edit(edit: Variable, part: str) -> Variable:
    """The edit of one part of a whole that is edited: what of the edit falls on it."""
    words = f"What falls on {part} of this edit of the whole: "
    result: Variable = Compute.apply(lambda text: _share(words, text), edit, "edit")
    return result


def _share(words: str, text: Any) -> Any:
    if isinstance(text, list):
        return [_share(words, entry) for entry in text]
    return words + text if text else ""


def _numbered(values: Sequence[Any], edits: Sequence[Variable | None] | None) -> list[tuple[str, Any, Variable | None]]:
    given = edits or [None] * len(values)
    return [(f"part {n} of {len(values)}", value, edit) for n, (value, edit) in enumerate(zip(values, given), 1)]


class _PassOn(Function):
    """Base of the plain operations: what is said about the result is said to every input that wants to hear it."""

    deferrable = True

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Remember the arguments; only their shapes matter."""
        ctx.inputs = inputs

    @staticmethod
    def output_role(*args: Any) -> str:
        """The role of the result."""
        return joined_role(*args)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        """Pass the feedback on."""

        def hears(leaf: Any) -> Variable | None:
            return grad_out if isinstance(leaf, Variable) else None

        return tuple(
            [
                pytree.map_leaves(hears, value) if needed else None
                for needed, value in zip(ctx.needs_input_grad, ctx.inputs)
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

    @staticmethod
    def jvp(ctx: Any, *tangents: Variable | None) -> Variable | None:
        """The edit of a part is an edit of the whole; a copy is edited as its original."""
        return tangents[0] if ctx.primals[1] is None else edit_of_parts(_numbered(ctx.primals, tangents))


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
    return _add_rule(a, b)


def _add_rule(a: Value, b: Value | None) -> Variable:
    result: Variable = Add.apply(a, b)
    if result._call is not None:  # what is added to a batch that is still computed is a batch, too
        note_size(result, next((size for size in map(size_of, (a, b)) if size is not None), None))
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

    @staticmethod
    def jvp(ctx: Any, edits: list[Variable | None]) -> Variable | None:
        return edit_of_parts(_numbered(ctx.primals[0], edits))


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

    @staticmethod
    def jvp(ctx: Any, edits: list[Variable | None] | None, separator: Variable | None) -> Variable | None:
        values, between = ctx.primals
        return edit_of_parts([*_numbered(values, edits), ("each separator", between, separator)])


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

    @staticmethod
    def jvp(ctx: Any, edit: Variable, *_: None) -> Any:
        if ctx.count == 1:
            return (edit,)
        return tuple([share_of_edit(edit, f"part {number} of {ctx.count}") for number in range(1, ctx.count + 1)])


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

    @staticmethod
    def jvp(ctx: Any, template: Variable | None, edits: dict[str, Variable | None] | None) -> Variable | None:
        text, slots = ctx.primals
        in_slots = [(f"{{{name}}}", slots[name], edit) for name, edit in (edits or {}).items()]
        return edit_of_parts([("the template", text, template), *in_slots])


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

    `function` gets `values` with each Variable replaced by its data; it gives a text, or a list of them for a batch.
    """

    @staticmethod
    def forward(function: Callable[[Any], Any], values: Any, role: str) -> Variable:
        """Call the function."""
        return Variable(function(pytree.map_leaves(_data, values)), role=role)

    @staticmethod
    def output_role(function: Any, values: Any, role: str) -> str:
        """The role that was given."""
        return role

    @staticmethod
    def jvp(ctx: Any, function: None, edits: Any, role: None) -> Variable | None:
        """An edit of a value is an edit of the text made from it; with a single value it passes as it is."""
        values = ctx.primals[1]
        if isinstance(values, Variable):
            passed: Variable = edits
            return passed
        pairs = zip(_places(values), pytree.leaves(edits))
        return edit_of_parts([(place, value, edit) for (place, value), edit in pairs])


def _places(values: Any, path: str = "") -> list[tuple[str, Any]]:
    """Where each leaf of nested values stands, and the leaf."""
    if not pytree.is_container(values):
        return [(path, values)]
    pairs = values.items() if isinstance(values, dict) else enumerate(values, 1)
    return [leaf for key, value in pairs for leaf in _places(value, f"{path}.{key}" if path else _first(key))]


def _first(key: Any) -> str:
    return key if isinstance(key, str) else f"part {key}"


Variable.add_rule = staticmethod(_add_rule)
