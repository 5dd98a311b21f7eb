"""Variables among the arguments of a call, and the gradients that belong to them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import AsyncIterator, Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, TypeVar

from textgrad_engine import pytree
from textgrad_engine.autograd.variable import Variable
from textgrad_engine.errors import AutogradError
from textgrad_engine.wording import a_class

if TYPE_CHECKING:
    from textgrad_engine.autograd.graph import FunctionNode

_Flat = TypeVar("_Flat", bound=tuple[Any, ...])


def layout_of(args: tuple[Any, ...]) -> tuple[list[Variable], tuple[Any, ...]]:
    """The variables among the arguments, and for each argument where they stand.

    An entry of the layout is None (no variable), an index (the argument is one), or a pair of a tree's shape and the
    index or None of each of its leaves.

    Raises:
        TypeError: a variable stands inside something that is not taken apart.
    """
    inputs: list[Variable] = []
    layout: list[Any] = []
    flat = True
    for value in args:
        if type(value) in _PLAIN:
            layout.append(None)
        elif isinstance(value, Variable):
            layout.append(len(inputs))
            inputs.append(value)
        elif pytree.is_container(value):
            flat = False
            leaves, spec = pytree.flatten(value)
            where: list[int | None] = []
            for leaf in leaves:
                if isinstance(leaf, Variable):
                    where.append(len(inputs))
                    inputs.append(leaf)
                else:
                    where.append(None)
                    _refuse_hidden(leaf, len(layout))
            layout.append((spec, where))
        else:
            layout.append(None)
            _refuse_hidden(value, len(layout) - 1)
    return inputs, one_of(_LAYOUTS, tuple(layout)) if flat else tuple(layout)


def one_of(known: dict[_Flat, _Flat], values: _Flat) -> _Flat:
    """The tuple that equals this one: of a graph of many calls the collector has then less to look at."""
    found = known.get(values)
    if found is None:
        found = values
        if len(known) < 4096 and len(values) < 16:
            known[values] = values
    return found


_LAYOUTS: dict[tuple[int | None, ...], tuple[int | None, ...]] = {}
_NEEDS: dict[tuple[bool, ...], tuple[bool, ...]] = {}  # apart from the others, for True equals 1


def _refuse_hidden(value: Any, position: int) -> None:
    hidden = hidden_in(value)
    if hidden:
        raise TypeError(
            f"argument {position} of the call holds {hidden}. Pass Variables in a list, tuple, named tuple, dict or "
            "OrderedDict (of exactly these classes), or as arguments of their own."
        )


def hidden_in(value: Any) -> str:
    """What in a value that is no Variable and no tree hides Variables from feedback, for messages; "" for nothing.

    It is a container of another kind, a dataclass with one in a field, or an iterator, which may give some.
    """
    kind = type(value)
    try:
        inside = _INSIDE[kind]
    except KeyError:
        inside = _INSIDE[kind] = _inside(kind)
        if inside is None and not pytree.is_container(value):
            _PLAIN.add(kind)
    if inside is None:
        return ""
    if inside is _unseen:
        return f"{a_class(kind)}, where feedback cannot find the Variables that it may give"
    if any(isinstance(part, Variable) for part in inside(value)):
        return f"a Variable inside {a_class(kind)}, where feedback cannot find it"
    return ""


_PLAIN: set[type] = set()
"""Classes whose values are no Variables and hold none, as far as they have been seen."""

_INSIDE: dict[type, Callable[[Any], Iterable[Any]] | None] = {}
"""What gives the parts of a value, by its class; None for a class whose values have none."""


def _inside(kind: type) -> Callable[[Any], Iterable[Any]] | None:
    if getattr(kind, "no_variables_inside", False) or issubclass(kind, str | bytes | bytearray | memoryview | range):
        return None
    if issubclass(kind, Mapping):
        return lambda value: value.values()
    if issubclass(kind, ItemsView):
        return itertools.chain.from_iterable
    if issubclass(kind, Sequence | AbstractSet | ValuesView):
        return iter
    if issubclass(kind, Iterator | AsyncIterator) and kind.__module__ in ("builtins", "itertools"):  # no file, say
        return _unseen
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return lambda value: _fields(value, names)
    return None


def _unseen(iterator: Any) -> Iterable[Any]:
    """What can be seen in an iterator without using it up."""
    return ()


def _fields(value: Any, names: list[str]) -> Iterator[Any]:
    for name in names:
        field = getattr(value, name, None)
        if isinstance(field, list | tuple):
            yield from field
        else:
            yield field


def needs_by_argument(layout: tuple[Any, ...], wanted: list[bool]) -> tuple[bool, ...]:
    """For each argument, whether a variable in it wants a gradient, from the same for each variable."""
    return one_of(
        _NEEDS,
        tuple(
            [
                wanted[entry]
                if type(entry) is int
                else entry is not None and any(wanted[i] for i in entry[1] if i is not None)
                for entry in layout
            ]
        ),
    )


def gradients_by_variable(node: FunctionNode, returned: Any) -> list[Any]:
    """What a backward rule returned, sorted to the variables among the forward's arguments.

    Raises:
        AutogradError: the number of gradients, or the shape of one, does not fit the arguments.
    """
    layout = node.layout
    grads = returned if type(returned) is tuple else (returned,)
    if len(grads) > len(layout) and not any(grad is not None for grad in grads[len(layout) :]):
        grads = grads[: len(layout)]  # for arguments that this call left to their defaults
    if len(grads) != len(layout):
        hint = "; a list is one gradient, several are a tuple" if isinstance(returned, list) else ""
        raise AutogradError(
            f"{node.function.__name__}.backward returned {len(grads)} gradients, expected {len(layout)}: one for each "
            f"argument of forward, None for those that need none{hint}"
        )
    result: list[Any] = [None] * len(node.edges)
    for position, (entry, grad) in enumerate(zip(layout, grads)):
        if grad is None:
            continue
        if entry is None:
            raise AutogradError(
                f"{node.function.__name__}.backward returned a gradient for argument {position}, which is no Variable; "
                "return None for it"
            )
        if type(entry) is int:
            result[entry] = grad
            continue
        spec, where = entry
        leaves, shape = _flatten_like(spec, grad)
        if not shape:
            raise AutogradError(
                f"{node.function.__name__}.backward: the gradient for argument {position} must have that argument's "
                f"shape (or be None), got {grad!r:.80}"
            )
        for index, leaf in zip(where, leaves):
            if index is not None:
                result[index] = leaf
    return result


def _flatten_like(spec: pytree.TreeSpec, tree: Any) -> tuple[list[Any], bool]:
    """The parts of `tree` at the leaves of `spec`; a leaf's gradient may itself be a list of items."""
    if spec.kind is None:
        return [tree], True
    if tree is None:
        return [None] * _size(spec), True
    if issubclass(spec.kind, dict):
        if not isinstance(tree, dict) or set(tree) != set(spec.keys):
            return [], False
        parts: list[Any] = [tree[key] for key in spec.keys]
    else:
        if not isinstance(tree, list | tuple) or len(tree) != len(spec.children):
            return [], False
        parts = list(tree)
    found: list[Any] = []
    for child, part in zip(spec.children, parts):
        leaves, fits = _flatten_like(child, part)
        if not fits:
            return [], False
        found.extend(leaves)
    return found, True


def _size(spec: pytree.TreeSpec) -> int:
    return 1 if spec.kind is None else sum(_size(child) for child in spec.children)
