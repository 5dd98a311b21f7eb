"""Names of columns, files and settings in messages: which there are, and which was likely meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from textgrad_engine.slots import composed


def listed(names: Iterable[Any]) -> str:
    """Names of columns for a message: the first ones, and how many there are beside.

    Example:
        >>> listed(["id", "text"]), listed([]), listed(f"c{n}" for n in range(1000))[-16:]
        ('id, text', 'none', 'c19 and 980 more')
    """
    names = [_shortened(" ".join(str(name).split())) for name in names]
    more = len(names) - _MOST_NAMES
    return (", ".join(names[:_MOST_NAMES]) or "none") + (f" and {more} more" if more > 0 else "")


def _shortened(text: str) -> str:
    """A text's beginning, for a message that must stay short."""
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


_MOST_NAMES = 20
_LONGEST_NAME = 60


_NEAR = 0.61
"""So near a name is suggested, by difflib's ratio; ``text`` and ``target`` have one of 0.6."""


def suggest(word: str, options: Iterable[str]) -> str:
    """The end of a message: ``"; did you mean 'x'?"`` when one of the options is near, else nothing."""
    options = list(options)
    same = next((each for each in options if each != word and composed(each) == composed(word)), None)
    if same is not None:
        return f"; {same!r} there looks the same and is written with other characters: copy it from there"
    folded = {option.casefold(): option for option in options}
    near = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=_NEAR)
    return f"; did you mean {folded[near[0]]!r}?" if near else ""
