"""An operation on batches as one operation for each entry; they run together, and the results are one batch again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.examples import numbered
from textgrad_engine.ops.batching import Stack, Unbind
from textgrad_engine.ops.sizes import note_size, size_of


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
        with numbered(number, inside=True):  # equal requests of different entries are different samples
            results.append(operation([column[number] for column in columns]))
    return results


def stacked(results: list[Variable]) -> Variable:
    """The results of all entries as one Variable whose data is a list; feedback on it is a list, too."""
    batch: Variable = Stack.apply(results)
    note_size(batch, len(results))
    return batch


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
                entries = Unbind.apply(value, size, call) if size else ()
                taken[id(value)] = list(entries) if isinstance(entries, tuple) else [entries]
            columns.append(taken[id(value)])
    return columns
