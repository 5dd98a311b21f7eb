"""How long a text may be: not empty, and within a limit of tokens or characters."""

from __future__ import annotations

from dataclasses import dataclass

from textgrad_engine.checks import at_least, check
from textgrad_engine.llm import tokens
from textgrad_engine.optim.contracts.base import say


@dataclass(frozen=True)
class NotEmpty:
    """The text must not become empty.

    Example:
        >>> NotEmpty().problem("Be brief.", " ")
        'the new text is empty'
    """

    def describe(self, before: str) -> str:
        """Nothing needs saying."""
        return ""

    def problem(self, before: str, after: str) -> str | None:
        """Whether any text is left."""
        return None if after.strip() else say("not_empty")


@dataclass(frozen=True)
class MaxTokens:
    """The text may have at most so many tokens.

    Args:
        limit: in tokens, counted as `llm.tokens.count` does.

    Raises:
        TypeError: the limit is no whole number.
        ValueError: it is less than 1.

    Example:
        >>> MaxTokens(3).problem("Be brief.", "Be brief and polite, always.")
        'the new text has 7 tokens, and 3 are allowed'
    """

    limit: int

    def __post_init__(self) -> None:
        check(MaxTokens, vars(self), at_least(1, "limit"))

    def describe(self, before: str) -> str:
        """Names the limit."""
        return say("max_tokens", limit=self.limit, before=tokens.count(before), after=None)

    def problem(self, before: str, after: str) -> str | None:
        """Counts the tokens; a text that was too long before may get shorter step by step."""
        old, new = tokens.count(before), tokens.count(after)
        return None if new <= max(self.limit, old - 1) else say("max_tokens", limit=self.limit, before=old, after=new)


@dataclass(frozen=True)
class MaxCharacters:
    """The text may have at most so many characters, as an endpoint allows.

    Args:
        limit: in characters.

    Raises:
        TypeError: the limit is no whole number.
        ValueError: it is less than 1.

    Example:
        >>> MaxCharacters(9).problem("Be brief.", "Be brief and polite.")
        'the new text has 20 characters, and 9 are allowed'
    """

    limit: int

    def __post_init__(self) -> None:
        check(MaxCharacters, vars(self), at_least(1, "limit"))

    def describe(self, before: str) -> str:
        """Names the limit."""
        return say("max_characters", limit=self.limit, before=len(before), after=None)

    def problem(self, before: str, after: str) -> str | None:
        """Counts the characters; a text that was too long before may get shorter step by step."""
        if len(after) <= max(self.limit, len(before) - 1):
            return None
        return say("max_characters", limit=self.limit, before=len(before), after=len(after))
