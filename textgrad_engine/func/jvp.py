"""`jvp`: forward mode. An edit of the arguments, described in words, becomes a described change of the result.

NOTE [Tangents in words]
    A tangent says how a value is edited: "add an example", "becomes 'billing'". The tangent of a result is an edit of
    the result. Plain operations have exact rules (the edit of a part is an edit of the whole that names the part); for
    a chat completion a model is asked what would change in the answer; an evaluator is run again on the edited
    prediction. No tangent, or an empty one, is a real zero: nothing changes, and nobody is asked. A rule is given None
    for it, in a batch for each example by itself (`_Stays`). One that is still on its way is not waited for and counts
    as an edit, and so does an empty one that is recorded: feedback may say what it should be, at whatever time it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

from textgrad_engine import pytree
from textgrad_engine.autograd import Function, Layer, Variable
from textgrad_engine.autograd.arguments import layout_of
from textgrad_engine.autograd.context import Context
from textgrad_engine.autograd.layers import LAYERS
from textgrad_engine.autograd.rules import Rule, SetUp, Split, run_rule
from textgrad_engine.checks import check
from textgrad_engine.errors import AutogradError
from textgrad_engine.func.columns import entry_of, keys_of, made_of
from textgrad_engine.func.levels import (
    below,
    called,
    is_of,
    kind_of,
    lift,
    map_variables,
    separate_style,
    with_aux,
    wrapped,
)
from textgrad_engine.wording import a_class


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
        return run_jvp(self.function, ctx, self.tangents, self.set_up.single, len(self.set_up.outputs))

    def of_example(self, split: Split, number: int) -> _Forward | None:
        """With the values and tangents of the example; None where all of these are zeros."""
        tangents = tuple([without_zero_edits(tangent) for tangent in split.part(self.tangents, number)])
        needs = _needs(tangents)
        return _Forward(replace(self.set_up.of_example(split, number), needs=needs), tangents) if any(needs) else None

    def gathered(self, split: Split, results: dict[int, Any]) -> list[Variable | None]:
        """A batch of changes where any example has one."""
        columns = [{n: changes[output] for n, changes in results.items()} for output in range(len(self.set_up.outputs))]
        edited = [{n: change for n, change in column.items() if change is not None} for column in columns]
        return [split.whole(column, _Stays()) if column else None for column in edited]


class _Stays(str):
    """The edit of a value that stays as it is, in a batch in which others are edited; told by its class.

    Where an outer `grad` has recorded the batch, an empty text may be an edit that feedback says something of.
    """

    __slots__ = ()


def run_jvp(
    function: type[Function], ctx: Context, tangents: tuple[Any, ...], single: bool, count: int
) -> list[Variable | None]:
    """Call a Function's `jvp`; for each output its tangent, or None.

    Raises:
        AutogradError: it gave another number of tangents than there are outputs, or something else.
    """
    returned = function.jvp(ctx, *tangents)
    given = returned if isinstance(returned, tuple) and not single else (returned,)
    if len(given) != count:
        raise AutogradError(
            f"{function.__name__}.jvp returned {len(given)} tangents, expected {count}: one for each output, "
            "None for those that stay"
        )
    return [_tangent(tangent, function) for tangent in given]


class JvpLayer(Layer):
    """One level of forward mode: its values are pairs of a value of the level below and the edit of it."""

    def process(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        """Run the call below, and the Function's `jvp` when an edited value takes part."""
        if not any(is_of(self, value) for value in layout_of(args)[0]):
            return function.apply(*args)
        primals = map_variables(lambda value: below(self, value), args)
        tangents = tuple([self._edits(value) for value in args])
        needs = _needs(tangents)
        if not any(needs):
            return function.apply(*primals)
        separate_style(function, "jvp")
        if function.jvp is Function.jvp:
            raise AutogradError(
                f"func.jvp met {function.__name__}, which has no rule for edits of its inputs. Write a static method "
                "jvp(ctx, *tangents) that returns for each output a text or Variable that says how it changes (None "
                "where it stays), or cut the edit off before it with v.detach()."
            )
        outs = function.apply(*primals)
        single = not isinstance(outs, tuple)
        values = (outs,) if single else outs
        # As with `grad`, the rule sees the values of the level below: what it computes is recorded by an outer grad.
        changes = run_rule(_Forward(SetUp(function, needs, primals, values, single), tangents))
        duals = tuple([self.dual(value, change) for value, change in zip(values, changes)])
        return duals[0] if single else duals

    def _edits(self, value: Any) -> Any:
        """The tangent of an argument, in its shape; None when there is none in it."""
        return without_zero_edits(pytree.map_leaves(lambda leaf: leaf._inner[1] if is_of(self, leaf) else None, value))

    def dual(self, primal: Any, tangent: Variable | None) -> Any:
        """A value of this level; the value itself where it is not edited."""
        if tangent is None or not isinstance(primal, Variable):
            return primal
        return wrapped(self, (primal, _named(tangent, primal)), primal)

    def tangent_of(self, value: Variable) -> Variable:
        """How a result is edited; empty where it is not."""
        if is_of(self, value):
            tangent: Variable = value._inner[1]
            return tangent
        whole = value._whole()
        if whole._layer is None or whole._role:
            return Variable("", role=_role_of_edit(value))
        unedited: Variable = whole._layer.batch([self.tangent_of(entry) for entry in whole._inner])
        return unedited


def _role_of_edit(value: Variable) -> str:
    return f"edit of the {value._role}" if value._role else "edit"


