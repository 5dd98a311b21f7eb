"""Batches made of values and taken apart again; feedback on a batch is a list with a text for each entry."""

from __future__ import annotations

from typing import Any

from textgrad_engine.autograd import Function, Source, Variable
from textgrad_engine.autograd.gradient import Items, combine, is_start, start, started, without_zeros
from textgrad_engine.ops.parts import said_of_in_words
from textgrad_engine.ops.pass_on import Compute, joined_role


class Stack(Function):
    """`Stack.apply([a, b, …])`: one Variable whose data is the list of theirs."""

    deferrable = True
    collects = True

    @staticmethod
    def forward(entries: list[Variable]) -> Variable:
        """Collect the data."""
        return Variable([entry.data for entry in entries], role=joined_role(entries))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Remember how many there are."""
        ctx.count = len(inputs[0])

    @staticmethod
    def output_role(entries: list[Variable]) -> str:
        """The roles of the entries, each once."""
        return joined_role(entries)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        """To each entry its part of the feedback."""
        return (parts_of_items(grad_out.grad, ctx.count),)

    @staticmethod
    def jvp(ctx: Any, edits: list[Variable | None]) -> Any:
        """One list with the edit of each entry."""
        return Stack.apply([Variable("") if edit is None else edit for edit in edits])


def parts_of_items(items: Items, count: int) -> list[Items]:
    """Items of feedback on a batch, for each of its entries."""
    known = [(item, item._layer is None and is_start(item)) for item in items]  # once: it looks at every entry
    return [[part for item, begins in known for part in _part(item, number, begins)] for number in range(count)]


def batch_of_feedback(by_entry: list[Items]) -> Items:
    """Items of feedback on the entries of a batch, as feedback on the batch: one list with a text for each entry."""
    words = [[item for item in items if not is_start(item)] for items in by_entry]
    known = {_said_of(item) for items in words for item in items}
    if len(known) > 1:
        words = [[_in_words(item) for item in items] for items in words]
    feedback = Stack.apply([combine(items) for items in words])
    feedback.role = next((items[0].role for items in words if items), "feedback")
    if len(known) == 1:
        feedback.source = known.pop()
    starts = [started([item.data for item in items if is_start(item)]) for items in by_entry]
    return [feedback, *without_zeros([start(starts)])]


def _said_of(item: Variable) -> Source | None:
    """What of where an item came from is true of an entry, too; None where nothing is."""
    source = item.source
    return Source(places=source.places, shares=source.shares) if source and (source.places or source.shares) else None


def _in_words(item: Variable) -> Variable:
    """Feedback on an entry, with what it was said of in words, where that is not the same for all entries."""
    words = said_of_in_words(item)
    return Compute.apply(lambda data: _behind(words, data), item, item.role) if words else item


def _behind(words: str, data: Any) -> Any:
    if isinstance(data, list):
        return [_behind(words, entry) for entry in data]
    return f"{words}{data}" if data else data


def _part(item: Variable, number: int, begins: bool) -> list[Variable]:
    """What of an item of feedback on a batch, which may be the start of a pass, is about one entry."""
    if begins:
        data = item.data
        begun = start(data[number] if isinstance(data, list) else data)
        begun.source = _said_of(item)
        return without_zeros([begun])
    entry: Variable = Entry.apply(item, number)
    entry.source = _said_of(item) or entry.source
    return [entry]


class Unbind(Function):
    """`Unbind.apply(batch, size, where)`: the entries of a batch, each a Variable."""

    deferrable = True

    @staticmethod
    def forward(batch: Variable, size: int, where: str) -> Any:
        """Take the batch apart."""
        if not isinstance(batch.data, list) or len(batch.data) != size:
            raise ValueError(f"{where}: expected a batch of {size} entries, got {batch.data!r:.60}")
        entries = tuple([Variable(entry, role=batch.role) for entry in batch.data])
        return entries if size > 1 else entries[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Remember the batch, since feedback on entries that were edited meanwhile would be about other texts."""
        ctx.save_for_backward(inputs[0])

    @classmethod
    def count_outputs(cls, *args: Any) -> int:
        """One for each entry."""
        size: int = args[1]
        return size

    @staticmethod
    def output_role(batch: Variable, size: int, where: str) -> tuple[str, ...]:
        """The role of the batch."""
        return (batch.role,) * size

    @staticmethod
    def backward(ctx: Any, *grad_outs: Variable) -> Any:
        """One list with the feedback on each entry."""
        _ = ctx.saved_variables  # raises if the batch was edited
        return batch_of_feedback([grad_out.grad for grad_out in grad_outs]), None, None

    @staticmethod
    def jvp(ctx: Any, edit: Variable, size: None, where: None) -> Any:
        """To each entry its edit."""
        edits = tuple([Entry.apply(edit, number) for number in range(ctx.primals[1])])
        return edits if len(edits) > 1 else edits[0]


class Entry(Function):
    """`Entry.apply(batch, number)`: one entry of a batch of feedback; a single text is about every entry."""

    deferrable = True

    @staticmethod
    def forward(batch: Variable, number: int) -> Variable:
        """Pick the entry."""
        data = batch.data
        return Variable(data[number] if isinstance(data, list) else data, role=batch.role)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Nothing is needed."""

    @staticmethod
    def output_role(batch: Variable, number: int) -> str:
        """The role of the batch."""
        return batch.role

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        """What is said about the entry is said about the batch."""
        return grad_out, None

    @staticmethod
    def jvp(ctx: Any, edit: Variable, number: None) -> Any:
        """The edit of the entry."""
        return Entry.apply(edit, ctx.primals[1])
