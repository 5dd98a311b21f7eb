"""Small pictures as inline SVG: widths in per cent and heights in pixels, so that texts and dots keep their size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from textgrad_engine.report.html import Inside, Markup, element

_EDGE = 2.0
"""Per cent of the width that stay free left and right, for dots."""

_LEAST = 1e-12
"""What an axis has beyond its values on each side at least; smaller differences of scores are those of rounding."""

_NAMES = 9.0
"""The same on the left where the values from bottom to top are named there."""


@dataclass(frozen=True)
class Axis:
    """The values that a picture shows from left to right, or from bottom to top.

    Attributes:
        low: the value at the one end.
        high: the one at the other.
        ticks: the values that are named.
        start: per cent of the width that stay free before the low end.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    start: float = _EDGE

    @classmethod
    def around(cls, values: Sequence[float], *, limits: tuple[float, float] | None = None) -> Axis:
        """An axis that holds all values; `limits` are its ends where they are given, unless a value is beyond.

        Example:
            >>> Axis.around([0.12, 0.87]).ticks
            (0.2, 0.4, 0.6, 0.8)
        """
        known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(known), max(known)
        if limits is not None and limits[0] <= low and high <= limits[1]:
            low, high = limits
        else:
            room = max((high - low or abs(high) or 1.0) * 0.08, _LEAST)
            low, high = low - room, high + room
        step = _step(high - low)
        first = math.ceil(low / step - 1e-9)
        last = math.floor(high / step + 1e-9)
        ticks = tuple(float(f"{number * step:.12g}") for number in range(first, last + 1))
        return cls(low, high, ticks)

    def at(self, value: float) -> float:
        """Where a value is: per cent of the way, at the edge for what is beyond."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + (100 - self.start - _EDGE) * min(1.0, max(0.0, share))

    def where(self, value: float) -> str:
        """The same as an attribute."""
        return f"{self.at(value):.2f}%"


def _step(span: float) -> float:
    """The distance of ticks: 1, 2 or 5 times a power of ten, so that there are three to seven of them."""
    rough = span / 5
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)


def interval_row(
    axis: Axis, value: float, interval: tuple[float, float], kind: str, mark: float | None = None
) -> Markup:
    """A value as a dot with its interval as a line.

    Args:
        axis: the values from left to right.
        value: the dot.
        interval: where the line begins and ends; an infinite end is drawn to the edge.
        kind: the class of its colors.
        mark: a value that is marked by a line from top to bottom.
    """
    low, high = interval
    parts: list[Inside] = _grid(axis)
    if mark is not None:
        parts.append(element("line", x1=axis.where(mark), x2=axis.where(mark), y1=0, y2=24, class_="zero"))
    parts.append(element("line", x1=axis.where(low), x2=axis.where(high), y1=12, y2=12, class_=f"range {kind}"))
    parts += [
        element("line", x1=axis.where(end), x2=axis.where(end), y1=8, y2=16, class_=f"range {kind}")
        for end in (low, high)
        if math.isfinite(end)
    ]
    parts.append(element("circle", cx=axis.where(value), cy=12, r=5, class_=f"dot {kind}"))
    return _picture(parts, 24)


def axis_row(axis: Axis) -> Markup:
    """The numbers below rows of intervals."""
    return _picture([_number(axis, tick, 12) for tick in axis.ticks], 16)


def gains(gained: int, lost: int, same: int) -> Markup:
    """On how many examples something did better, worse and alike, as a bar."""
    total = max(1, gained + lost + same)
    parts: list[Inside] = []
    start = 0.0
    for kind, number in (("good", gained), ("bad", lost), ("same", same)):
        share = 100 * number / total
        if number:
            parts.append(element("rect", x=f"{start:.2f}%", y=0, width=f"{share:.2f}%", height=8, class_=f"bar {kind}"))
        start += share
    return _picture(parts, 8)


def stairs(values: Sequence[float], marked: Sequence[bool], label: str) -> Markup:
    """A value after each step, from left to right; the first is that before the first step.

    Args:
        values: the values.
        marked: which of them get a full dot.
        label: what it shows, for those who cannot see it.
    """
    height = 120
    up = Axis.around(values)
    along = Axis(0, max(1, len(values) - 1), (), _NAMES)
    at = [_up(up, value, height) for value in values]
    parts: list[Inside] = _levels(up, height)
    changes = [0, *(number for number in range(1, len(at)) if at[number] != at[number - 1]), len(at) - 1]
    for start, end in pairwise(changes):
        here, there = along.where(start), along.where(end)
        parts.append(element("line", x1=here, x2=there, y1=at[start], y2=at[start], class_="path"))
        parts.append(element("line", x1=there, x2=there, y1=at[start], y2=at[end], class_="path"))
    for number, (y, full) in enumerate(zip(at, marked)):
        if full:
            parts.append(element("circle", cx=along.where(number), cy=y, r=4, class_="dot best"))
    return _picture(parts, height, label)


def scatter(points: Sequence[tuple[float, float, str]], label: str) -> Markup:
    """Dots.

    Args:
        points: of each the value from left to right, that from bottom to top, and the class of its colors.
        label: what it shows, for those who cannot see it.
    """
    height = 150
    along = replace(Axis.around([x for x, _, _ in points]), start=_NAMES)
    up = Axis.around([y for _, y, _ in points])
    parts: list[Inside] = [*_levels(up, height)]
    parts += [_number(along, tick, height + 14) for tick in along.ticks]
    parts += [
        element("circle", cx=along.where(x), cy=_up(up, y, height), r=5, class_=f"dot {kind}") for x, y, kind in points
    ]
    return _picture(parts, height + 18, label)


def _levels(up: Axis, height: int) -> list[Inside]:
    """Lines from left to right with their values."""
    parts: list[Inside] = []
    for tick in up.ticks:
        y = _up(up, tick, height)
        parts.append(element("line", x1="0%", x2="100%", y1=y, y2=y, class_="grid"))
        parts.append(element("text", f"{tick:g}", x="0%", y=f"{y - 3:.1f}", class_="tick"))
    return parts


def _up(up: Axis, value: float, height: int) -> float:
    return round(height * (100 - up.at(value)) / 100, 1)


def _grid(axis: Axis) -> list[Inside]:
    return [
        element("line", x1=axis.where(tick), x2=axis.where(tick), y1=0, y2=24, class_="grid") for tick in axis.ticks
    ]


def _number(axis: Axis, tick: float, y: float) -> Markup:
    share = axis.at(tick)
    anchor = "start" if share < 5 else "end" if share > 95 else "middle"
    return element("text", f"{tick:g}", x=axis.where(tick), y=y, text_anchor=anchor, class_="tick")


def _picture(parts: Sequence[Inside], height: int, label: str = "") -> Markup:
    """A picture as wide as there is room; without a label it says nothing that is not beside it in words."""
    if label:
        return element("svg", *parts, width="100%", height=height, role="img", aria_label=label)
    return element("svg", *parts, width="100%", height=height, aria_hidden="true")
