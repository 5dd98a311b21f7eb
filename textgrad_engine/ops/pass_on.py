"""What plain operations have in common: what is said about a result is said to everything that it was made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textgrad_engine import pytree
from textgrad_engine.autograd import Function, Variable
from textgrad_engine.ops.parts import told_of_place

_AND = " and "


def data_of(value: Any) -> Any:
    """The data of a Variable; anything else as it is."""
    return value.data if isinstance(value, Variable) else value


def joined_role(*values: Any) -> str:
    """The role of a result: the roles of the variables among `values`, each once, also those of earlier results.

    So a text that is added to in turns keeps a short role.

    Example:
        >>> both = joined_role(Variable("a", role="question"), "b", [Variable("c", role="answer")])
        >>> both, joined_role(Variable("ac", role=both), Variable("d", role="question"))
        ('question and answer', 'question and answer')
    """
    roles = dict.fromkeys([leaf.role for leaf in pytree.leaves(values) if isinstance(leaf, Variable)])
    roles.pop("", None)
    if len(roles) < 2:
        return next(iter(roles), "")
    return _AND.join(dict.fromkeys([part for role in roles for part in role.split(_AND)]))


def detached(value: Any) -> Any:
    """A Variable as it is now, without its graph, which would be kept with it; anything else as it is."""
    return value.detach() if isinstance(value, Variable) else value


class PassOn(Function):
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


class Compute(PassOn):
    """Text made from other values by a quick, pure function: `Compute.apply(function, values, role)`.

    `function` gets `values` with each Variable replaced by its data; it gives a text, or a list of them for a batch.
    """

    @staticmethod
    def forward(function: Callable[[Any], Any], values: Any, role: str) -> Variable:
        """Call the function."""
        return Variable(function(pytree.map_leaves(data_of, values)), role=role)

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
    edits: dict[str, Any] = {}  # for an edit of them, too, these are the places
    for place, _, edit in edited:
        while not place or place in edits:  # as of {"a.b": …, "a": {"b": …}}
            place += " "
        edits[place] = edit
    result: Variable = Compute.apply(
        lambda data: _in_places([_named(*each) for each in places], [data[place] for place in edits]),
        {**edits, "": unnamed},
        "edit",
    )
    return result


def _named(place: str, value: Variable | None) -> str:
    return f"{place} (the {value.role})" if value is not None and value.role else place


def _in_places(places: list[str], edits: list[Any]) -> Any:
    sizes = [len(edit) for edit in edits if isinstance(edit, list)]
    if sizes:
        by_entry = [[edit[n] if isinstance(edit, list) else edit for edit in edits] for n in range(sizes[0])]
        return [_in_places(places, entry) for entry in by_entry]
    return "\n".join(f"{told_of_place('edit_of_part', place)}{edit}" for place, edit in zip(places, edits) if edit)


def share_of_edit(edit: Variable, part: str) -> Variable:
    """The edit of one part of a whole that is edited: what of the edit falls on it."""
    words = told_of_place("share_of_edit", part)
    result: Variable = Compute.apply(lambda text: _share(words, text), edit, "edit")
    return result


def _share(words: str, text: Any) -> Any:
    if isinstance(text, list):
        return [_share(words, entry) for entry in text]
    return words + text if text else ""
