"""Regular expressions that go back without end, found by trying: before a run, as nothing ends one that has begun.

Where a repeated part of a pattern fits some text in several ways, and what stands behind it does not match, Python's
`re` tries all of them: twice as many with each further character. So each repeated part is matched by itself, with
nothing behind it that could match, against texts of up to 60 equal characters. That takes microseconds, or ever longer.
It is a warning: a part that needs texts of several kinds of characters is not found.

Source: attack strings of a pump and a suffix that fails (Rathnayake and Thielecke, arXiv 1405.7058).
"""

from __future__ import annotations

import functools
import logging
import re
import time
from collections.abc import Iterator

_log = logging.getLogger("textgrad_engine.ops.endless")  # as it was called: programs filter by it

_LONGEST = 60
_TOO_LONG = 0.05
"""Seconds of this thread's own time for so short a text; what takes so long here takes hours where it has a page."""

_MOST_TRIED = 24
"""Characters."""

_TOKEN = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?#[^)]*\)|[()]"
_COMMENT = r"|#[^\n]*"
"""In a pattern with the flag for these."""
_REPEAT = re.compile(r"(?:[*+]|\{\d*,\})([?+]?)")


def warn_of_endless(who: str, pattern: str, *, whole: bool = False) -> None:
    """Say in the log that a pattern can take hours, once for each of a process.

    Args:
        who: whose pattern it is, such as the name of a contract.
        pattern: a regular expression.
        whole: whether it has to match a whole text, and not only a part of it.
    """
    if part := endless_part(pattern, whole=whole):
        _warn(who, pattern, part)


@functools.lru_cache(maxsize=256)
def _warn(who: str, pattern: str, part: str) -> None:
    _log.warning(
        "%s: the pattern %r may take hours on a text that it nearly matches, and neither Ctrl-C nor a limit of time "
        "ends that: %r fits the same text in more and more ways. Let what it repeats fit in one way only, or keep it "
        "from going back by (?>...) in the place of its (...)",
        who,
        pattern,
        part,
    )


@functools.lru_cache(maxsize=256)
def endless_part(pattern: str, *, whole: bool = False) -> str:
    r"""The repeated part of a pattern for which time doubles with each character of some text; "" where there is none.

    Args:
        pattern: a regular expression.
        whole: as for `warn_of_endless`.

    Example:
        >>> endless_part(r"Answer: (\w+\s*)+$"), endless_part(r"Answer: (\w+\s+)+$")
        ('(\\w+\\s*)+', '')
    """
    flags = re.compile(pattern).flags
    return next((part for part in _repeated(pattern, flags, whole=whole) if _is_endless(part, flags)), "")


def _repeated(pattern: str, flags: int, *, whole: bool) -> Iterator[str]:
    """The groups of a pattern that are repeated without limit, inner ones first, where something stands behind them."""
    begun: list[int] = []
    for token in re.finditer(_TOKEN + (_COMMENT if flags & re.VERBOSE else ""), pattern, re.DOTALL):
        if token[0] == "(":
            begun.append(token.start())
        elif token[0] == ")" and begun:
            start, repeat = begun.pop(), _REPEAT.match(pattern, token.end())
            if repeat and repeat[1] != "+" and (whole or _may_fail(pattern[repeat.end() :], flags)):
                yield pattern[start : repeat.end()]


def _may_fail(rest: str, flags: int) -> bool:
    """Whether what stands behind a group does not match some text, so that the group is gone back into."""
    rest = rest.lstrip(")")
    try:
        expression = re.compile(rest, flags)
    except re.error:  # it closes and repeats a group, or speaks of one
        return True
    if rest.startswith("|"):
        return False
    return any(sign in rest for sign in "(|") or not all(expression.match(text) for text in ("", *_letters_for(rest)))


def _letters_for(pattern: str) -> list[str]:
    """The characters that texts are made of to try a pattern."""
    return list(dict.fromkeys(f"a1 ,\n{pattern}"))[:_MOST_TRIED]


def _is_endless(part: str, flags: int) -> bool:
    try:
        expression = re.compile(f"{part}(?!)", flags)
    except re.error:  # it speaks of another group
        return False
    for character in _letters_for(part):
        for count in range(8, _LONGEST + 1, 2):
            # Twice, as the garbage collector may come in the first time.
            if all(_takes_long(expression, character * count) for _ in range(2)):
                return True
    return False


def _takes_long(expression: re.Pattern[str], text: str) -> bool:
    begun = time.thread_time()
    expression.match(text)
    return time.thread_time() - begun > _TOO_LONG
