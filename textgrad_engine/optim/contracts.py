"""What a parameter must keep when it is rewritten; checked before a proposal is used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from textgrad_engine import templates
from textgrad_engine.llm import tokens

__all__ = ["Contract", "MaxTokens", "NotEmpty", "Placeholders", "Wish", "broken", "contracts_for"]


@runtime_checkable
class Contract(Protocol):
    """One thing that a new text must keep to."""

    def describe(self, before: str) -> str:
        """What is asked, in words for the optimizer; "" when nothing needs saying."""
        ...

    def problem(self, before: str, after: str) -> str | None:
        """What is wrong with `after`, in words for the optimizer; None when it holds."""
        ...


@dataclass(frozen=True)
class NotEmpty:
    """The text must not become empty."""

    def describe(self, before: str) -> str:
        """Nothing needs saying."""
        return ""

    def problem(self, before: str, after: str) -> str | None:
        """Whether any text is left."""
        return None if after.strip() else "the new text is empty"


@dataclass(frozen=True)
class Placeholders:
    """The ``{slots}`` of the old text must be in the new one, and no others.

    Example:
        >>> Placeholders().problem("Sort {ticket}.", "Sort the mail {mail}.")
        'the placeholder {ticket} is missing; the placeholder {mail} is new'
    """

    def describe(self, before: str) -> str:
        """Names the placeholders."""
        slots = templates.slots_of(before)
        return f"These placeholders stay: {', '.join(f'{{{slot}}}' for slot in slots)}." if slots else ""

    def problem(self, before: str, after: str) -> str | None:
        """Compares the placeholders."""
        old, new = templates.slots_of(before), templates.slots_of(after)
        missing = [f"the placeholder {{{slot}}} is missing" for slot in old if slot not in new]
        added = [f"the placeholder {{{slot}}} is new" for slot in new if slot not in old]
        return "; ".join(missing + added) or None


@dataclass(frozen=True)
class MaxTokens:
    """The text may have at most so many tokens.

    Args:
        limit: in tokens, counted as `llm.tokens.count` does.
    """

    limit: int

    def describe(self, before: str) -> str:
        """Names the limit."""
        return f"At most {self.limit} tokens; it has {tokens.count(before)} now."

    def problem(self, before: str, after: str) -> str | None:
        """Counts the tokens; a text that was too long before may get shorter step by step."""
        count = tokens.count(after)
        if count <= max(self.limit, tokens.count(before) - 1):
            return None
        return f"the new text has {count} tokens, and {self.limit} are allowed"


@dataclass(frozen=True)
class Wish:
    """A constraint in words: the optimizer is told; nothing can check it."""

    text: str

    def describe(self, before: str) -> str:
        """The words."""
        return self.text

    def problem(self, before: str, after: str) -> str | None:
        """Never: words cannot be checked."""
        return None


def contracts_for(constraints: Iterable[Contract | str], max_tokens: int) -> tuple[Contract, ...]:
    """The user's constraints behind those that always hold; a string is a `Wish`."""
    own = [Wish(constraint) if isinstance(constraint, str) else constraint for constraint in constraints]
    for contract in own:
        if not isinstance(contract, Contract):
            raise TypeError(f"a constraint is a text or has describe() and problem(), got {type(contract).__name__}")
    return (NotEmpty(), Placeholders(), MaxTokens(max_tokens), *own)


def broken(contracts: Iterable[Contract], before: str, after: str) -> str | None:
    """All that is wrong with a proposal, in one text; None when everything holds."""
    problems = [problem for contract in contracts if (problem := contract.problem(before, after)) is not None]
    return "; ".join(problems) or None
