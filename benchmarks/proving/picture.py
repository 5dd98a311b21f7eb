"""The benchmark's picture: how far the best prompt was, against tokens and against time. SVG, written by hand."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from html import escape

from proving.results import Axis, Run, way_at

_PANEL, _HEIGHT, _LEFT, _TOP, _GAP, _BELOW = 336, 220, 46, 34, 56, 46
_WIDTH = _LEFT + 2 * _PANEL + _GAP + 16
_COLUMNS, _ROW = 3, 20
_COLOURS = (
    "#0b6e99",
    "#c8553d",
    "#3a7d44",
    "#7b4fa3",
    "#b8860b",
    "#aaaaaa",
    "#111111",
    "#e6007e",
    "#6b4226",
    "#17a2a2",
    "#e08a2e",
    "#4363d8",
    "#8a9a5b",
)
_DASHES = ("", "7 3", "2 3")
_STEPS = 160
_TITLES: dict[Axis, str] = {"tokens": "tokens", "waits": "time, in answers"}


def picture(runs: Sequence[Run], own: Sequence[str] = (), strong: str = "") -> str:
    """An SVG with a row for each task: medians over seeds of the way gone, by tokens and by time (logarithmic).

    Of a system with several settings the one is drawn that goes farthest in the mean, and of the strong one its own.
    Where some have a wall time, the wait alone of others is not drawn beside it.

    Args:
        runs: the runs.
        own: names of optimizers whose lines are whole; those of others are dashed.
        strong: the name of the one with the thick line.
    """
    tasks = list(dict.fromkeys(run.task for run in runs))
    names = _best(runs, strong)
    styles = {}
    for place, name in enumerate(names):
        dash = _DASHES[0 if name in own else 1 + place % 2]
        more = f' stroke-dasharray="{dash}"' if dash else ""
        colour, thick = _COLOURS[place % len(_COLOURS)], 4 if name == strong else 2
        styles[name] = f'fill="none" stroke="{colour}" stroke-width="{thick}"{more}'
    row_height = _TOP + _HEIGHT + _BELOW
    height = len(tasks) * row_height + _ROW * math.ceil(len(names) / _COLUMNS) + 8
    size = f'width="{_WIDTH}" height="{height}"'
    fonts = 'font-family="sans-serif" font-size="13"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {size} {fonts}>',
        f'<rect {size} fill="white"/>',
    ]
    for row, task in enumerate(tasks):
        here = {name: [run for run in runs if (run.task, run.optimizer) == (task, name)] for name in names}
        for column, axis in enumerate(_TITLES):
            left = _LEFT + column * (_PANEL + _GAP)
            parts += _panel(here, styles, axis, left, row * row_height + _TOP, task)
    for place, name in enumerate(names):
        x = _LEFT + place % _COLUMNS * ((_WIDTH - _LEFT) // _COLUMNS)
        y = len(tasks) * row_height + _ROW * (place // _COLUMNS) + 8
        parts.append(f'<path d="M{x} {y}h30" {styles[name]}/><text x="{x + 36}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _best(runs: Sequence[Run], strong: str) -> list[str]:
    """The best setting of each system, the strong one as it is; what stands before a comma in a name is the system."""
    ways: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(run.optimizer for run in runs):
        mean = statistics.mean(run.way for run in runs if run.optimizer == name)
        ways.setdefault(name.partition(",")[0], {})[name] = mean
    return [strong if strong in settings else max(settings, key=settings.__getitem__) for settings in ways.values()]


def _panel(
    runs: dict[str, list[Run]], styles: dict[str, str], axis: Axis, left: float, top: float, task: str
) -> list[str]:
    drawn = {name: own for name, own in runs.items() if own and (axis == "tokens" or all(run.latency for run in own))}
    if axis == "waits" and any(run.timed for own in drawn.values() for run in own):
        drawn = {name: own for name, own in drawn.items() if all(run.timed for run in own)}
    spent = [run.spent(axis, point) for own in drawn.values() for run in own for point in run.points[1:]]
    most = max([run.spent(axis) for own in drawn.values() for run in own], default=1) or 1
    least = max(min([value for value in spent if value > 0], default=1) / 2, most / 60)

    def x_of(value: float) -> float:
        return left + _PANEL * math.log(max(value, least) / least) / math.log(most / least)

    def y_of(way: float) -> float:
        return top + _HEIGHT * (1 - max(0.0, min(1.0, way)) / 1.05) - _HEIGHT * 0.02

    parts = [
        f'<text x="{left}" y="{top - 10}" font-weight="bold">{escape(task)}: way gone, by {_TITLES[axis]}</text>',
        f'<rect x="{left}" y="{top}" width="{_PANEL}" height="{_HEIGHT}" fill="none" stroke="#999"/>',
    ]
    for way in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        y = y_of(way)
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + _PANEL}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{way:.0%}</text>')
    for value in _ticks(least, most):
        x = x_of(value)
        parts.append(f'<line x1="{x:.1f}" y1="{top + _HEIGHT}" x2="{x:.1f}" y2="{top + _HEIGHT + 5}" stroke="#999"/>')
        parts.append(f'<text x="{x:.1f}" y="{top + _HEIGHT + 19}" text-anchor="middle">{_short(value)}</text>')
    grid = [least * (most / least) ** (step / _STEPS) for step in range(_STEPS + 1)]
    for name, own in reversed(drawn.items()):  # the first lies on top
        path = _path([(x_of(value), y_of(way_at(own, axis, value))) for value in grid])
        parts.append(f'<path d="{path}" {styles[name]}/>')
    return parts


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A line through points; those in the middle of a level part are left out."""
    kept = [
        point
        for before, point, after in zip([None, *points[:-1]], points, [*points[1:], None])
        if before is None or after is None or not before[1] == point[1] == after[1]
    ]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in kept)


def _ticks(least: float, most: float) -> list[float]:
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    values = [digit * 10.0**power for power in powers for digit in (1, 3)]
    return [value for value in values if least <= value <= most]


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
