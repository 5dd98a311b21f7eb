"""The mean of several scores by their weights, each as its part of its scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from textgrad_engine.autograd import Source, Variable
from textgrad_engine.autograd.gradient import Items, entered, is_start
from textgrad_engine.ops.entrywise import Entrywise, by_entry, sized
from textgrad_engine.ops.operands import numbered, places_of
from textgrad_engine.ops.pass_on import data_of, edit_of_parts, joined_role
from textgrad_engine.ops.weights import comparable, shares_of


class _WeightedMean(Entrywise):
    """Full marks of all are 1 to the last digit, which sums of products are not: what is right has no less."""

    collects = adds_up = True

    @staticmethod
    def forward(
        values: list[Any], weights: Sequence[float], scales: Sequence[tuple[float, float]], names: Sequence[str]
    ) -> Variable:
        shares = comparable(weights)

        def mean(scores: list[float]) -> float:
            parts = [(score - low) / (high - low) for score, (low, high) in zip(scores, scales)]
            return math.fsum(share * part for share, part in zip(shares, parts)) / math.fsum(shares)

        return Variable(by_entry("weighted_mean", mean, [data_of(value) for value in values]), role=joined_role(values))

    @classmethod
    def setup_context(cls, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        super().setup_context(ctx, inputs, output)
        ctx.named = list(zip(inputs[3], shares_of(inputs[1])))

    @staticmethod
    def backward(ctx: Any, grad_out: Variable) -> Any:
        heard, *others = Entrywise.backward(ctx, grad_out)
        if heard is not None and len(ctx.named) > 1:
            heard = [None if said is None else _counting(said, *of) for said, of in zip(heard, ctx.named)]
        return heard, *others

    @staticmethod
    def output_role(values: list[Any], *_: Any) -> str:
        return joined_role(values)

    @staticmethod
    def places(values: list[Any], *_: Any) -> tuple[Any, ...]:
        return places_of(len(values)), None, None, None

    @staticmethod
    def jvp(ctx: Any, edits: list[Variable | None] | None, *_: None) -> Variable | None:
        return edit_of_parts(numbered(ctx.primals[0], edits))


def _counting(said: Variable | Items, name: str, share: float) -> Items:
    """What is said of the mean, for one of its values: what begins a pass begins it for that share (`Source.shares`).

    Where the mean is itself a part of another score, it is the share of that share.
    """
    found = []
    for item in said.grad if isinstance(said, Variable) else said:
        if is_start(item):
            item = entered(item)
            source = item.source or Source()
            whole = math.prod([above for _, above in source.shares])
            item.source = replace(source, shares=((name, share * whole),))
        found.append(item)
    return found


def weighted_mean(
    values: Sequence[Variable],
    weights: Sequence[float],
    scales: Sequence[tuple[float, float]],
    names: Sequence[str] = (),
) -> Variable:
    """The mean of scores by their weights, from 0 to 1. Feedback on it goes on to each as it is.

    What evaluators say where a pass begins here knows for how much of the mean it counts (`Source.shares`).

    Args:
        values: the scores; of batches each entry.
        weights: of each, above 0.
        scales: of each the lowest and the highest score.
        names: of each, for the critic; numbers where there are none.

    Example:
        >>> weighted_mean([Variable(1), Variable(3.0)], [3, 1], [(0, 1), (1, 5)]).data
        0.875
    """
    names = names or [f"part {number}" for number in range(1, len(values) + 1)]
    return sized(_WeightedMean.apply(list(values), tuple(weights), tuple(scales), tuple(names)), values)
