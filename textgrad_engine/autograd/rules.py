"""A Function's own code beside its forward, as transforms run it: `setup_context`, `backward` and `jvp`.

NOTE [One example at a time]
    Below a `grad` or `jvp` inside `vmap`, a value stands for one value per example, and a rule that reads data, as most
    rules do, would find none to read. So a rule is handed to the layers as a call is, top first (`run_rule`), and
    `vmap` runs it once per example: with that example's values, in a stack without the `vmap`. It makes batches of what
    the examples gave. An example that nothing is said about is left out, which is a true zero. A rule cannot tell
    whether it runs inside a `vmap`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from textgrad_engine import pytree
from textgrad_engine.autograd.context import Context, ExampleContexts
from textgrad_engine.autograd.examples import EXAMPLE
from textgrad_engine.autograd.function import Function
from textgrad_engine.autograd.gradient import Items, is_start, without_zeros
from textgrad_engine.autograd.layers import LAYERS, Layer
from textgrad_engine.autograd.variable import Variable


class Split(Protocol):
    """The values of a `vmap`, taken apart for a rule and put together behind it."""

    @property
    def layer(self) -> Layer:
        """The level of batching."""

    @property
    def size(self) -> int:
        """How many examples it has."""

    @property
    def start(self) -> int:
        """The number of its first example."""

    def name_of(self, name: str, number: int) -> str:
        """The name of one example, of what belongs to a name."""

    def part(self, tree: Any, number: int) -> Any:
        """The tree with the values of one example."""

    def only(self, value: Variable) -> int | None:
        """The one example that a value says anything about; None where it is not known to be only one."""

    def whole(self, values: Mapping[int, Variable], nothing: str = "") -> Variable:
        """One value that stands for one per example; for those that are not in it `nothing`, an empty text."""


class Rule:
    """One use of a Function's own code beside its forward; see NOTE [One example at a time].

    Attributes:
        function: the Function.
    """

    __slots__ = ()
    function: type[Function]

    def values(self) -> Iterator[Any]:
        """What it is given: Variables, contexts, and whatever else."""
        raise NotImplementedError

    def run(self) -> Any:
        """Run the code with the values as they are."""
        raise NotImplementedError

    def examples(self, split: Split) -> Iterable[int]:
        """The examples for which there may be anything to do."""
        return range(split.size)

    def of_example(self, split: Split, number: int) -> Rule | None:
        """The same use for one example; None where there is nothing to do."""
        raise NotImplementedError

    def gathered(self, split: Split, results: dict[int, Any]) -> Any:
        """What `run` would have given, from what it gave for each example that there was anything to do for."""
        raise NotImplementedError


def run_rule(rule: Rule) -> Any:
    """Run a rule through the layers that are active here, top first."""
    layers = LAYERS.get()
    return _below(layers, rule) if layers else rule.run()


def _below(layers: tuple[Layer, ...], rule: Rule) -> Any:
    return layers[-1].run_rule(rule, functools.partial(_below, layers[:-1])) if layers else rule.run()


@dataclass(frozen=True, slots=True)
class SetUp(Rule):
    """The context of a call, and the numbers of the outputs that it marks as not differentiable."""

    function: type[Function]
    needs: tuple[bool, ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    single: bool

    def values(self) -> Iterator[Any]:
        """All inputs and outputs."""
        yield from pytree.leaves((self.inputs, self.outputs))

    def run(self) -> tuple[Context, frozenset[int]]:
        """Call `setup_context`."""
        ctx = self.function._style.context()
        ctx.needs_input_grad = self.needs
        ctx.example = EXAMPLE.get()
        outs = self.outputs
        self.function.setup_context(ctx, self.inputs, outs[0] if self.single else outs)
        for number, value in enumerate(outs):
            if not isinstance(value, Variable):
                ctx._plain += (number,)
            elif value._layer is None and type(value._data) is list:
                ctx._note_batch(number, value._data)
        ctx._marked = frozenset([number for number, value in enumerate(outs) if ctx._is_constant(value, value)])
        return ctx, ctx._marked

    def of_example(self, split: Split, number: int) -> SetUp:
        """With the inputs and outputs of the example."""
        inputs, outputs = split.part((self.inputs, self.outputs), number)
        return SetUp(self.function, self.needs, inputs, outputs, self.single)

    def gathered(self, split: Split, results: dict[int, Any]) -> tuple[Context, frozenset[int]]:
        """The contexts of all examples; an output is recorded where it is differentiable for one of them."""
        ctxs, constants = zip(*results.values())
        ctx = ExampleContexts(split.layer, list(ctxs))
        ctx._plain = ctxs[0]._plain
        return ctx, frozenset.intersection(*constants)


def gathered_items(split: Split, by_example: Mapping[int, Items]) -> Items:
    """The items that say something to each example, as batches; the start of a pass stays apart from words."""
    found: Items = []
    for start in (False, True):
        rows = {
            n: [item for item in without_zeros(items) if is_start(item) is start] for n, items in by_example.items()
        }
        for place in range(max(map(len, rows.values()), default=0)):
            found.append(split.whole({n: row[place] for n, row in rows.items() if place < len(row)}))
    return found
