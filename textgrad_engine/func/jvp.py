"""`jvp`: forward mode. An edit of the arguments, described in words, becomes a described change of the result.

NOTE [Tangents in words]
    A tangent says how a value is edited: "add an example", "becomes 'billing'". The tangent of a result is an edit of
    the result. Plain operations have exact rules (the edit of a part is an edit of the whole that names the part); for
    a chat completion a model is asked what would change in the answer; an evaluator is run again on the edited
    prediction. No tangent, or an empty one, is a real zero: nothing changes, and nobody is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine import pytree
from textgrad_engine.autograd import Function, Layer, Variable
from textgrad_engine.autograd.arguments import layout_of
from textgrad_engine.autograd.rules import Rule, SetUp, Split, run_rule
from textgrad_engine.errors import AutogradError
from textgrad_engine.func.levels import below, called, is_of, lift, map_variables, separate_style, wrapped

__all__ = ["JvpLayer", "jvp"]


@dataclass(frozen=True, slots=True)
class _Forward(Rule):
    """The `jvp` rule of one call: for each output its tangent, or None."""

    set_up: SetUp
    tangents: tuple[Any, ...]

    @property
    def function(self) -> type[Function]:  # type: ignore[override]  # that of the call
        """The Function."""
        return self.set_up.function

    def values(self) -> Iterator[Any]:
        """All inputs, outputs and tangents."""
        yield from self.set_up.values()
        yield from pytree.leaves(self.tangents)

    def run(self) -> list[Variable | None]:
        """Call `setup_context` and `jvp`."""
        ctx, _ = self.set_up.run()
        ctx.primals = self.set_up.inputs
        function, count = self.function, len(self.set_up.outputs)
        returned = function.jvp(ctx, *self.tangents)
        given = returned if isinstance(returned, tuple) and not self.set_up.single else (returned,)
        if len(given) != count:
            raise AutogradError(
                f"{function.__name__}.jvp returned {len(given)} tangents, expected {count}: one for each output, "
                "None for those that stay"
            )
        return [_tangent(tangent, function) for tangent in given]

    def of_example(self, split: Split, number: int) -> _Forward:
        """With the values and tangents of the example."""
        return _Forward(self.set_up.of_example(split, number), split.part(self.tangents, number))

    def gathered(self, split: Split, results: dict[int, Any]) -> list[Variable | None]:
        """A batch of changes where any example has one."""
        columns = [dict(zip(results, column)) for column in zip(*results.values())]
        edited = [{n: change for n, change in column.items() if change is not None} for column in columns]
        return [split.whole(column) if column else None for column in edited]


class JvpLayer(Layer):
    """One level of forward mode: its values are pairs of a value of the level below and the edit of it."""

    def process(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        """Run the call below, and the Function's `jvp` when an edited value takes part."""
        if not any(is_of(self, value) for value in layout_of(args)[0]):
            return function.apply(*args)
        separate_style(function, "jvp")
        if function.jvp is Function.jvp:
            raise AutogradError(
                f"func.jvp met {function.__name__}, which has no rule for edits of its inputs. Write a static method "
                "jvp(ctx, *tangents) that returns for each output a text or Variable that says how it changes (None "
                "where it stays), or cut the edit off before it with v.detach()."
            )
        primals = map_variables(lambda value: below(self, value), args)
        outs = function.apply(*primals)
        single = not isinstance(outs, tuple)
        values = (outs,) if single else outs
        tangents = tuple([self._edits(value) for value in args])
        needs = tuple([tangent is not None for tangent in tangents])
        # As with `grad`, the rule sees the values of the level below: what it computes is recorded by an outer grad.
        changes = run_rule(_Forward(SetUp(function, needs, primals, values, single), tangents))
        duals = tuple([self.dual(value, change) for value, change in zip(values, changes)])
        return duals[0] if single else duals

    def _edits(self, value: Any) -> Any:
        """The tangent of an argument, in its shape; None when there is none in it."""
        edits = pytree.map_leaves(lambda leaf: leaf._inner[1] if is_of(self, leaf) else None, value)
        return edits if any(leaf is not None for leaf in pytree.leaves(edits)) else None

    def dual(self, primal: Any, tangent: Variable | None) -> Any:
        """A value of this level; the value itself where it is not edited."""
        if tangent is None or not isinstance(primal, Variable):
            return primal
        named = tangent._alias()
        named._role = f"edit of the {primal._role}" if primal._role else "edit"
        return wrapped(self, (primal, named), primal)

    def tangent_of(self, value: Variable) -> Variable:
        """How a result is edited; empty where it is not."""
        if is_of(self, value):
            tangent: Variable = value._inner[1]
            return tangent
        return Variable("", role=f"edit of the {value._role}" if value._role else "edit")


def jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of a function, and what would change in it if its arguments were edited.

    One pass forward, whatever the number of results: use it to find out what an edit would do before making it.

    Args:
        function: gives a Variable, or a tuple, list or dict of them.
        primals: its arguments.
        tangents: for each argument how it is edited, in words (a text or a Variable); None for one that stays. An
            argument that is a container takes a container of its shape, a batch takes one text for all entries or a
            list with one for each.
        has_aux: the function returns ``(outputs, aux)``.

    Returns:
        ``(outputs, changes)``, or with `has_aux` ``(outputs, changes, aux)``. `changes` has the shape of the outputs:
        Variables that describe how each would change, with "" for one that would stay.

    Raises:
        AutogradError: the tangents do not fit the arguments, or a Function without a jvp rule meets an edited value.

    Example:
        >>> from textgrad_engine import ops
        >>> out, change = jvp(lambda name: ops.format("Hello {x}!", x=name), ("Ann",), ("becomes 'Bob'",))
        >>> out.data, change.data
        ('Hello Ann!', "In {x}: becomes 'Bob'")
    """
    call = called("jvp", function)
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise AutogradError(
                f"{call}: {name} is a tuple with an entry for each argument of the function, got "
                f"{type(given).__name__} {given!r:.40}"
            )
    if len(primals) != len(tangents):
        raise AutogradError(
            f"{call}: got {len(primals)} primals and {len(tangents)} tangents; None stands for what stays as it is"
        )
    layer = JvpLayer()
    pairs = enumerate(zip(primals, tangents))
    edited = [_argument(layer, primal, tangent, f"{call}: argument {n}") for n, (primal, tangent) in pairs]
    with layer:
        outputs = function(*edited)
    results, aux = outputs if has_aux else (outputs, None)
    for value in pytree.leaves(results):
        if not isinstance(value, Variable):
            raise AutogradError(
                f"{call}: expected Variables (or tuples, lists, dicts of them) from the function, got "
                f"{type(value).__name__} {value!r:.40}"
            )
    plain = map_variables(lambda value: below(layer, value), results)
    changes = map_variables(layer.tangent_of, results)
    return (plain, changes, map_variables(lambda v: below(layer, v), aux)) if has_aux else (plain, changes)


def _argument(layer: JvpLayer, primal: Any, tangent: Any, where: str) -> Any:
    """An argument with its edits put on."""
    if tangent is None:
        return primal
    if pytree.is_container(primal):
        return _container(layer, primal, tangent, where)
    inner = lift(primal)
    if not isinstance(inner, Variable):
        raise AutogradError(
            f"{where}: it is {type(primal).__name__} {primal!r:.40}, which an edit in words cannot change"
        )
    if not isinstance(tangent, Variable | str | list):
        raise AutogradError(f"{where}: an edit is a text or a Variable, got {type(tangent).__name__} {tangent!r:.40}")
    edit = tangent if isinstance(tangent, Variable) else Variable(tangent)
    return inner if edit._layer is None and edit.done() and edit._says_nothing() else layer.dual(inner, edit)


def _container(layer: JvpLayer, primal: Any, tangent: Any, where: str) -> Any:
    keys = list(primal) if isinstance(primal, dict) else list(range(len(primal)))
    fits = type(tangent) is type(primal) and (
        set(tangent) == set(keys) if isinstance(primal, dict) else len(tangent) == len(keys)
    )
    if not fits:
        raise AutogradError(
            f"{where}: it is a {type(primal).__name__} of {len(keys)}, so its edits are one too (None for what stays); "
            f"got {tangent!r:.60}"
        )
    parts = {key: _argument(layer, primal[key], tangent[key], f"{where}[{key!r}]") for key in keys}
    if isinstance(primal, dict):
        return parts
    values = list(parts.values())
    return type(primal)(*values) if hasattr(primal, "_fields") else type(primal)(values)


def _tangent(given: Any, function: type[Function]) -> Variable | None:
    """What a rule returned for one output."""
    if given is None or isinstance(given, Variable):
        return given
    if isinstance(given, str):
        return Variable(given) if given else None
    if hasattr(given, "close") and hasattr(given, "send"):
        given.close()
        raise AutogradError(f"{function.__name__}.jvp is a plain def: what it asks a model is pending by itself")
    raise AutogradError(
        f"{function.__name__}.jvp gives Variables, texts or None, got {type(given).__name__} {given!r:.60}"
    )
