"""Many candidates on many examples at once: nested `vmap`, for programs that allow it.

A program does when it only computes with its inputs, without looking at them: then what it does for one candidate and
one example is what it does for all. Whether it is one is found out by a rehearsal, in which no call is made: one that
looks at a value would otherwise be noticed when its first calls are paid for. Each value keeps a place of its own in
the grid, so one lost answer costs one score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from textgrad_engine.autograd import Function, Layer, Variable, no_grad
from textgrad_engine.autograd.layers import LAYERS
from textgrad_engine.func import functional_call, vmap
from textgrad_engine.func.vmap import VmapLayer
from textgrad_engine.nn import Module
from textgrad_engine.train.calling import Score, as_variable

__all__ = ["Row", "is_straight", "run_grid", "same_shape"]

Row = tuple[str, dict[str, Any], Any]
"""An example: its id, the program's arguments, and its target."""


def run_grid(
    program: Module, loss: Callable[..., Variable], candidates: Sequence[Mapping[str, Variable]], rows: Sequence[Row]
) -> list[list[tuple[Variable, Variable]]]:
    """Dispatch every candidate on every example.

    Args:
        program: the program.
        loss: called with the prediction, the target, and the fields of the example.
        candidates: for each the values of the program's parameters, by dotted name.
        rows: the examples, which have the `same_shape`.

    Returns:
        For each candidate, for each example its prediction and its loss, which may be pending.

    Raises:
        AutogradError: the program looks at a value; `is_straight` tells beforehand.
    """
    values = {name: [candidate[name] for candidate in candidates] for name in candidates[0]}
    inputs = {field: [fields[field] for _, fields, _ in rows] for field in rows[0][1]}
    targets = None if rows[0][2] is None else [target for _, _, target in rows]
    made: list[tuple[VmapLayer, VmapLayer, Variable, Variable]] = []

    def score(candidate: dict[str, Any], fields: dict[str, Any], target: Any) -> Variable:
        outer, inner = LAYERS.get()[-2:]
        assert isinstance(outer, VmapLayer)
        assert isinstance(inner, VmapLayer)
        prediction = as_variable(functional_call(program, candidate, **fields))
        found = loss(prediction, target, fields)
        made.append((outer, inner, prediction, found))
        return found

    by_example = vmap(
        score,
        in_dims=(None, 0 if inputs else None, None if targets is None else 0),
        randomness="same",
        names=[name for name, _, _ in rows],
    )
    by_candidate = vmap(by_example, in_dims=(0, None, None), randomness="same", names=[""] * len(candidates))
    by_candidate(values, inputs, targets)
    ((outer, inner, prediction, found),) = made

    def columns(value: Variable) -> list[list[Any]]:
        return [outer.entries(entry) for entry in inner.entries(value)]

    pairs = [list(zip(*both)) for both in zip(columns(prediction), columns(found))]
    return [list(row) for row in zip(*pairs)]


def same_shape(rows: Sequence[Row]) -> bool:
    """Whether examples can be put into one batch: all have the same fields, of text, and text or nothing as target."""
    fields = list(rows[0][1])
    texts = all(list(row[1]) == fields and all(isinstance(value, str) for value in row[1].values()) for row in rows)
    return texts and (all(isinstance(row[2], str) for row in rows) or all(row[2] is None for row in rows))


def is_straight(program: Module, loss: Score, candidate: Mapping[str, Variable], row: Row) -> bool:
    """Whether a program and its loss can be run in a grid; found out on one example, without a call."""
    try:
        with no_grad(), _Rehearsal():
            run_grid(program, loss, [candidate], [row])
    except Exception:  # whatever it is: run example by example, it either works or is raised in the user's own words
        return False
    return True


class _NotStraight(Exception):
    """A value was looked at."""


class _Nothing:
    """Stands where a Call would: a value that is never computed."""

    done = False
    failed = False

    def result(self) -> NoReturn:
        """Refuse."""
        raise _NotStraight


class _Rehearsal(Layer):
    """Computes nothing: what a Function would be dispatched for is a value that nobody may look at."""

    def process(self, function: type[Function], args: tuple[Any, ...]) -> Any:
        """Give as many values as the Function has outputs."""
        if not (function._style.asynchronous or function.deferrable):
            raise _NotStraight  # its forward runs at once, and waits for what it looks at
        values = [Variable("", role="") for _ in range(function.count_outputs(*args))]
        for value in values:
            value._call = _Nothing()  # type: ignore[assignment]  # looked at as a Call would be, never awaited
        return tuple(values) if len(values) > 1 else values[0]
