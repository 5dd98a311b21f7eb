"""The values of a `vmap` taken apart for a Function's rules, which run once per example.

See NOTE [One example at a time] in ``autograd/rules.py``. A value may stand for one per example and belong to a level
above the `vmap`, which records what is done with it (feedback on feedback inside `vmap`). So taking apart and putting
together are operations, `Unbatch` and `Gather`, which such a level records like any other.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from textgrad_engine.autograd import Function, Layer, Source, Variable
from textgrad_engine.autograd.context import ExampleContexts
from textgrad_engine.autograd.gradient import without_zeros
from textgrad_engine.autograd.layers import LAYERS
from textgrad_engine.autograd.rules import gathered_items
from textgrad_engine.autograd.value import LoneEntry
from textgrad_engine.func.levels import map_variables

if TYPE_CHECKING:
    from textgrad_engine.func.vmap import VmapLayer


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


@dataclass(frozen=True)
class _Sources(Source):
    """Where feedback that stands for one item per example of a level came from: for each example by itself."""

    level: Layer | None = None
    each: tuple[Source | None, ...] = ()

    def of(self, level: Layer, number: int) -> Source | None:
        """That for one example of a level."""
        if self.level is level:
            return self.each[number]
        each = tuple([s.of(level, number) if isinstance(s, _Sources) else s for s in self.each])
        return replace(self, each=each) if any(each) else None


def _source_of(value: Variable) -> Source | None:
    """Where a value came from; a level above a batch may stand for one that says so example by example."""
    if value.source is not None or value._layer is None:
        return value.source
    inner = value._inner
    return _together(value._layer, inner) if isinstance(inner, list) else _source_of(value._primal())


def _together(level: Layer | None, entries: Sequence[Variable]) -> Source | None:
    """That of a value which stands for one per example, if there is one to tell apart; see `Source`."""
    each = tuple(map(_source_of, entries))
    known = [source for source in each if source is not None]
    if not known:
        return None
    return _Sources(known[0].example, known[0].node, known[0].output, level=level, each=each)


def _with_source(value: Variable, source: Source | None) -> Variable:
    """A value that says where it came from; of batches, with which nobody above has anything to do, each entry does."""
    own = value._alias()
    own.source = source
    if isinstance(own._inner, list) and isinstance(source, _Sources):
        assert own._layer is not None
        own._inner = entries = copy.copy(own._inner)
        for number in [entries.number] if type(entries) is LoneEntry else range(len(entries)):
            if (said := source.of(own._layer, number)) is not None:
                entries[number] = _with_source(entries[number], said)
    return own


class BatchSplit:
    """The values of one level of batching, for one use of a rule.

    Attributes:
        layer: the level.
        size: how many examples it has.
        start: the number of its first example.
    """

    def __init__(self, layer: VmapLayer) -> None:
        self.layer, self.size, self.start = layer, layer.size, layer.start
        self._stack = LAYERS.get()
        self._above = self._stack[self._stack.index(layer) + 1 :]
        self._parts: dict[tuple[int, int], tuple[Variable, Sequence[Any]]] = {}
        self._sourced: dict[tuple[int, int, int], tuple[Source | None, Sequence[Any]]] = {}
        self._lock = threading.Lock()  # rules that are asynchronous meet values on another thread

    def name_of(self, name: str, number: int) -> str:
        """The name of one example, of what belongs to a name."""
        return self.layer.name_of(name, self.start + number)

    def part(self, tree: Any, number: int) -> Any:
        """The tree with the values of one example, also of what levels above the batch have recorded for all."""
        return map_variables(lambda v: self.parts(v)[number] if self._is_above(v) else self.one(v, number), tree)

    def one(self, value: Variable, number: int) -> Any:
        """The value of one example, of a value that may be a different one for each."""
        return self.parts(value)[number] if stands_for_each(self.layer, value) else value

    def _is_above(self, value: Variable) -> bool:
        return value._layer is not None and value._layer in self._above

    def parts(self, value: Variable) -> Sequence[Any]:
        """A value for each example; a variable in several places is taken apart once."""
        if value._layer is self.layer:
            entries: list[Any] = value._inner
            return entries
        if not stands_for_each(self.layer, value) and not self._is_above(value):
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
            parts = self._parts[key][1]
            sourced = (*key, id(value.source))
            if sourced not in self._sourced:
                self._sourced[sourced] = (value.source, self._with_sources(value, parts))
            return self._sourced[sourced][1]

    def _with_sources(self, value: Variable, parts: Sequence[Any]) -> Sequence[Any]:
        """The parts, each with where it came from, if that is known example by example."""
        source = _source_of(value)
        if not isinstance(source, _Sources):
            return parts
        return [_with_source(part, source.of(self.layer, number)) for number, part in enumerate(parts)]

    def only(self, value: Variable) -> int | None:
        """The one example that a value says anything about; None where it is not known to be only one."""
        while value._layer is not None:
            inner = value._inner
            if value._layer is self.layer:
                return inner.number if type(inner) is LoneEntry else None
            if isinstance(inner, list):
                return None
            value = value._primal()
        return None

    def whole(self, values: Mapping[int, Variable], nothing: str = "") -> Variable:
        """One value that stands for one per example; `nothing`, in the role of the others, for those not in it."""
        (first, value), *_ = values.items()
        empty = Variable(nothing, role=value._role or "")
        if len(values) == 1 and not self._is_above(value):
            return self.layer.batch(LoneEntry(self.size, first, value, empty))
        entries = [empty] * self.size
        for number, value in values.items():
            entries[number] = value
        if any(self._is_above(value) for value in values.values()):
            result: Variable = Gather.apply(self.layer, entries)
            return _with_source(result, _together(self.layer, entries))
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
            with self.layer.named(self.start + number):
                yield
        finally:
            LAYERS.reset(token)


class OneExample(Layer):
    """Stands on the stack while a rule runs for one example: values of the whole batch count as that example's."""

    def __init__(self, split: BatchSplit, number: int) -> None:
        self.split, self.number = split, number

    def process(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        """Make the call with the values of the example, sampled for it where that is wanted."""
        given = map_variables(lambda value: self.split.one(value, self.number), args)
        layer = self.split.layer
        if layer.samples_apart(function, given):
            return layer.apply_apart(function, given, layer.start + self.number)
        return function.apply(*given)


class _OfLayer(Function):
    """Done by a `vmap` level itself, with its own values; levels above it record it."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Remember the level."""
        ctx.layer = inputs[0]


class Unbatch(_OfLayer):
    """`Unbatch.apply(layer, value)`: for each example its value."""

    of_batch = "apart"

    @staticmethod
    def forward(layer: VmapLayer, value: Variable) -> tuple[Any, ...]:
        """The entries; of what is the same for all, or was only edited for each, the value itself."""
        return tuple(value._inner) if value._layer is layer else (value,) * layer.size

    @staticmethod
    def backward(ctx: Any, *grad_outs: Variable) -> Any:
        """What is said about each example's value is said about the batch, to that example."""
        split = BatchSplit(ctx.layer)
        said = [(number, grad_out.grad) for number, grad_out in enumerate(grad_outs) if grad_out.grad]
        by_example = {number: split.part(list(items), number) for number, items in said}
        return None, gathered_items(split, by_example)

    @staticmethod
    def jvp(ctx: Any, layer: None, edit: Variable) -> Any:
        """The edit of each."""
        return tuple(BatchSplit(ctx.layer).parts(edit))


class Gather(_OfLayer):
    """`Gather.apply(layer, values)`: one value that stands for one per example."""

    of_batch = "together"

    @staticmethod
    def forward(layer: VmapLayer, values: list[Variable]) -> Variable:
        """Collect them."""
        return layer.batch(values)

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        """To each what is said to its example, as words that no other example hears."""
        split = BatchSplit(ctx.layer)
        heard = [without_zeros(split.part(list(grad_out.grad), number)) for number in range(split.size)]
        return None, [[split.whole({number: item}) for item in items] for number, items in enumerate(heard)]

    @staticmethod
    def jvp(ctx: Any, layer: None, edits: list[Variable | None]) -> Any:
        """One edit for each example."""
        return BatchSplit(ctx.layer).whole({n: edit for n, edit in enumerate(edits) if edit is not None})
