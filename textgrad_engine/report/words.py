"""Numbers and sentences as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from textgrad_engine.train.scores import LEVEL, apart, unless_alike

NOT_MEASURED = "not measured"


def score(value: float, signed: bool = False) -> str:
    """A score, or a difference of two, with three decimals.

    Example:
        >>> score(0.92), score(-1e-17), score(0.46, signed=True)
        ('0.920', '0.000', '+0.460')
    """
    return f"{unless_alike(value):+.3f}" if signed else f"{value:z.3f}"


def within(bounds: tuple[float, float], signed: bool = False) -> str:
    """Where a number is, of which one bound may be infinite.

    Example:
        >>> within((0.5, 0.75)), within((1.5, math.inf)), within((-math.inf, 0.25), signed=True)
        ('between 0.500 and 0.750', 'at least 1.500', 'at most +0.250')
    """
    low, high = (score(bound, signed) for bound in bounds)
    if math.isinf(bounds[0]):
        return f"at most {high}"
    return f"at least {low}" if math.isinf(bounds[1]) else f"between {low} and {high}"


def interval(bounds: tuple[float, float], signed: bool = False) -> str:
    """An interval.

    Example:
        >>> interval((0.855, 0.957))
        '[0.855, 0.957]'
    """
    low, high = bounds
    return f"[{score(low, signed)}, {score(high, signed)}]"


def p_value(value: float) -> str:
    """A p-value with no more digits than it deserves, and as many as tell on which side of the level it is.

    Example:
        >>> p_value(9e-13), p_value(0.0213), p_value(0.0502)
        ('p < 0.001', 'p = 0.021', 'p = 0.0502')
    """
    return "p < 0.001" if value < 0.001 else f"p = {apart(value, LEVEL)[0]}"


def count(value: int) -> str:
    """A whole number with its thousands apart.

    Example:
        >>> count(1696)
        '1,696'
    """
    return f"{value:,}"


def plural(value: int, word: str, many: str = "") -> str:
    """A number and its noun.

    Example:
        >>> plural(1, "step"), plural(12, "step")
        ('1 step', '12 steps')
    """
    return f"{count(value)} {word if value == 1 else many or word + 's'}"


def short(value: int) -> str:
    """A count in three digits or so.

    Example:
        >>> short(950), short(2_130), short(210_345), short(12_345_678)
        ('950', '2.1k', '210k', '12.3M')
    """
    for unit, size in (("M", 10**6), ("k", 10**3)):
        scaled = value / size
        if scaled >= 0.9995:
            return f"{scaled:.0f}{unit}" if scaled >= 99.95 else f"{scaled:.1f}{unit}"
    return str(value)


def duration(seconds: float) -> str:
    """How long something took or will take.

    Example:
        >>> duration(0.63), duration(42.2), duration(754), duration(7300)
        ('0.6 s', '42 s', '12 min 34 s', '2 h 1 min')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def decimals(seconds: Sequence[float]) -> int:
    """With how many decimals the times of answers are told beside each other: a model nearby takes milliseconds.

    Example:
        >>> decimals([1.5, 0.02]), decimals([0.0041, 0.0035])
        (2, 4)
    """
    return 2 if max(seconds) >= 0.1 else 4


def in_order(names: set[str]) -> list[str]:
    """Names sorted so that ``t9`` comes before ``t10``.

    Example:
        >>> in_order({"t10", "t9"})
        ['t9', 't10']
    """
    return sorted(
        names,
        key=lambda name: [(not p.isdecimal(), int(p) if p.isdecimal() else 0, p) for p in re.split(r"(\d+)", name)],
    )


def capital(text: str) -> str:
    """A text that begins like a sentence."""
    return text[:1].upper() + text[1:]
