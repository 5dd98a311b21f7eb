"""A text without what makes no difference to a reader: how its letters are encoded, and case."""

from __future__ import annotations

import re
import unicodedata

_SAYS_MORE = ("<super>", "<sub>", "<fraction>", "<circle>", "<square>")
"""Letters that Unicode calls compatible with plain ones, and a reader does not: x\u00b2 is not x2."""


def folded(text: str) -> str:
    r"""A text without the ways to encode a letter, and without case.

    Letters of full and of half width are one, and so are ligatures and what they are made of. Powers, indices,
    fractions and numbers in circles stay what they are. A capital I with a dot, as in Turkish, is an i.

    Example:
        >>> folded("İSTANBUL"), folded("E\u0301tude") == folded("\u00e9tude"), folded("m\u00b2") == folded("m2")
        ('istanbul', True, False)
    """
    if text.isascii():
        return text.lower()
    own = [char for char in set(text) if unicodedata.decomposition(char).startswith(_SAYS_MORE)]
    if not own:
        return _plain(text)
    parts = re.split(f"([{re.escape(''.join(own))}]+)", text)
    return "".join([part if number % 2 else _plain(part) for number, part in enumerate(parts)])


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold().replace("i\u0307", "i"))
