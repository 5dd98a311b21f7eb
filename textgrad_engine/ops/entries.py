"""An operation on batches as one operation for each entry; they run together, and the results are one batch again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.examples import numbered
from textgrad_engine.autograd.operators import Operators
from textgrad_engine.autograd.value import label_of
from textgrad_engine.llm.parsing import json_in
from textgrad_engine.ops.batching import Stack, Unbind
from textgrad_engine.ops.sizes import note_size, size_of
from textgrad_engine.wording import told


def each_entry(size: int, values: Sequence[Any], operation: Callable[[list[Any]], Any], call: str) -> list[Any]:
    """Do an operation once for each entry.

    Args:
        size: how many entries there are.
        values: lists and Variables with lists are taken apart; what is no batch is the same for all entries, so that
            a shared prompt collects one feedback for each entry, in order.
        operation: gets the values of one entry.
        call: who asks, for messages.

    Returns:
        What the operation gave for each entry.
    """
    columns = _columns(size, values, call)
    results = []
    for number in range(size):
        with numbered(number):  # equal requests of different entries are different samples
            results.append(operation([column[number] for column in columns]))
    return results


def stacked(results: list[Variable]) -> Variable:
    """The results of all entries as one Variable whose data is a list; feedback on it is a list, too."""
    batch: Variable = Stack.apply(results)
    note_size(batch, len(results))
    return batch


def unbind(batch: Variable) -> list[Variable]:
    """The entries of a batch, each a Variable; feedback on an entry is feedback on that entry of the batch.

    ``for entry in batch`` does the same. It waits where the operation that makes the batch does not know its size yet.

    Raises:
        TypeError: the value is no batch.

    Example:
        >>> prompt = Variable("Be brief.", role="prompt", requires_grad=True)
        >>> first, second = unbind(Variable(["Sort. ", "Count. "]) + prompt)
        >>> second.backward("shorter")
        >>> second.data, [item.data for item in prompt.grad]
        ('Count. Be brief.', ['shorter'])
    """
    if not isinstance(batch, Variable):
        raise TypeError(f"unbind: takes a batch apart, a Variable whose data is a list; got {told(batch)}")
    size = size_of(batch)
    if size is None:
        data = batch.data
        if not isinstance(data, list):
            raise TypeError(
                f"{label_of(batch)} cannot be iterated over, as it is no batch; use its .data, or ops.split for pieces "
                f"that keep the graph{_about_list(data)}"
            )
        size = len(data)
    return _taken_apart(batch, size, "unbind")


def _about_list(data: Any) -> str:
    """How the entries are had of a text that is a JSON list, such as a field of an answer."""
    try:
        _, value = json_in(str(data))
    except (ValueError, RecursionError):
        return ""
    if not isinstance(value, list):
        return ""
    return f"; of the JSON list in it [it[n] for n in range({len(value)})] has the entries, with their graph"


def _taken_apart(batch: Variable, size: int, call: str) -> list[Variable]:
    entries = Unbind.apply(batch, size, call) if size else ()
    return list(entries) if isinstance(entries, tuple) else [entries]


def _columns(size: int, values: Sequence[Any], call: str) -> list[list[Any]]:
    taken: dict[int, list[Any]] = {}  # a variable in two places is taken apart once, and asked about once
    columns = []
    for value in values:
        if size_of(value) is None:
            columns.append([value] * size)
        elif isinstance(value, list):
            columns.append(value)
        else:
            if id(value) not in taken:
                taken[id(value)] = _taken_apart(value, size, call)
            columns.append(taken[id(value)])
    return columns


Operators.unbind_rule = staticmethod(unbind)
