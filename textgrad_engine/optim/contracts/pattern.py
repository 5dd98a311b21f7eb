"""`Matches` and `Lacks`: what a regular expression must find in the text, and what it must not.

A text is looked at as it is, and as it reads alike where that differs: with plain line ends, before which ``$`` stands
(those of Windows are two characters), and with each letter and its signs as one character.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from textgrad_engine.checks import check
from textgrad_engine.ops.backtracking import warn_of_endless
from textgrad_engine.optim.contracts.base import say
from textgrad_engine.slots import composed

_SHOWN = 200
"""Characters of a forbidden match that are shown."""


@dataclass(frozen=True)
class Matches:
    """The text must match a regular expression; for one of several prompts see `Requires`.

    Args:
        pattern: as for `re`; put flags such as ``(?im)`` into it.
        full: the whole text has to match, not only a part of it.
        meaning: what it means, in words for the optimizer, which understands these more reliably than the pattern.

    Raises:
        ValueError: the pattern is no regular expression, or empty, so that any text would do.

    Example:
        >>> Matches(r"(?m)^Answer with one word").problem("", "Be brief.") is None
        False
    """

    pattern: str
    full: bool = False
    meaning: str = ""

    def __post_init__(self) -> None:
        check(Matches, vars(self))
        if not _compiled(self.pattern, "Matches").pattern:
            raise ValueError("Matches: the pattern is empty, so any text would do")
        warn_of_endless("Matches", self.pattern, whole=self.full)

    def describe(self, before: str) -> str:
        """Gives the meaning and the pattern."""
        return self._say(broken=False)

    def problem(self, before: str, after: str) -> str | None:
        """Looks for the pattern."""
        pattern = _compiled(self.pattern, "Matches")
        find = pattern.fullmatch if self.full else pattern.search
        return None if any(map(find, dict.fromkeys([after, _plain(after)]))) else self._say(broken=True)

    def _say(self, *, broken: bool) -> str:
        return say("matches", pattern=self.pattern, full=self.full, meaning=self.meaning, broken=broken)


@dataclass(frozen=True)
class Lacks:
    r"""Nothing in the text may match a regular expression.

    Matches in the old text may be removed step by step, but must not stay as many as they were.

    Args:
        pattern: as for `re`; put flags such as ``(?im)`` into it.
        meaning: what it means, in words for the optimizer.

    Raises:
        ValueError: the pattern is no regular expression, or it matches the empty text and so everything.

    Example:
        >>> Lacks(r"(?i)\bas an ai\b").problem("", "Be brief.") is None
        True
    """

    pattern: str
    meaning: str = ""

    def __post_init__(self) -> None:
        check(Lacks, vars(self))
        if _compiled(self.pattern, "Lacks").search(""):
            raise ValueError(f"Lacks: the pattern {self.pattern!r} matches the empty text, so no text would do")
        warn_of_endless("Lacks", self.pattern)

    def describe(self, before: str) -> str:
        """Gives the meaning and the pattern."""
        return say("lacks", pattern=self.pattern, meaning=self.meaning, found=None)

    def problem(self, before: str, after: str) -> str | None:
        """Looks for the pattern; shows the first match."""
        pattern = _compiled(self.pattern, "Lacks")
        for old, new in dict.fromkeys([(before, after), (_plain(before), _plain(after))]):
            found = [match[0] for match in pattern.finditer(new)]
            if found and len(found) >= sum(1 for _ in pattern.finditer(old)):
                return say("lacks", pattern=self.pattern, meaning=self.meaning, found=found[0][:_SHOWN])
        return None


def _plain(text: str) -> str:
    return composed(text.replace("\r\n", "\n"))


def _compiled(pattern: str, contract: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)  # re keeps those that it compiled last
    except re.error as error:
        raise ValueError(f"{contract}: {pattern!r} is no regular expression: {error}") from None