def _named(edit: Variable, value: Variable) -> Variable:
    """An edit that says by its role what it is an edit of; where it is one for each example, each of them says so."""
    named = edit._alias(Variable)
    named._role = _role_of_edit(value)
    inner = edit._inner
    if isinstance(inner, list):
        named._inner = [_named(*pair) for pair in zip(inner, _entries(value, edit._layer, len(inner)))]
    elif isinstance(inner, tuple):  # of an outer level of this kind
        first = _named(inner[0], value)
        named._inner = first, _named(inner[1], first)
    elif isinstance(inner, Variable):
        named._inner = _named(inner, value)
    return named


def _entries(value: Variable, layer: Layer, size: int) -> list[Variable]:
    """A value for each example of a level of batching."""
    whole = value._whole()
    entries: list[Variable] = whole._inner
    return entries if whole._layer is layer else [value] * size


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
        AutogradError: the tangents do not fit the arguments (of a batch that is still pending, its size is not looked
            at), or a Function without a jvp rule meets an edited value.

    Example:
        >>> from textgrad_engine import ops
        >>> out, change = jvp(lambda name: ops.format("Hello {x}!", x=name), ("Ann",), ("becomes 'Bob'",))
        >>> out.data, change.data
        ('Hello Ann!', "In {x}: becomes 'Bob'")
    """
    check(jvp, {"has_aux": has_aux})
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
    results, aux = with_aux(outputs, has_aux, call)
    handed_on = {id(leaf) for leaf in pytree.leaves(edited)}  # an argument that stays may be a result as it is
    results = pytree.map_leaves(lambda leaf: lift(leaf) if id(leaf) in handed_on else leaf, results)
    for value in pytree.leaves(results):
        if not isinstance(value, Variable):
            raise AutogradError(
                f"{call}: expected Variables (or tuples, lists, dicts of them) from the function, got {kind_of(value)}"
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
    check_edit(None, tangent, where)
    edit = _edit_of(tangent, where)
    for original, change in _by_example(inner, edit):
        for given in (tangent, change):  # in a list some may be known before all of them are
            check_edit(original._data if original._call is None else None, given, where)
    return inner if _is_zero(edit) else layer.dual(inner, edit)


def _container(layer: JvpLayer, primal: Any, tangent: Any, where: str) -> Any:
    keys = keys_of(primal)
    if type(tangent) is not type(primal) or set(keys_of(tangent)) != set(keys):
        raise AutogradError(
            f"{where}: it is {a_class(type(primal))} of {len(keys)}, so its edits are one too (None for what stays); "
            f"got {tangent!r:.60}"
        )
    return made_of(primal, [_argument(layer, primal[key], tangent[key], f"{where}[{key!r}]") for key in keys])


def _edit_of(given: Any, where: str) -> Variable:
    """An edit as a Variable."""
    if isinstance(given, list) and any(isinstance(leaf, Variable) for leaf in pytree.leaves(given)):
        return entry_of(given, where)
    return given if isinstance(given, Variable) else Variable(given)


def _by_example(primal: Variable, edit: Variable) -> Iterator[tuple[Variable, Variable]]:
    """A value and the edit of it without their levels: for each example, where they stand for one per example."""
    pair = [primal._whole(), edit._whole()]
    layers = [value._layer for value in pair if value._layer is not None]
    if not layers:
        yield pair[0], pair[1]
        return
    top = next((layer for layer in reversed(LAYERS.get()) if layer in layers), layers[0])
    for one in zip(*[value._inner if value._layer is top else repeat(value) for value in pair]):
        yield from _by_example(*one)


def check_edit(data: Any, edit: Any, where: str) -> None:
    """Check that an edit fits what it is an edit of, as far as both are known.

    Args:
        data: what is edited: a text or number, for a batch a list; None where it is not there yet.
        edit: a text or a Variable, or a list of these.
        where: the place, for messages.

    Raises:
        AutogradError: it is no text, nor a list of texts; or a list for a single value, or one of another length.
    """
    if isinstance(edit, Variable):
        if edit._layer is not None or edit._call is not None:
            return
        edit = edit._data
    if isinstance(edit, str):
        return
    if not isinstance(edit, list):
        raise AutogradError(f"{where}: an edit is a text or a Variable, got {type(edit).__name__} {edit!r:.40}")
    if data is not None and not isinstance(data, list):
        raise AutogradError(f"{where}: it is no batch, so an edit is a text or a Variable, got list {edit!r:.40}")
    if data is not None and len(edit) != len(data):
        raise AutogradError(
            f"{where}: it is a batch of {len(data)}, so its edit is one text for all entries, or a list of "
            f"{len(data)} texts; got a list of {len(edit)}: {edit!r:.60}"
        )
    for number, part in enumerate(edit):
        check_edit(None if data is None else data[number], part, f"{where}[{number}]")


def _is_zero(edit: Variable) -> bool:
    """Whether an edit is known to be empty, in a batch for each example; see NOTE [Tangents in words]."""
    if edit._layer is None:
        return edit._call is None and not edit._requires_grad and edit._says_nothing()
    return all(_is_zero(part) for part in edit._parts()) if isinstance(edit._inner, list) else _stays(edit)


def _stays(edit: Variable) -> bool:
    """Whether it is no edit at all, whoever has recorded it; in a batch for each example."""
    below = edit._whole()
    return type(below._data) is _Stays if below._layer is None else all(map(_stays, below._parts()))


def without_zero_edits(tangent: Any) -> Any:
    """The tangent of an argument with None for the zeros in it; None when there is nothing else."""
    kept = pytree.map_leaves(lambda leaf: None if leaf is None or _is_zero(leaf) else leaf, tangent)
    return kept if any(leaf is not None for leaf in pytree.leaves(kept)) else None


def _needs(tangents: tuple[Any, ...]) -> tuple[bool, ...]:
    """Which arguments are edited."""
    return tuple([tangent is not None for tangent in tangents])


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
