"""Units of a text: the lines that are left out together, and what some of them make."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from typing import TypeAlias

from textgrad_engine.optim.cells import lines_of
from textgrad_engine.optim.sentences import Place, led_as, places_of

Unit: TypeAlias = tuple[int, ...]
"""Lines that are left out together, by their numbers."""

_OPENING = re.compile(r"<([a-z]\w*-[0-9a-f]{8})>")


def units_of(text: str) -> list[Unit]:
    r"""The lines that only make sense together, by number: a fenced block is one unit, and so is a line with the blank
    lines behind it. Of a long line each sentence is one, and the blank lines behind it stay.

    Example:
        >>> units_of("Sort.\n\n<examples-0a1b2c3d>\nOne\n</examples-0a1b2c3d>\nBe brief.")
        [(1, 2), (3, 4, 5), (6,)]
    """
    lines = lines_of(text)
    units: list[list[int]] = []
    closing = ""
    for number, line in enumerate(lines, 1):
        if closing or (units and not line.strip()):
            units[-1].append(number)
            closing = "" if line == closing else closing
            continue
        units.append([number])
        opened = _OPENING.fullmatch(line)
        if opened is not None and f"</{opened[1]}>" in lines[number:]:
            closing = f"</{opened[1]}>"
    numbers: dict[int, list[int]] = {}
    for at, place in enumerate(places_of(text), 1):
        numbers.setdefault(place.line, []).append(at)
    found: list[Unit] = []
    for unit in units:
        if len(numbers[unit[0]]) > 1 and not any(lines[number - 1].strip() for number in unit[1:]):
            found += [(at,) for at in numbers[unit[0]]]
        else:
            found.append(tuple(at for number in unit for at in numbers[number]))
    return found


def text_of(places: Sequence[Place], kept: Collection[int]) -> str:
    """The text that some of its places make, by their numbers."""
    lines = []
    for _, line in itertools.groupby(enumerate(places, 1), key=lambda each: each[1].line):
        own = list(line)
        if parts := [place.text for number, place in own if number in kept]:
            left = "".join(parts) if own[-1][0] in kept else "".join(parts).rstrip()
            lines.append(left if own[0][0] in kept else led_as(own[0][1].text, left))
    return "\n".join(lines)


def check_units(units: Sequence[Unit], lines: int) -> None:
    """Refuse units that are none of a text.

    Args:
        units: the units.
        lines: how many lines it has.

    Raises:
        ValueError: one names a line that is not there, or is in another one.
    """
    numbers = [number for unit in units for number in unit]
    if len(set(numbers)) < len(numbers):
        raise ValueError("a line is in two units; each may be in one")
    if wrong := [number for number in numbers if not 1 <= number <= lines]:
        raise ValueError(f"a unit has line {wrong[0]}, and the text has lines 1 to {lines}")
