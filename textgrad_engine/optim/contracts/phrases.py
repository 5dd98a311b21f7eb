"""`Requires` and `Forbids`: phrases that the text must have, and phrases that it must not."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from textgrad_engine.checks import check, texts_in_order
from textgrad_engine.data.casefold import folded, shown
from textgrad_engine.optim.contracts.base import say


@dataclass(frozen=True, init=False)
class Requires:
    r"""Each of these phrases must be in the text, as whole words.

    For a phrase that only one of several prompts must have, use its own group of the optimizer: ``{"params": [prompt],
    "constraints": [Requires([...])]}``. Otherwise all other prompts must contain it, too.

    Args:
        phrases: the phrases. White space in them matches any white space, so a line may end within a phrase. Straight
            and curly quotation marks, apostrophes and hyphens are equal. Words may be emphasized as in Markdown.
        match_case: whether upper and lower case must match.

    Raises:
        TypeError: the phrases are one text.
        ValueError: there is no phrase, or one is blank.

    Example:
        >>> Requires(["JSON object"]).problem("", "Answer with a json\nobject.") is None
        True
    """

    phrases: tuple[str, ...]
    match_case: bool = False

    def __init__(self, phrases: Iterable[str], match_case: bool = False) -> None:
        check(Requires.__init__, locals())
        object.__setattr__(self, "phrases", _checked(phrases, "Requires"))
        object.__setattr__(self, "match_case", match_case)

    def describe(self, before: str) -> str:
        """Names the phrases."""
        return say("requires", phrases=self.phrases, match_case=self.match_case, missing=[])

    def problem(self, before: str, after: str) -> str | None:
        """Looks for each."""
        missing = [phrase for phrase in self.phrases if not _count(phrase, after, self.match_case)]
        return say("requires", phrases=self.phrases, match_case=self.match_case, missing=missing) if missing else None


@dataclass(frozen=True, init=False)
class Forbids:
    """None of these phrases may be in the text, as whole words.

    A phrase that the old text contains may be removed step by step, but must not stay as often as it was.

    Args:
        phrases: the phrases; as for `Requires`.
        match_case: whether upper and lower case must match.

    Raises:
        TypeError: the phrases are one text.
        ValueError: there is no phrase, or one is blank.

    Example:
        >>> Forbids(["as"]).problem("", "Assess it.") is None
        True
    """

    phrases: tuple[str, ...]
    match_case: bool = False

    def __init__(self, phrases: Iterable[str], match_case: bool = False) -> None:
        check(Forbids.__init__, locals())
        object.__setattr__(self, "phrases", _checked(phrases, "Forbids"))
        object.__setattr__(self, "match_case", match_case)

    def describe(self, before: str) -> str:
        """Names the phrases."""
        return say("forbids", phrases=self.phrases, match_case=self.match_case, found=[])

    def problem(self, before: str, after: str) -> str | None:
        """Looks for each."""
        found = [phrase for phrase in self.phrases if self._stays(phrase, before, after)]
        return say("forbids", phrases=self.phrases, match_case=self.match_case, found=found) if found else None

    def _stays(self, phrase: str, before: str, after: str) -> bool:
        count = _count(phrase, after, self.match_case)
        return count > 0 and count >= _count(phrase, before, self.match_case)


def _checked(phrases: Iterable[str], contract: str) -> tuple[str, ...]:
    checked = tuple(texts_in_order(phrases))
    if not checked:
        raise ValueError(f"{contract} was given no phrase")
    for phrase in checked:
        if not isinstance(phrase, str):
            raise TypeError(f"{contract}: a phrase is a text, got {type(phrase).__name__}")
        if not shown(phrase).strip():
            raise ValueError(f"{contract}: a phrase is blank: {phrase!r}")
    return checked


_AS_TYPED = str.maketrans("\u2018\u2019\u201a\u201b\u02bc\u201c\u201d\u201e\u201f\u2010\u2011", "'''''\"\"\"\"--")
"""Quotation marks, apostrophes and hyphens as models set them, and as they are typed."""


def _count(phrase: str, text: str, match_case: bool) -> int:
    forms = (unicodedata.normalize("NFC", shown(each)) if match_case else folded(each) for each in (phrase, text))
    phrase, text = (each.translate(_AS_TYPED) for each in forms)
    pattern = re.compile(r"[*_`]*\s+[*_`]*".join(map(re.escape, phrase.split())))
    count, at = 0, 0
    while (match := pattern.search(text, at)) is not None:
        whole = not _goes_on(text, match.start()) and not _goes_on(text, match.end())
        count += whole
        at = match.end() if whole else match.start() + 1
    return count


def _goes_on(text: str, at: int) -> bool:
    """Whether a word goes on between two letters of a text: not where one of them is Chinese, Thai or the like.

    These write on without a space, beside "JSON" too; others put what belongs to a word right before or behind it. An
    underscore joins two words to a name, and emphasizes one where it stands at its end.
    """
    before, behind = at - 1, at
    if text[at : at + 1] != "_":
        while before >= 0 and text[before] == "_":
            before -= 1
    elif text[before] != "_":
        while behind < len(text) and text[behind] == "_":
            behind += 1
    return before >= 0 and behind < len(text) and _has_edge(text[before]) and _has_edge(text[behind])


def _has_edge(char: str) -> bool:
    if "\u0900" <= char <= "\u097f":  # Hindi has no case, and puts spaces between words
        return unicodedata.category(char)[0] in "LMN"
    return char == "_" or char.isdigit() or char.lower() != char.upper() or bool(unicodedata.combining(char))
