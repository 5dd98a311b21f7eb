"""The values of a `vmap` taken apart for a Function's rules, which run once per example.

See NOTE [One example at a time] in ``autograd/rules.py``. A value may stand for one per example and belong to a level
above the `vmap`, which records what is done with it (feedback on feedback inside `vmap`). So taking apart and putting
together are operations, `Unbatch` and `Gather`, which such a level records like any other.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from textgrad_engine.autograd import Function, Layer, Variable
from textgrad_engine.autograd.context import ExampleContexts
from textgrad_engine.autograd.examples import numbered
from textgrad_engine.autograd.layers import LAYERS
from textgrad_engine.autograd.rules import gathered_items
from textgrad_engine.func.levels import map_variables

if TYPE_CHECKING:
    from textgrad_engine.func.vmap import VmapLayer

__all__ = ["BatchSplit", "Gather", "OneExample", "Unbatch", "stands_for_each"]


def stands_for_each(layer: Layer, value: Any) -> bool:
    """Whether a value, of whatever level, is a different one for each example of a level of batching."""
    if isinstance(value, ExampleContexts):
        return value.layer is layer or any(stands_for_each(layer, part) for part in value.parts)
    while isinstance(value, Variable) and value._layer is not None:
        if value._layer is layer:
            return True
        if isinstance(value._inner, list | tuple):
            return any(stands_for_each(layer, part) for part in value._inner)
        value = value._inner
    return False


class BatchSplit:
    """The values of one level of batching, for one use of a rule.

    Attributes:
        layer: the level.
        start: the number of its first example.
    """

    def __init__(self, layer: VmapLayer) -> None:
        self.layer, self.start = layer, layer.start
        self._stack = LAYERS.get()
        self._parts: dict[tuple[int, int], tuple[Variable, Sequence[Any]]] = {}
        self._lock = threading.Lock()  # rules that are asynchronous meet values on another thread

    def part(self, tree: Any, number: int) -> Any:
        """The tree with the values of one example."""
        return map_variables(lambda value: self.parts(value)[number] if self._is_ours(value) else value, tree)

    def _is_ours(self, value: Variable) -> bool:
        return stands_for_each(self.layer, value)

    def parts(self, value: Variable) -> Sequence[Any]:
        """A value for each example; a variable in several places is taken apart once."""
        if value._layer is self.layer:
            return list(value._inner)
        if not self._is_ours(value):
            return [value] * self.layer.size
        origin = value if value._origin is None else value._origin
        key = (id(origin), value._version)
        with self._lock:
            if key not in self._parts:
                token = LAYERS.set(self._stack)
                try:
                    self._parts[key] = (origin, Unbatch.apply(self.layer, value))
                finally:
                    LAYERS.reset(token)
            return self._parts[key][1]

    def whole(self, values: Sequence[Variable | None]) -> Variable:
        """One value that stands for one per example; None is empty text, in the role of the others."""
        role = next((value._role for value in values if value is not None), "")
        entries = [Variable("", role=role or "") if value is None else value for value in values]
        above = self._stack[self._stack.index(self.layer) + 1 :]
        if any(entry._layer is not None and entry._layer in above for entry in entries):
            result: Variable = Gather.apply(self.layer, entries)
            return result
        return self.layer.batch(entries)

    @contextlib.contextmanager
    def example(self, number: int) -> Iterator[None]:
        """Inside the block there is no batch: what runs belongs to one example."""
        rest = [layer for layer in self._stack if layer is not self.layer]
        place = len(rest)
        while place and isinstance(rest[place - 1], OneExample):  # an inner batch is met before an outer one
            place -= 1
        rest.insert(place, OneExample(self, number))
        token = LAYERS.set(tuple(rest))
        try:
            with numbered(self.start + number):
                yield
        finally:
            LAYERS.reset(token)


class OneExample(Layer):
    """Stands on the stack while a rule runs for one example: values of the whole batch count as that example's."""

    def __init__(self, split: BatchSplit, number: int) -> None:
        self.split, self.number = split, number

    def process(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        """Make the call with the values of the example, sampled for it where that is wanted."""
        given = self.split.part(args, self.number)
        layer = self.split.layer
        if layer.samples_apart(function, given):
            given = function.resample(given, layer.start + self.number)
        return function.apply(*given)


class _OfLayer(Function):
    """Done by a `vmap` level itself, with its own values; levels above it record it."""

    sees_batches = True

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Remember the level."""
        ctx.layer = inputs[0]


class Unbatch(_OfLayer):
    """`Unbatch.apply(layer, value)`: for each example its value."""

    @staticmethod
    def forward(layer: VmapLayer, value: Variable) -> tuple[Any, ...]:
        """The entries; of what is the same for all, or was only edited for each, the value itself."""
        return tuple(value._inner) if value._layer is layer else (value,) * layer.size

    @staticmethod
    def backward(ctx: Any, *grad_outs: Variable) -> Any:
        """What is said about each example's value is said about the batch, to that example."""
        split = BatchSplit(ctx.layer)
        by_example = [split.part(list(grad_out.grad), number) for number, grad_out in enumerate(grad_outs)]
        return None, gathered_items(split, by_example)

    @staticmethod
    def jvp(ctx: Any, layer: None, edit: Variable) -> Any:
        """The edit of each."""
        return tuple(BatchSplit(ctx.layer).parts(edit))


class Gather(_OfLayer):
    """`Gather.apply(layer, values)`: one value that stands for one per example."""

    @staticmethod
    def forward(layer: VmapLayer, values: list[Variable]) -> Variable:
        """Collect them."""
        return layer.batch(values)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        """To each what is said to its example."""
        split = BatchSplit(ctx.layer)
        return None, [split.part(list(grad_out.grad), number) for number in range(ctx.layer.size)]

    @staticmethod
    def jvp(ctx: Any, layer: None, edits: list[Variable | None]) -> Any:
        """One edit for each example."""
        return BatchSplit(ctx.layer).whole(edits)
