"""The benchmark's picture: how far the best prompt was, against tokens and against time. SVG, written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from proving.results import Run, way_at

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP, _LEGEND = 420, 260, 56, 44, 70, 240
_COLOURS = (
    "#0b6e99",
    "#c8553d",
    "#3a7d44",
    "#7b4fa3",
    "#b8860b",
    "#d1478c",
    "#4f6d7a",
    "#6b4226",
    "#111111",
    "#8a9a5b",
    "#e08a2e",
    "#9fb8c8",
)
_STEPS = 160


def picture(runs: Sequence[Run]) -> str:
    """An SVG with a row for each task: medians over seeds of the way gone, by tokens and by seconds (logarithmic)."""
    tasks = list(dict.fromkeys(run.task for run in runs))
    names = list(dict.fromkeys(run.optimizer for run in runs))
    colours = {name: _COLOURS[place % len(_COLOURS)] for place, name in enumerate(names)}
    width = _LEFT + 2 * _WIDTH + _GAP + _LEGEND
    height = len(tasks) * (_HEIGHT + _TOP + 46) + 10
    size = f'width="{width}" height="{height}"'
    fonts = 'font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size} {fonts}>',
        f'<rect {size} fill="white"/>',
    ]
    for row, task in enumerate(tasks):
        top = row * (_HEIGHT + _TOP + 46) + _TOP
        own = [run for run in runs if run.task == task]
        here = {name: [run for run in own if run.optimizer == name] for name in names}
        for column, axis in enumerate(("tokens", "seconds")):
            left = _LEFT + column * (_WIDTH + _GAP)
            parts += _panel(here, colours, axis, left, top, f"{task}: way from seed prompt to optimum, by {axis}")
        for place, name in enumerate(name for name in names if here[name]):
            x, y = _LEFT + 2 * _WIDTH + _GAP + 18, top + 10 + 18 * place
            parts.append(f'<line x1="{x}" y1="{y}" x2="{x + 22}" y2="{y}" stroke="{colours[name]}" stroke-width="3"/>')
            parts.append(f'<text x="{x + 28}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _panel(
    runs: dict[str, list[Run]], colours: dict[str, str], axis: str, left: float, top: float, title: str
) -> list[str]:
    spent = [getattr(point, axis) for own in runs.values() for run in own for point in run.points[1:]]
    most = max([getattr(run, axis) for own in runs.values() for run in own], default=1) or 1
    least = max(min([value for value in spent if value > 0], default=1) / 2, most / 10_000)

    def x_of(value: float) -> float:
        return left + _WIDTH * math.log(max(value, least) / least) / math.log(most / least)

    def y_of(way: float) -> float:
        return top + _HEIGHT * (1 - max(-0.1, min(1.0, way) + 0.0) / 1.05) - _HEIGHT * 0.02

    parts = [
        f'<text x="{left}" y="{top - 14}" font-weight="bold">{escape(title)}</text>',
        f'<rect x="{left}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#999"/>',
    ]
    for way in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        y = y_of(way)
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + _WIDTH}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{way:.0%}</text>')
    for value in _ticks(least, most):
        x = x_of(value)
        parts.append(f'<line x1="{x:.1f}" y1="{top + _HEIGHT}" x2="{x:.1f}" y2="{top + _HEIGHT + 5}" stroke="#999"/>')
        parts.append(f'<text x="{x:.1f}" y="{top + _HEIGHT + 18}" text-anchor="middle">{_short(value)}</text>')
    for name, own in runs.items():
        if own:
            parts.append(_line(own, axis, colours[name], least, most, x_of, y_of))
    return parts


def _line(
    runs: list[Run],
    axis: str,
    colour: str,
    least: float,
    most: float,
    x_of: Callable[[float], float],
    y_of: Callable[[float], float],
) -> str:
    grid = [least * (most / least) ** (step / _STEPS) for step in range(_STEPS + 1)]
    points = " ".join(f"{x_of(value):.1f},{y_of(way_at(runs, axis, value)):.1f}" for value in grid)
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'


def _ticks(least: float, most: float) -> list[float]:
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    values = [digit * 10.0**power for power in powers for digit in (1, 3)]
    return [value for value in values if least <= value <= most]


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
