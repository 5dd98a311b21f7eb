"""Lists of scores as the statistics take them: checked, paired, and added up by cluster."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

ALIKE = 1e-9
"""Scores that differ by no more are the same, but for rounding."""


LEVEL = 0.05
"""A p-value of more shows nothing, where nobody asks for another confidence than 95%."""


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is none.

    Raises:
        ValueError: it is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is between 0 and 1, such as 0.95, got {confidence}")


def finite_scores(name: str, values: Iterable[float]) -> list[float]:
    """The values as floats.

    Args:
        name: what they are called in a message.
        values: one score per example.

    Raises:
        ValueError: there are none, or one is missing or not a finite number.
    """
    given: list[Any] = list(values)
    if None in given:  # as an Evaluation has it
        raise ValueError(f"{name}[{given.index(None)}] is None, as of an unanswered example; leave such out")
    numbers = [float(value) for value in given]
    if not numbers:
        raise ValueError(f"{name} is empty: there is no interval without examples")
    for index, number in enumerate(numbers):
        if not math.isfinite(number):
            raise ValueError(f"{name}[{index}] is {number}, which is no score")
    return numbers


def apart(first: float, second: float) -> tuple[str, str]:
    """Two scores with three decimals, or with as many as tell them apart where they are not alike.

    Example:
        >>> apart(0.5, 0.25), apart(0.8998, 0.9), apart(0.7, 0.7)
        (('0.500', '0.250'), ('0.8998', '0.9000'), ('0.700', '0.700'))
    """
    if abs(first - second) > ALIKE:
        for decimals in range(3, 10):
            told = f"{first:z.{decimals}f}", f"{second:z.{decimals}f}"
            if told[0] != told[1]:
                return told
    return f"{first:z.3f}", f"{second:z.3f}"


def unless_alike(difference: float) -> float:
    """A difference of two scores; 0 where they are alike but for rounding, so that no sign is told of it.

    Example:
        >>> unless_alike(-2.8e-17), unless_alike(-0.25)
        (0.0, -0.25)
    """
    return difference if abs(difference) > ALIKE else 0.0


def same_length(before: Sequence[Any], after: Sequence[Any]) -> None:
    """Refuse pairs that are none.

    Raises:
        ValueError: there are more of the one than of the other.
    """
    if len(before) != len(after):
        raise ValueError(f"paired scores are of the same examples, got {len(before)} before and {len(after)} after")


def cluster_sums(values: Sequence[float], clusters: Sequence[Hashable]) -> tuple[list[float], list[int]]:
    """Add values up by cluster.

    Args:
        values: one per example.
        clusters: which cluster each example belongs to.

    Returns:
        The sum of each cluster and how many examples it has, in the order in which the clusters first appear.

    Raises:
        ValueError: there are more of the one than of the other.

    Example:
        >>> cluster_sums([1.0, 0.0, 1.0], ["mail 1", "mail 2", "mail 1"])
        ([2.0, 0.0], [2, 1])
    """
    if len(values) != len(clusters):
        raise ValueError(f"each example belongs to one cluster, got {len(values)} values and {len(clusters)} clusters")
    members: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters):
        members.setdefault(cluster, []).append(value)
    return [math.fsum(each) for each in members.values()], [len(each) for each in members.values()]


def cluster_means(values: Sequence[float], clusters: Sequence[Hashable]) -> tuple[list[float], list[int]]:
    """The mean of each cluster and how many examples it has, as `cluster_sums` has the sums.

    Args:
        values: one per example.
        clusters: which cluster each example belongs to.

    Raises:
        ValueError: there are more of the one than of the other.
    """
    sums, sizes = cluster_sums(values, clusters)
    return [total / size for total, size in zip(sums, sizes)], sizes
