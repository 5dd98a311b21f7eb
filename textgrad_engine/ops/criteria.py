"""The criteria of a rubric: as users and tables write them, and what an answer that meets some of them is worth."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textgrad_engine.plain_values import is_number, plain
from textgrad_engine.wording import a_class, nearest


@dataclass(frozen=True)
class Criterion:
    """One thing that an answer is looked at for.

    Attributes:
        text: what it is, in words.
        points: what an answer gets for meeting it; below 0 for what an answer must not do.
    """

    text: str
    points: float = 1

    @property
    def name(self) -> str:
        """What an answer does well by it."""
        return self.text if self.points > 0 else f"not: {self.text}"


def criteria_of(value: Any) -> tuple[Criterion, ...]:
    r"""The criteria that somebody wrote down.

    Args:
        value: a list of texts, or of dicts with ``"criterion"`` and ``"points"`` (1 where it is left out; ``"tags"``
            are not read); or a text with one criterion in each line, or with such a list as JSON.

    Raises:
        TypeError: it is something else.
        ValueError: there are none, or none that an answer gets points for; or an entry is no criterion, or there twice.

    Example:
        >>> criteria_of("- It greets.\n- It says when.")
        (Criterion(text='It greets.', points=1), Criterion(text='It says when.', points=1))
        >>> criteria_of([{"criterion": "It makes up a date.", "points": -2}, "It is polite."])[0].points
        -2
    """
    if isinstance(value, str):
        return _of_text(value)
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        got = "None" if value is None else a_class(type(value))
        raise TypeError(f"they are a list of texts, or a text with one in each line; got {got}")
    found = tuple([_criterion(number, each) for number, each in enumerate(value, 1)])
    if not found:
        raise ValueError("there are none; give one at least")
    numbers: dict[str, int] = {}
    for number, each in enumerate(found, 1):
        if (same := numbers.setdefault(each.name, number)) != number:
            raise ValueError(f"criterion {number} is criterion {same} again; take one out")
    if not any(each.points > 0 for each in found):
        raise ValueError("an answer gets points for none of them; the points of one at least must be above 0")
    if not math.isfinite(sum(abs(each.points) for each in found)):
        raise ValueError("their points are too large to be added up")
    return found


_JSON = re.compile(r"\s*(?:\[\s*(?P<inside>[{\"'])?|\{\s*(?P<key>[\"']))")
"""How JSON begins, also as Python writes it; a bracket alone may begin a line, too."""
_BULLET = re.compile(r"^(?:[-*•]|\d{1,3}[.)])(?:\s+|$)")


@functools.lru_cache(maxsize=1024)  # of a run each example's, again with each candidate
def _of_text(text: str) -> tuple[Criterion, ...]:
    if begins := _JSON.match(text):
        why = "an object"
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            value, why = None, f"{error.msg} at character {error.pos + 1}"
        except (ValueError, RecursionError) as error:
            value, why = None, str(error)
        if isinstance(value, list):
            return criteria_of(value)
        if begins.lastgroup:
            raise ValueError(
                f"they begin as JSON does, and are no list in JSON: {why}; write one, such as "
                '[{"criterion": "It greets.", "points": 2}], or a criterion in each line; where Python writes the '
                "table, json.dumps(criteria) is JSON, and str(criteria) is not"
            )
    lines = [_BULLET.sub("", line.strip(), count=1) for line in text.splitlines()]
    return criteria_of([line for line in lines if line])


def _criterion(number: int, value: Any) -> Criterion:
    """One entry.

    Raises:
        TypeError: it is neither a text nor a dict.
        ValueError: it has no text, other keys, or no points.
    """
    if isinstance(value, Criterion):
        return value
    if isinstance(value, str):
        value = {"criterion": value}
    if not isinstance(value, Mapping):
        got = f"{a_class(type(value))} {value!r:.60}"
        raise TypeError(f"criterion {number} is {got}, and should be a text, or a dict{_FORM}")
    if more := [key for key in value if key not in _KEYS]:
        meant = nearest(str(more[0]), _KEYS) or f"; write a dict{_FORM}"
        raise ValueError(f"criterion {number} has the key {more[0]!r}{meant}")
    text, points = value.get("criterion"), value.get("points", 1)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"criterion {number} has no text; write a dict{_FORM}")
    if not is_number(points) or not math.isfinite(points) or points == 0:
        raise ValueError(
            f"criterion {number} has the points {points!r:.60}, and should have a number that is not 0: above it for "
            "what an answer should do, below for what it must not"
        )
    return Criterion(text.strip(), plain(points))


_KEYS = ("criterion", "points", "tags")
_FORM = ', such as {"criterion": "It greets.", "points": 2}'


def without_floors(criteria: Sequence[Any]) -> list[Any]:
    """Criteria as a config has them, without the floors under some, which are for guards and change no score.

    Example:
        >>> without_floors(["It greets.", {"criterion": "It lies.", "points": -1, "floor": 0.9}])
        ['It greets.', {'criterion': 'It lies.', 'points': -1}]
    """
    return [
        {key: value for key, value in each.items() if key != "floor"} if isinstance(each, Mapping) else each
        for each in criteria
    ]


def written(criteria: Sequence[Criterion]) -> str:
    """Criteria as a text that `criteria_of` reads: one value, where a list would be a batch."""
    return json.dumps([{"criterion": each.text, "points": each.points} for each in criteria], ensure_ascii=False)


def numbered(criteria: Sequence[Criterion]) -> str:
    r"""Criteria as a judge is shown them: by number, and nothing but that begins a line.

    Example:
        >>> print(numbered(criteria_of(["It greets.", "It has:\n2. lines"])))
        1. It greets.
        2. It has:
           2. lines
    """
    heads = [f"{number}. " for number in range(1, len(criteria) + 1)]
    texts = [f"\n{' ' * len(head)}".join(each.text.splitlines()) for head, each in zip(heads, criteria)]
    return "\n".join(map("".join, zip(heads, texts)))


def full_marks(criteria: Sequence[Criterion]) -> float:
    """The points of an answer that does all it should, and nothing that it must not."""
    return math.fsum(each.points for each in criteria if each.points > 0)


def score_of(criteria: Sequence[Criterion], met: Sequence[bool]) -> float:
    """The part of full marks that an answer gets, 0 at least.

    Args:
        criteria: the criteria.
        met: of each whether the answer meets it.

    Example:
        >>> criteria = [Criterion("It greets.", 3), Criterion("It ends."), Criterion("It lies.", -2)]
        >>> [score_of(criteria, met) for met in ([True, True, False], [True, False, True], [False, False, True])]
        [1.0, 0.25, 0.0]
    """
    points = math.fsum(each.points for each, is_met in zip(criteria, met, strict=True) if is_met)
    return max(0.0, points / full_marks(criteria))
