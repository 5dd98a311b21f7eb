"""The arguments of `vmap` taken apart into columns: for each leaf of an argument its value for each example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine import pytree
from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.starts import first_data
from textgrad_engine.errors import AutogradError
from textgrad_engine.func.levels import lift
from textgrad_engine.ops.batching import Stack, Unbind
from textgrad_engine.plain_values import as_python

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
    if not size:
        return []
    entries = Unbind.apply(value, size, call)
    return list(entries) if isinstance(entries, tuple) else [entries]


def keys_of(container: Any) -> list[Any]:
    """The keys of a dict, the numbers of the parts of another container, in order."""
    return list(container) if isinstance(container, dict) else list(range(len(container)))


def made_of(container: Any, parts: list[Any]) -> Any:
    """A container of the same class and keys, with other parts."""
    children = (pytree.TreeSpec(None),) * len(parts)
    return pytree.unflatten(pytree.TreeSpec(type(container), tuple(keys_of(container)), children), parts)


def _columns(value: Any, dim: Any, where: str) -> Any:
    if dim is None:
        return value
    if isinstance(dim, dict | tuple | list):
        return _by_part(value, dim, where)
    if dim != 0 or isinstance(dim, bool):
        raise AutogradError(f"{where}: in_dims may be 0 or None (text has one batch axis), got {dim!r}")
    if isinstance(value, Variable):
        return Column(unbound(value, size_of(value, where), where))
    if isinstance(value := as_python(value), list):
        return _from_list(value, where)
    if pytree.is_container(value):
        return made_of(value, [_columns(value[key], 0, f"{where}[{key!r}]") for key in keys_of(value)])
    raise AutogradError(
        f"{where}: in_dims says it is a batch, and it is {type(value).__name__} {value!r:.40}. A batch is a list, or a "
        "Variable whose data is a list; pass None in in_dims for what is the same for all examples."
    )


def _by_part(value: Any, dim: Any, where: str) -> Any:
    if not fits_parts(dim, value):
        raise AutogradError(f"{where}: in_dims has the shape {dim!r}, and the argument is {value!r:.60}")
    return made_of(value, [_columns(value[key], dim[key], f"{where}[{key!r}]") for key in keys_of(value)])


def fits_parts(dim: Any, value: Any) -> bool:
    """Whether dims say something for each part of a value; a plain tuple, list or dict does for a special one."""
    if not pytree.is_container(value):
        return False
    alike = isinstance(dim, dict) if isinstance(value, dict) else type(dim) in (tuple, list, type(value))
    return alike and set(keys_of(dim)) == set(keys_of(value))


def _from_list(entries: list[Any], where: str) -> Any:
    """A list of examples; of dicts or tuples it becomes a dict or tuple of columns."""
    first = entries[0] if entries else None
    if isinstance(first, list) or not pytree.is_container(first):
        return Column([entry_of(entry, where) for entry in entries])
    keys = keys_of(first)
    for entry in entries:
        if type(entry) is not type(first) or set(keys_of(entry)) != set(keys):
            raise AutogradError(f"{where}: the examples of a batch have one shape, got {first!r:.60} and {entry!r:.60}")
    return made_of(first, [_from_list([entry[key] for entry in entries], f"{where}[{key!r}]") for key in keys])


def entry_of(value: Any, where: str) -> Variable:
    """One example's value as a Variable; a list is a batch of its own, for a vmap further in.

    Raises:
        AutogradError: it is something that no Variable holds.
    """
    if isinstance(value, list):
        parts = [entry_of(part, where) for part in value]
        whole: Variable = Stack.apply(parts)
        return whole
    inner = lift(value)
    if not isinstance(inner, Variable):
        raise AutogradError(
            f"{where}: an entry of a batch is a text, a number or a Variable (or a list of these), got "
            f"{type(value).__name__} {value!r:.40}; func.pmap runs a program on any values, such as chats and images"
        )
    return inner


def size_of(value: Variable, where: str) -> int:
    """How many entries a batch has; waits for it when it is still pending."""
    data = first_data(value)
    if not isinstance(data, list):
        raise AutogradError(
            f"{where}: in_dims says it is a batch, and its data is {type(data).__name__} {data!r:.40}. "
            "Pass None in in_dims for what is the same for all examples."
        )
    return len(data)
