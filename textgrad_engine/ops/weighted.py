"""The mean of several scores by their weights, each as its part of its scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from textgrad_engine.autograd import Variable
from textgrad_engine.ops.entrywise import Entrywise, by_entry, sized
from textgrad_engine.ops.pass_on import data_of, edit_of_parts
from textgrad_engine.ops.roles import joined_role

__all__ = ["weighted_mean"]


class _WeightedMean(Entrywise):
    """Full marks of all are 1 to the last digit, which sums of products are not: what is right has no less."""

    collects = adds_up = True

    @staticmethod
    def forward(values: list[Any], weights: Sequence[float], scales: Sequence[tuple[float, float]]) -> Variable:
        _, exponent = math.frexp(max(weights))
        shares = [math.ldexp(weight, -exponent) for weight in weights]  # the largest are up to 1: no sum is too large

        def mean(scores: list[float]) -> float:
            parts = [(score - low) / (high - low) for score, (low, high) in zip(scores, scales)]
            return math.fsum(share * part for share, part in zip(shares, parts)) / math.fsum(shares)

        return Variable(by_entry("weighted_mean", mean, [data_of(value) for value in values]), role=joined_role(values))

    @staticmethod
    def output_role(values: list[Any], *_: Any) -> str:
        return joined_role(values)

    @staticmethod
    def places(values: list[Any], *_: Any) -> tuple[Any, ...]:
        return ([f"part {number} of {len(values)}" for number in range(1, len(values) + 1)], None, None)

    @staticmethod
    def jvp(ctx: Any, edits: list[Variable | None] | None, *_: None) -> Variable | None:
        values = ctx.primals[0]
        numbered = [f"part {number} of {len(values)}" for number in range(1, len(values) + 1)]
        return edit_of_parts(list(zip(numbered, values, edits or [None] * len(values))))


def weighted_mean(
    values: Sequence[Variable], weights: Sequence[float], scales: Sequence[tuple[float, float]]
) -> Variable:
    """The mean of scores by their weights, from 0 to 1. Feedback on it goes on to each as it is.

    Args:
        values: the scores; of batches each entry.
        weights: of each, above 0.
        scales: of each the lowest and the highest score.

    Example:
        >>> weighted_mean([Variable(1), Variable(3.0)], [3, 1], [(0, 1), (1, 5)]).data
        0.875
    """
    return sized(_WeightedMean.apply(list(values), tuple(weights), tuple(scales)), values)
