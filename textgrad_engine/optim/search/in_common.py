"""Texts that have most of their lines in common, with each line once and numbers in the places where it stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from textgrad_engine.llm import tokens

_REFERENCE = re.compile(r"^\s*\[\d+(?:-\d+)?\]\s*$", re.MULTILINE)

_WORTH = 0.75
"""Texts are taken apart where that leaves no more than this share of their tokens; whole ones are easier to read."""


def in_common(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    r"""The lines that texts share, and the texts with numbers in their place: ``[2]`` for line 2, ``[2-4]`` for 2 to 4.

    Args:
        texts: the last one is taken apart as a whole, so that its lines are in one piece.

    Returns:
        No lines, and the texts as they are, where that would save little, or where a text has such a number itself.

    Example:
        >>> rules = "Sort the mail into one of the queues.\nBills are for the accountants.\nBe polite to everybody."
        >>> in_common([rules, f"{rules}\nAnswer with one word only.", f"{rules}\nThank them."])[1]
        ['[1-3]', '[1-3]\nAnswer with one word only.', '[1-4]']
    """
    whole = list(texts)
    if any(map(refers, texts)):
        return [], whole
    split = [text.split("\n") for text in texts]
    often = Counter(line for lines in split for line in dict.fromkeys(lines) if line.strip())
    pool = list(split[-1]) if split else []
    held = set(pool)
    pool += [line for line, times in often.items() if times > 1 and line not in held]
    short = ["\n".join(_taken_apart(lines, pool)) for lines in split]
    before, after = (sum(map(tokens.count, each)) for each in (texts, [*listed(pool), *short]))
    return (pool, short) if after <= _WORTH * before else ([], whole)


def listed(lines: Sequence[str]) -> list[str]:
    """Lines with their numbers."""
    return [f"[{number}] {line}" for number, line in enumerate(lines, 1)]


def refers(text: str) -> str:
    r"""The first number that stands for lines in a text; "" for none.

    Example:
        >>> refers("Sort.\n[2-4]"), refers("Sort [2] first.")
        ('[2-4]', '')
    """
    found = _REFERENCE.search(text)
    return found[0].strip() if found else ""


def _taken_apart(lines: Sequence[str], pool: Sequence[str]) -> list[str]:
    places: dict[str, list[int]] = {}
    for place, line in enumerate(pool):
        places.setdefault(line, []).append(place)
    parts, at = [], 0
    while at < len(lines):
        runs = [(_run(lines, at, pool, place), -place) for place in places.get(lines[at], ())]
        length, place = max(runs, default=(0, 0))
        if any(line.strip() for line in lines[at : at + length]):
            first = 1 - place
            parts.append(f"[{first}]" if length == 1 else f"[{first}-{first + length - 1}]")
            at += length
        else:
            parts.append(lines[at])
            at += 1
    return parts


def _run(lines: Sequence[str], at: int, pool: Sequence[str], place: int) -> int:
    """How many lines from a place on are those of the pool from another one on."""
    length = 0
    for one, other in zip(lines[at:], pool[place:]):
        if one != other:
            break
        length += 1
    return length
