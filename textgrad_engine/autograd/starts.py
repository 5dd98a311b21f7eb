"""What a backward pass begins with at each of its roots: feedback in words, or nothing where that is a loss."""

from __future__ import annotations

from typing import Any

from textgrad_engine.autograd.gradient import Items, as_items, entered, in_words, start, texts_for
from textgrad_engine.autograd.graph import FunctionNode, Node
from textgrad_engine.autograd.value import label_of
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.errors import AutogradError


def starting_items(root: Variable, call: str, gradient: Any = None) -> Items:
    """The gradient that a pass begins with at one root.

    Args:
        root: where it begins.
        call: who asks, for messages.
        gradient: the feedback on it in words (for a batch, a list with one text for each entry), or None for a loss.

    Raises:
        AutogradError: it is text and got no gradient; a batch got a list with more or fewer texts than entries, or one
            of as many Variables with a text each, which may be meant for all; or a single value got a list of texts.
        TypeError: it is a number, or nothing that feedback can be.
    """
    if gradient is None:
        _check_starts_by_itself(root)
        return [start()]
    if isinstance(gradient, list | tuple) and (gradient or isinstance(first_data(root), list)):
        data = first_data(root)
        if in_words(gradient):
            return [Variable(texts_for(data, gradient, root), role=f"feedback on the {root.role or 'batch'}")]
        if isinstance(data, list) and len(gradient) == len(data) > 1 and not any(map(_is_of_batch, gradient)):
            raise AutogradError(
                f"feedback on {label_of(root)}: a list of {len(data)} for a batch of {len(data)} entries may say one "
                f"thing to each entry, or {len(data)} things to every entry. Write Variable([…]), or a list of texts, "
                'for a text for each entry; ops.join([…], "\\n") for one text to every entry.'
            )
    if isinstance(gradient, str):
        return as_items(gradient, call)
    items = as_items(gradient, call)
    for item in items:
        if not isinstance(_sample(item), str | list):
            raise TypeError(
                f"{call} gave {label_of(item)} as a gradient, which is a number, and feedback is words. Several losses "
                "begin together in a list: tg.backward([first, second])"
            )
        if isinstance(item._data, list) and isinstance(data := first_data(root), list) and len(item._data) != len(data):
            texts_for(data, item._data, root)  # says so
    return [entered(item) for item in items]


def _is_of_batch(given: Any) -> bool:
    """Whether feedback on a batch has a text for each entry."""
    return isinstance(first_data(given) if isinstance(given, Variable) else given, list)


def _check_starts_by_itself(root: Variable) -> None:
    node = root._grad_fn
    if root._layer is not None and isinstance(root._inner, list):
        for entry in root._inner:
            _check_starts_by_itself(entry)
        return
    if _begins(node):
        return
    if isinstance(_sample(root), str):
        raise AutogradError(
            f"{label_of(root)} is text: a backward pass from it needs feedback to begin with. "
            'Pass it in words, v.backward("too long") or func.vjp(f, x)[1]("too long"), or compute a loss from it '
            "first (nn.ExactMatch, nn.Judge, …)."
        )


def begins_at(root: Variable) -> bool:
    """Whether a pass may begin at a value by itself, because evaluators made it, or all that it collects."""
    return _begins(root._grad_fn)


def _begins(node: Node | None) -> bool:
    """Whether a pass may begin at a node by itself."""
    todo, seen = [node], {node}
    while todo:
        node = todo.pop()
        if not isinstance(node, FunctionNode):
            return False
        if node.function.starts_backward:
            continue
        parts = {edge.node for edge in node.edges if edge is not None} if node.function.collects else set()
        if not parts:
            return False
        todo.extend(parts - seen)
        seen |= parts
    return True


def _sample(value: Variable) -> Any:
    """The value, or one entry of it where it is a batch."""
    data = first_data(value)
    while isinstance(data, list) and data:
        data = data[0]
    return data


def first_data(value: Variable) -> Any:
    """The data below all transforms; of a value inside `vmap` that of the first example."""
    return value._lowest().data
