"""The arguments of `vmap` taken apart into columns: for each leaf of an argument its value for each example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine import pytree
from textgrad_engine.autograd import Variable
from textgrad_engine.errors import AutogradError
from textgrad_engine.func.levels import lift
from textgrad_engine.ops.batching import Stack, Unbind

__all__ = ["Column", "Dims", "columns_of", "size_of", "size_of_columns", "unbound"]

Dims = int | None | dict[Any, Any] | tuple[Any, ...] | list[Any]
"""0 for a batch, None for what is the same for all examples, or a container of these."""


@dataclass(frozen=True)
class Column:
    """The value of one leaf for each example."""

    entries: list[Any]


def columns_of(args: tuple[Any, ...], in_dims: Dims, call: str) -> tuple[Any, ...]:
    """The arguments with what is batched as columns.

    Raises:
        AutogradError: in_dims does not fit the arguments.
    """
    if isinstance(in_dims, tuple | list):
        if len(in_dims) != len(args):
            raise AutogradError(f"{call}: in_dims names {len(in_dims)} arguments, and the call has {len(args)}")
        dims: Sequence[Any] = in_dims
    else:
        dims = [in_dims] * len(args)
    return tuple([_columns(value, dim, f"{call}: argument {n}") for n, (value, dim) in enumerate(zip(args, dims))])


def size_of_columns(columns: tuple[Any, ...], call: str) -> int:
    """How many examples there are.

    Raises:
        AutogradError: none, or batches of different sizes.
    """
    sizes = [len(leaf.entries) for leaf in pytree.leaves(columns) if isinstance(leaf, Column)]
    if not sizes:
        raise AutogradError(f"{call}: expected at least one batched argument, and in_dims names none")
    if len(set(sizes)) > 1:
        raise AutogradError(f"{call}: expected batches of one size, got sizes {sizes}")
    if sizes[0] == 0:
        raise AutogradError(f"{call}: the batch is empty")
    return sizes[0]


def unbound(value: Any, size: int, call: str) -> list[Variable]:
    """The entries of a batch as Variables of their own; feedback on them becomes one list of feedback on the batch."""
    entries = Unbind.apply(value, size, call)
    return list(entries) if isinstance(entries, tuple) else [entries]


def _columns(value: Any, dim: Any, where: str) -> Any:
    if dim is None:
        return value
    if isinstance(dim, dict | tuple | list):
        return _by_part(value, dim, where)
    if dim != 0 or isinstance(dim, bool):
        raise AutogradError(f"{where}: in_dims may be 0 or None (text has one batch axis), got {dim!r}")
    if isinstance(value, Variable):
        return Column(unbound(value, size_of(value, where), where))
    if isinstance(value, list):
        return _from_list(value, where)
    if isinstance(value, dict | tuple):
        parts = {key: _columns(value[key], 0, f"{where}[{key!r}]") for key in _keys(value)}
        return parts if isinstance(value, dict) else tuple(parts.values())
    raise AutogradError(
        f"{where}: in_dims says it is a batch, and it is {type(value).__name__} {value!r:.40}. A batch is a list, or a "
        "Variable whose data is a list; pass None in in_dims for what is the same for all examples."
    )


def _by_part(value: Any, dim: Any, where: str) -> Any:
    if type(dim) is not type(value) or list(_keys(dim)) != list(_keys(value)):
        raise AutogradError(f"{where}: in_dims has the shape {dim!r}, and the argument is {value!r:.60}")
    parts = {key: _columns(value[key], dim[key], f"{where}[{key!r}]") for key in _keys(value)}
    return parts if isinstance(dim, dict) else type(dim)(parts.values())


def _keys(value: Any) -> Any:
    return sorted(value, key=str) if isinstance(value, dict) else range(len(value))


def _from_list(entries: list[Any], where: str) -> Any:
    """A list of examples; of dicts or tuples it becomes a dict or tuple of columns."""
    first = entries[0] if entries else None
    if not isinstance(first, dict | tuple):
        return Column([_entry(entry) for entry in entries])
    for entry in entries:
        if type(entry) is not type(first) or list(_keys(entry)) != list(_keys(first)):
            raise AutogradError(f"{where}: the examples of a batch have one shape, got {first!r:.60} and {entry!r:.60}")
    parts = {key: _from_list([entry[key] for entry in entries], f"{where}[{key!r}]") for key in _keys(first)}
    return parts if isinstance(first, dict) else tuple(parts.values())


def _entry(value: Any) -> Any:
    """One example's value; a list is a batch of its own, for a vmap further in."""
    if isinstance(value, list):
        return Stack.apply([_entry(part) for part in value])
    return lift(value)


def size_of(value: Variable, where: str) -> int:
    """How many entries a batch has; waits for it when it is still pending."""
    while value._layer is not None:
        value = value._inner[0] if isinstance(value._inner, list) else value._primal()
    data = value.data
    if not isinstance(data, list):
        raise AutogradError(
            f"{where}: in_dims says it is a batch, and its data is {type(data).__name__} {data!r:.40}. "
            "Pass None in in_dims for what is the same for all examples."
        )
    return len(data)
