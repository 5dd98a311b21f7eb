"""Where a text may be cut: what a reader sees as one letter may be several characters."""

from __future__ import annotations

import unicodedata

LONGEST = 32
"""Characters of a letter that are looked at; a text may be signs without end."""

_JOINER = "\u200d"


def whole_to(text: str, at: int) -> int:
    r"""The last place up to `at` at which no letter is cut, such as one with signs on it, an emoji of three, or a flag.

    Source: the rules for "extended grapheme clusters" of Unicode's annex 29, in short.

    Example:
        >>> whole_to("cafe\u0301!", 4), whole_to("cafe\u0301!", 3), whole_to("cafe\u0301!", 5)
        (3, 3, 5)
    """
    for place in range(at, max(0, at - LONGEST), -1):
        if not (place < len(text) and _goes_on(text, place)):
            return place
    return at


def _goes_on(text: str, place: int) -> bool:
    """Whether the character at a place is of one letter with that before it."""
    before, here = text[place - 1], text[place]
    if here.isascii():
        return before == "\r" and here == "\n"
    if unicodedata.category(here)[0] == "M" or here in "\u200c\u200d\uff9e\uff9f" or before == _JOINER:
        return True
    if "\u1160" <= here <= "\u11ff":  # vowels and last consonants of Korean, where each is written by itself
        return True
    if "\U0001f3fb" <= here <= "\U0001f3ff" or "\U000e0020" <= here <= "\U000e007f":  # colors of skin, regions' flags
        return True
    return _is_of_flag(here) and _flags_before(text, place) % 2 == 1


def _is_of_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, place: int) -> int:
    start = place
    while start > 0 and _is_of_flag(text[start - 1]):
        start -= 1
    return place - start
