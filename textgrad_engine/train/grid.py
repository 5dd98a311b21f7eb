"""Many candidates on many examples at once: nested `vmap`, for programs that are made of the library's modules alone.

`vmap` runs a program once for all, so it may be used where a program does for every example what it does for one. Of a
`forward` that somebody wrote nobody can tell: inside `vmap` a field is a Variable that stands for many texts, and a
comparison with it is by identity. The library's own modules only compute with what they are given, and so do its
losses; a Metric's function is called with each example's own texts.

What does not depend on the candidate, such as the answers of a first prompt that is not trained, is asked for once for
all candidates. Whatever else is asked is asked as each example asks it alone, candidate after candidate, so that a
budget that ends in between has paid for the first ones whole. Each value keeps a place of its own in the grid, so one
lost answer costs one score. Only a spent budget, or a stop, that a metric or tool has met and caught is all the grid's,
as nobody knows whose it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.autograd.layers import LAYERS
from textgrad_engine.func import functional_call, vmap
from textgrad_engine.func.vmap import VmapLayer
from textgrad_engine.llm.ended import meeting_endings
from textgrad_engine.llm.places import numbering_places
from textgrad_engine.nn import (
    ChatCompletion,
    ExactMatch,
    JSONMatch,
    Judge,
    Metric,
    Module,
    OnField,
    OnMatch,
    Rubric,
    Sequential,
    Weighted,
)
from textgrad_engine.nn.metric_functions import Score
from textgrad_engine.nn.scores import OnPart
from textgrad_engine.slots import slots_of
from textgrad_engine.train.calling import Ran, scored_by_parts

Row = tuple[str, dict[str, Any], Any]
"""An example: its id, the program's arguments, and its target."""


def is_uniform(program: Module, loss: Callable[..., Any]) -> bool:
    """Whether a program and its loss do the same for all examples: they are the library's own modules, without hooks.

    Args:
        program: the program.
        loss: its loss.

    Example:
        >>> chat = ChatCompletion("{word}", system="Say it.")
        >>> is_uniform(Sequential(chat), ExactMatch()), is_uniform(chat, lambda prediction, target: 1)
        (True, False)
    """
    return all(_is_one_of((ChatCompletion, Sequential), module) for module in program.modules()) and _is_even(loss)


def _is_even(loss: Callable[..., Any]) -> bool:
    if isinstance(loss, Metric) and loss.reads_inputs:  # which are to be those of one example
        return False
    if isinstance(loss, OnPart | Weighted):
        return _is_one_of((OnField, OnMatch, Weighted), loss) and all(map(_is_even, loss.losses))
    return _is_one_of((ExactMatch, JSONMatch, Metric, Judge, Rubric), loss)


def _is_one_of(types: tuple[type[Module], ...], module: Any) -> bool:
    """Whether it is of one of these types itself, and nothing else runs when it is called."""
    if type(module) not in types:
        return False
    return not (module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module))


def same_shape(rows: Sequence[Row], *, by_field: bool) -> bool:
    """Whether examples can be put into one batch: all have the same fields, of text, and text or nothing as target.

    Without any field there is nothing to tell them apart by, and the program would be asked once for all.

    Args:
        rows: the examples.
        by_field: whether a target is a dict of several, as of a `Weighted` with targets.
    """
    fields = list(rows[0][1])
    if not fields:
        return False
    return all(list(row[1]) == fields and _are_texts(row[1]) for row in rows) and (
        all(isinstance(row[2], str) for row in rows)
        or all(row[2] is None for row in rows)
        or (by_field and all(_are_texts(row[2]) for row in rows))
    )


def _are_texts(values: Mapping[str, Any]) -> bool:
    return all(isinstance(value, str) for value in values.values())


def same_slots(candidates: Sequence[Sequence[str]]) -> bool:
    """Whether the texts of candidates have the same slots in the same places, which are looked up once for all."""
    slots = [[set(slots_of(text)) for text in texts] for texts in candidates]
    return all(each == slots[0] for each in slots)


def run_grid(
    program: Module, loss: Score, candidates: Sequence[Mapping[str, Variable]], rows: Sequence[Row]
) -> list[list[Ran]]:
    """Dispatch every candidate on every example.

    Args:
        program: the program, which with its loss `is_uniform`.
        loss: called with the prediction, the target, and the fields of the example.
        candidates: for each the values of the program's parameters, by dotted name; they have the `same_slots`.
        rows: the examples, which have the `same_shape`.

    Returns:
        For each candidate, for each example its prediction and its loss.
    """
    values = {name: [candidate[name] for candidate in candidates] for name in candidates[0]}
    inputs = [fields for _, fields, _ in rows]
    targets = None if rows[0][2] is None else [target for _, _, target in rows]
    made: list[tuple[VmapLayer, VmapLayer, Variable, Variable, tuple[Variable, ...]]] = []

    def score(candidate: dict[str, Any], fields: dict[str, Any], target: Any) -> Variable:
        outer, inner = LAYERS.get()[-2:]
        assert isinstance(outer, VmapLayer)
        assert isinstance(inner, VmapLayer)
        prediction = functional_call(program, candidate, **fields)
        found, parts = scored_by_parts(loss, prediction, target, fields)
        made.append((outer, inner, prediction, found, parts))
        scored: Variable = found
        return scored

    # What is the inner batch here is gone through first.
    by_candidate = vmap(score, in_dims=(0, None, None), randomness=None, names=[""] * len(candidates))
    by_example = vmap(
        by_candidate,
        in_dims=(None, 0, None if targets is None else 0),
        randomness=None,
        names=[name for name, _, _ in rows],
    )
    with meeting_endings() as met, numbering_places():
        by_example(values, inputs, targets)
    ((outer, inner, prediction, found, parts),) = made

    def table(value: Variable) -> list[list[Any]]:
        return [outer.entries(entry) for entry in inner.entries(value)]

    each = zip(table(prediction), table(found), *map(table, parts))
    return [[Ran(said, score, tuple(own), met) for said, score, *own in zip(*of)] for of in each]
