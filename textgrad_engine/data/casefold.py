"""A text without what makes no difference to a reader: how its letters are encoded, case, and what nobody sees."""

from __future__ import annotations

import re
import unicodedata

_SAYS_MORE = ("<super>", "<sub>", "<fraction>", "<circle>", "<square>")
"""Letters that Unicode calls compatible with plain ones, and a reader does not: x\u00b2 is not x2."""

_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]+"
)
"""Hyphens that show at the end of a line alone, places to break one, marks of direction, and forms of a sign. Not the
joiners, by which words of Persian, signs of Hindi and emoji differ."""


def folded(text: str) -> str:
    r"""A text without the ways to encode a letter, without case, and without marks that cannot be seen.

    Letters of full and of half width are one, and so are ligatures and what they are made of. Powers, indices,
    fractions and numbers in circles stay what they are. An i is one with a dot and without, small and capital: the I of
    a word in capitals is in Turkish another letter than elsewhere, and nobody knows which language a text is in.

    Example:
        >>> folded("\u0130STANBUL"), folded("k\u0131z") == folded("KIZ")
        ('istanbul', True)
        >>> folded("E\u0301tude") == folded("\u00e9tude"), folded("m\u00b2") == folded("m2")
        (True, False)
    """
    if text.isascii():
        return text.lower()
    text = shown(text)
    own = [char for char in set(text) if unicodedata.decomposition(char).startswith(_SAYS_MORE)]
    if not own:
        return _plain(text)
    parts = re.split(f"([{re.escape(''.join(own))}]+)", text)
    return "".join([part if number % 2 else _plain(part) for number, part in enumerate(parts)])


def shown(text: str) -> str:
    r"""A text without marks that cannot be seen.

    Example:
        >>> shown("Gut\u00adschein")
        'Gutschein'
    """
    return text if text.isascii() else _UNSEEN.sub("", text)


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", text.replace("i\u0307", "i").replace("\u0131", "i"))
