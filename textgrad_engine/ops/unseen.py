"""Characters that nobody sees, told where texts differ in them alone."""

from __future__ import annotations

import json
import re
import unicodedata

_CHOOSES_A_FORM = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Marks that say in which of its forms the sign before them is drawn, such as an emoji in color."""


def unseen(got: str, wanted: str) -> str:
    """In which characters texts differ that look the same, in words; "" for those that do not."""

    def visible(text: str) -> str:
        text = " ".join(text.split())
        for mark in _hidden(text):  # by kind: a text may be megabytes
            text = text.replace(mark, "")
        return text

    plainly = all(text.isascii() and text.isprintable() for text in (got, wanted))  # as most are
    if plainly or visible(got) != visible(wanted):
        return ""
    odd = [sorted(({c for c in text if not c.isprintable()} | _hidden(text)) - {"\n"}) for text in (wanted, got)]
    names = [", ".join(f"U+{ord(c):04X}" for c in each) or "none" for each in odd]
    return f"{names[0]} in what is expected, {names[1]} in the answer" if names[0] != names[1] else ""


def seen(text: str) -> str:
    r"""A text with characters that cannot be seen as JSON escapes them.

    Example:
        >>> seen("a\u00a0b")
        'a\\u00a0b'
    """
    for mark in {c for c in set(text) if not c.isprintable()} | _hidden(text):
        text = text.replace(mark, json.dumps(mark)[1:-1])
    return text


def _hidden(text: str) -> set[str]:
    return {c for c in set(text) if unicodedata.category(c) in ("Cf", "Cc") or _CHOOSES_A_FORM.match(c)}
