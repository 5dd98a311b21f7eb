"""Merging feedback, as the prompt ``reduce`` asks for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from textgrad_engine.llm.simulated.reading import Item
from textgrad_engine.testing.simulated.lessons import gathered, lessons_in

_LIMIT = re.compile(r"at most (\d+) pieces?")


def most_items(user: str) -> int:
    """How many pieces the request allows."""
    found = _LIMIT.findall(user)
    return int(found[-1]) if found else 5


def reduce_items(items: Sequence[Item], limit: int) -> dict[str, Any]:
    """Pieces that each stand for all items with one lesson; the last one for everything else.

    Example:
        >>> items = [Item(1, 1, "glass -> K4"), Item(2, 1, "Look closer."), Item(3, 1, "Glass means K4.")]
        >>> [piece["numbers"] for piece in reduce_items(items, 2)["items"]]
        [[1, 3], [2]]
    """
    by_number = {item.number: item for item in items}
    left = dict(by_number)
    pieces: list[dict[str, Any]] = []
    for support in gathered(items):
        numbers = [number for number in support.numbers if number in left]
        if numbers:
            pieces.append({"text": by_number[numbers[0]].text, "numbers": numbers})
            for number in numbers:
                del left[number]
    if left:
        pieces.append({"text": next(iter(left.values())).text, "numbers": list(left)})
    if len(pieces) > limit:
        rest = pieces[limit - 1 :]
        said = dict.fromkeys(piece["text"] for piece in rest if lessons_in(piece["text"]))
        text = " ".join(said) or rest[0]["text"]
        merged = {"text": text, "numbers": sorted(number for piece in rest for number in piece["numbers"])}
        pieces = [*pieces[: limit - 1], merged]
    return {"items": pieces}
