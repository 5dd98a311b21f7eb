"""`vmap`: a function of one example, run on a batch of them.

NOTE [What a batch is]
    Text has no axes, so the only batch axis is 0: the entries of a list (of a column or an array of another library,
    too), or of a Variable whose data is a list. Dicts and tuples are structure, as in JAX. Inside, each leaf of the
    argument is one Variable that stands for one value per example; calls on it are made once per example, and those
    that are dispatched run together. A value that is not batched is the same for all examples: a shared prompt is one
    leaf, and collects one feedback per example, in order. A call without a batched input is made once; so is its
    backward, with the feedback of all examples.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn

from textgrad_engine import pytree
from textgrad_engine.autograd import Function, Layer, Variable
from textgrad_engine.autograd.examples import EXAMPLE, entry_name, numbered_name
from textgrad_engine.autograd.function import generates_vmap_rule
from textgrad_engine.autograd.rules import Rule
from textgrad_engine.autograd.value import LoneEntry
from textgrad_engine.checks import at_least, check
from textgrad_engine.dispatch import waits
from textgrad_engine.errors import AutogradError
from textgrad_engine.func.columns import (
    Column,
    Dims,
    columns_of,
    fits_parts,
    keys_of,
    made_of,
    size_of_columns,
)
from textgrad_engine.func.levels import called, is_of, kind_of, quoting, separate_style
from textgrad_engine.func.own_rule import Randomness, run_own_rule
from textgrad_engine.func.split import BatchSplit, stands_for_each
from textgrad_engine.keywords import names_told
from textgrad_engine.ops.asking import SHARED, SharedSamples
from textgrad_engine.ops.batching import Stack


class _Batch:
    """Stands where a Call would: one value inside vmap has no single value to read."""

    done = True
    failed = False

    def __init__(self, call: str) -> None:
        self._call = call

    def result(self) -> NoReturn:
        """Refuse.

        Raises:
            AutogradError: always.
        """
        raise AutogradError(
            f"{self._call}: the function reads the data of a value inside, and there it is a different one for each "
            "example. Compute with ops.* or a Function instead of .data, str() or if; or use func.pmap, which runs any "
            "Python program once per example."
        )


class VmapLayer(Layer):
    """One level of batching.

    Args:
        size: how many examples there are.
        randomness: what the user wants of sampled models.
        call: the user's call, for messages.
        start: the number of the first example; a later chunk goes on where the one before ended.
        total: how many examples all chunks have.
        names: of all examples; None numbers them.
        shared: of `randomness` "same", the answers so far.
    """

    def __init__(
        self,
        size: int,
        randomness: Randomness | None,
        call: str,
        start: int,
        total: int,
        names: Sequence[str] | None = None,
        shared: dict[Any, Any] | None = None,
    ) -> None:
        self.size, self.randomness, self.call, self.start, self.total = size, randomness, call, start, total
        self.names, self.shared = names, {} if shared is None else shared
        self._numbers: dict[object, int] = {}

    def batch(self, values: Sequence[Any]) -> Variable:
        """One value that stands for one per example."""
        outer = Variable("", role="")
        if type(values) is LoneEntry:
            outer._inner, told = values, [values[values.number]]
        else:
            outer._inner = told = [value if isinstance(value, Variable) else Variable(value) for value in values]
        outer._layer = self
        roles = {entry._role for entry in told}
        outer._role = None if None in roles else roles.pop() if len(roles) == 1 else ""
        outer._call = _Batch(self.call)  # type: ignore[assignment]  # looked at as a Call would be, never awaited
        return outer

    def entries(self, value: Any) -> list[Any]:
        """The value for each example."""
        return list(value._inner) if is_of(self, value) else [value] * self.size

    def process(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        """Make the call once per example, or by the Function's own rule, or once when nothing in it is batched."""
        if function.of_batch and args[0] is self:
            return function.forward(*args)
        if self.randomness != "same" or not function.is_random(*args):
            return self._each(function, args)
        token = SHARED.set(self._samples())
        try:
            return self._each(function, args)
        finally:
            SHARED.reset(token)

    def _samples(self) -> SharedSamples:
        """Those of the next call; what an inner batch asks for each of its examples is one call of the outer one's."""
        call = self._numbers.setdefault(SHARED.get() or object(), len(self._numbers))
        return SharedSamples(self.shared, call)

    def _each(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        leaves, spec = pytree.flatten(args)
        different = self.samples_apart(function, args)
        if not different and not any(is_of(self, leaf) for leaf in leaves):
            return function.apply(*args)
        separate_style(function, "vmap")
        if not generates_vmap_rule(function, self.call):
            return run_own_rule(self, function, args)
        columns = [self.entries(leaf) for leaf in leaves]
        results = []
        for position in range(self.size):
            given = pytree.unflatten(spec, [column[position] for column in columns])
            number = self.start + position
            with self.named(number):
                results.append(self.apply_apart(function, given, number) if different else function.apply(*given))
        return self._stacked(results)

    def name_of(self, name: str, number: int) -> str:
        """The name of one example, of what belongs to a name.

        Args:
            name: the name.
            number: which example, counted over all chunks.
        """
        return numbered_name(name, number, inside=False) if self.names is None else entry_name(name, self.names[number])

    @contextlib.contextmanager
    def named(self, number: int) -> Iterator[None]:
        """Inside the block, what is computed belongs to one example; see `name_of`."""
        token = EXAMPLE.set(self.name_of(EXAMPLE.get(), number))
        try:
            yield
        finally:
            EXAMPLE.reset(token)

    def samples_apart(self, function: type[Function], args: tuple[Any, ...]) -> bool:
        """Whether each example takes a sample of its own.

        Raises:
            AutogradError: the Function samples, and the user has not said what is wanted.
        """
        if not function.is_random(*args):
            return False
        if self.randomness == "error":
            raise AutogradError(
                f"{self.call}: {function.__name__} samples its answers, and randomness='error'. Pass "
                "randomness='different' for a sample for each example, or 'same' for one that equal requests share."
            )
        return self.randomness == "different"

    def apply_apart(self, function: type[Function], args: tuple[Any, ...], number: int) -> Any:
        """Make a call with a sample of its own for one example; each pair of an inner and an outer one has its own."""
        stride = _STRIDE.get()
        token = _STRIDE.set(stride * self.total)
        try:
            return function.apply(*function.resample(args, number * stride))
        finally:
            _STRIDE.reset(token)

    def run_rule(self, rule: Rule, below: Callable[[Rule], Any]) -> Any:
        """Run a rule once per example where anything in it is batched."""
        if rule.function.of_batch or not any(stands_for_each(self, value) for value in rule.values()):
            return below(rule)
        split = BatchSplit(self)
        results = {}
        for number in rule.examples(split):
            if (part := rule.of_example(split, number)) is not None:
                with split.example(number):
                    results[number] = below(part)
        return rule.gathered(split, results)

    def _stacked(self, results: list[Any]) -> Any:
        """One value per output that stands for one per example."""
        if isinstance(results[0], tuple):
            counts = {len(result) for result in results}
            if len(counts) > 1:
                raise AutogradError(f"{self.call}: the number of outputs differs between examples: {sorted(counts)}")
            return tuple([self._one(list(column)) for column in zip(*results)])
        return self._one(results)

    def _one(self, column: list[Any]) -> Any:
        return self.batch(column) if any(isinstance(value, Variable) for value in column) else column[0]


@names_told
def vmap(
    function: Callable[..., Any],
    in_dims: Dims = 0,
    out_dims: Dims = 0,
    randomness: Randomness | None = "error",
    chunk_size: int | None = None,
    names: Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Turn a function of one example into a function of a batch; dispatched calls run concurrently.

    For programs without data-dependent control flow: reading `.data` inside raises. `pmap` runs any program.

    Args:
        function: takes Variables and returns Variables, or tuples, lists and dicts of them.
        in_dims: for each argument 0 (a batch: a list, a column or an array of another library, or a Variable whose data
            is a list) or None (the same for all examples); one value stands for all arguments, and a dict or tuple may
            say it for the parts of an argument.
        out_dims: for each output 0 (a batch: one Variable whose data is a list) or None (the same for all examples);
            one value stands for all outputs, and a dict or tuple may say it for the parts of the result.
        randomness: what to do about calls that sample (a `temperature` above 0, of the call or of its model).
            ``"error"`` refuses them, ``"different"`` takes a sample for each example, ``"same"`` lets examples with the
            same request share one; an example that asks twice takes two. With None each example asks as in a loop:
            cached answers are used, and nothing else is shared.
        chunk_size: the most examples at once; the next ones start when these are done. None for all.
        names: what the examples are called, in feedback and in what is recorded of calls; an empty name adds nothing to
            that of a batch around it. None numbers them.

    Returns:
        A function of batches. Its results are Variables whose data is a list with an entry for each example; feedback
        on them is a list with a text for each example. Keyword arguments are the same for all examples.

    Raises:
        ValueError: `randomness` is another word, or `chunk_size` below 1.
        AutogradError: (from the new function) in_dims does not fit the arguments, batches differ in size, there are
            not as many names as examples, or data is read.

    Example:
        >>> from textgrad_engine import ops
        >>> vmap(lambda a, b: a + b, in_dims=(0, None))(["x", "y"], "!").data
        ['x!', 'y!']
        >>> def score(a, b):
        ...     return ops.exact_match_evaluator(a, b)[0]
        >>> vmap(vmap(score, (None, 0)), (0, None))(["x", "y"], ["x", "z"]).data
        [[1, 0], [0, 0]]
    """
    call = called("vmap", function, [f"in_dims={in_dims!r}"])
    given = {"randomness": randomness, "chunk_size": chunk_size, "names": names}
    check(vmap, given, at_least(1, "chunk_size"))
    names = None if names is None else tuple(names)

    @quoting(function, call)
    @waits("await func.avmap(f)(...)")
    def batched(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not args:
            names_given = ", ".join(kwargs)
            raise AutogradError(
                f"{call}: what comes by name is the same for all examples, and nothing came by place; write "
                f"vmap(lambda {names_given}: f({', '.join(f'{name}={name}' for name in kwargs)}))({names_given})"
            )
        columns = columns_of(args, in_dims, call)
        size = size_of_columns(columns, call)
        if names is not None and len(names) != size:
            raise AutogradError(f"{call}: there are {len(names)} names for {size} examples")
        step = size if chunk_size is None else operator.index(chunk_size)
        chunks: list[tuple[VmapLayer, Any]] = []
        shared: dict[Any, Any] = {}
        for start in range(0, size, step):
            layer = VmapLayer(min(step, size - start), randomness, call, start, size, names, shared)
            given = pytree.map_leaves(functools.partial(_chunk, layer, start), columns)
            with layer:
                chunks.append((layer, function(*given, **kwargs)))
            if chunk_size is not None:
                _wait(chunks[-1][1])
        return _merged(chunks, out_dims, call)

    return batched


_STRIDE: ContextVar[int] = ContextVar("textgrad_engine_vmap_stride", default=1)
"""How many samples the inner batches of a call have, which go through their own level first."""


def _chunk(layer: VmapLayer, start: int, leaf: Any) -> Any:
    return layer.batch(leaf.entries[start : start + layer.size]) if isinstance(leaf, Column) else leaf


def _wait(tree: Any) -> None:
    """Wait until all values of a chunk are there; errors surface where they are read."""
    for leaf in pytree.leaves(tree):
        if isinstance(leaf, Variable):
            for call in leaf._pending():
                call.wait()


def _merged(chunks: list[tuple[VmapLayer, Any]], out_dims: Dims, call: str) -> Any:
    """The outputs of all chunks as batches."""
    first = chunks[0][1]
    if isinstance(out_dims, dict | tuple | list):
        if not all(fits_parts(out_dims, result) for _, result in chunks):
            raise AutogradError(f"{call}: out_dims has the shape {out_dims!r}, and the function gave {first!r:.60}")
        by_key = {key: [(layer, result[key]) for layer, result in chunks] for key in keys_of(first)}
        return made_of(first, [_merged(parts, out_dims[key], call) for key, parts in by_key.items()])
    if out_dims not in (0, None) or isinstance(out_dims, bool):
        raise AutogradError(f"{call}: out_dims may be 0 or None (text has one batch axis), got {out_dims!r}")
    spec = pytree.flatten(first)[1]
    by_output = zip(*(pytree.leaves(result) for _, result in chunks))
    layers = [layer for layer, _ in chunks]
    return pytree.unflatten(spec, [_output(layers, list(values), out_dims, call) for values in by_output])


def _output(layers: list[VmapLayer], values: list[Any], dim: Any, call: str) -> Any:
    if dim is None:
        if any(is_of(layer, value) for layer, value in zip(layers, values)):
            raise AutogradError(f"{call}: out_dims is None for an output that differs between examples; use 0")
        return values[0]
    if not isinstance(values[0], Variable):
        raise AutogradError(
            f"{call}: expected Variables (or tuples, lists, dicts of them) from the function, got {kind_of(values[0])}"
        )
    return Stack.apply([entry for layer, value in zip(layers, values) for entry in layer.entries(value)])
