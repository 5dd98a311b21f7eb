"""Nested lists, tuples and dicts taken apart into leaves and put together again (JAX's "pytrees").

A leaf is everything that is not exactly a list, a tuple, a named tuple, a dict or an OrderedDict.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_DICTS = frozenset({dict, OrderedDict})
_CONTAINERS = frozenset({list, tuple, *_DICTS})


class TreeSpec(NamedTuple):
    """The shape of a tree without its leaves; ``kind`` is None for a leaf."""

    kind: type | None
    keys: tuple[Any, ...] = ()
    children: tuple[TreeSpec, ...] = ()


_LEAF = TreeSpec(None)


_SURE_LEAVES: set[type] = {str, int, float, bool, type(None)}


def add_leaf_type(kind: type) -> None:
    """Say that values of exactly this class are leaves, so that nobody has to look at them twice."""
    _SURE_LEAVES.add(kind)


def is_container(value: object) -> bool:
    """Whether `value` is taken apart rather than being a leaf."""
    kind = type(value)
    return kind not in _SURE_LEAVES and (kind in _CONTAINERS or (isinstance(value, tuple) and hasattr(kind, "_fields")))


def flatten(tree: object) -> tuple[list[Any], TreeSpec]:
    """The leaves in order (dicts in insertion order), and the shape.

    Example:
        >>> flatten({"a": 1, "b": [2, 3]})[0]
        [1, 2, 3]
    """
    found: list[Any] = []
    return found, _flatten(tree, found)


def _flatten(tree: Any, found: list[Any]) -> TreeSpec:
    if not is_container(tree):
        found.append(tree)
        return _LEAF
    kind, keys, parts = type(tree), (), tree
    if kind in _DICTS:
        keys, parts = tuple(tree), tree.values()
    children = []
    for part in parts:
        if type(part) in _SURE_LEAVES:
            found.append(part)
            children.append(_LEAF)
        else:
            children.append(_flatten(part, found))
    return TreeSpec(kind, keys, tuple(children))


def unflatten(spec: TreeSpec, values: list[Any]) -> Any:
    """The tree of that shape with those leaves; the inverse of `flatten`.

    Raises:
        ValueError: there are more or fewer values than the shape has leaves.
    """
    rest = iter(values)
    try:
        tree = _unflatten(spec, rest)
    except StopIteration:
        raise ValueError(f"{len(values)} values are too few for {spec}") from None
    if next(rest, rest) is not rest:
        raise ValueError(f"{len(values)} values are too many for {spec}")
    return tree


def _unflatten(spec: TreeSpec, values: Iterator[Any]) -> Any:
    kind, keys, children = spec
    if kind is None:
        return next(values)
    parts = [_unflatten(child, values) for child in children]
    if kind in _DICTS:
        return kind(zip(keys, parts, strict=True))
    if kind is list:
        return parts
    return tuple(parts) if kind is tuple else kind(*parts)


def leaves(tree: object) -> list[Any]:
    """The leaves of a tree in order."""
    found: list[Any] = []
    _collect(tree, found)
    return found


def _collect(tree: Any, found: list[Any]) -> None:
    if not is_container(tree):
        found.append(tree)
        return
    for part in tree.values() if type(tree) in _DICTS else tree:
        if type(part) in _SURE_LEAVES:
            found.append(part)
        else:
            _collect(part, found)


def map_leaves(function: Callable[[Any], Any], tree: object) -> Any:
    """The tree with `function` applied to each leaf.

    Example:
        >>> map_leaves(str, (1, {"a": [2]}))
        ('1', {'a': ['2']})
    """
    if not is_container(tree):
        return function(tree)
    kind: Any = type(tree)
    given: Any = tree
    if kind in _DICTS:
        return kind([(key, map_leaves(function, part)) for key, part in given.items()])
    parts = [function(part) if type(part) in _SURE_LEAVES else map_leaves(function, part) for part in given]
    if kind is list:
        return parts
    return tuple(parts) if kind is tuple else kind(*parts)
