"""What a contract is, and how several are checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from textgrad_engine import templates

__all__ = ["Contract", "Wish", "broken", "say"]


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
class Wish:
    """A constraint in words: the optimizer is told; nothing can check it."""

    text: str

    def describe(self, before: str) -> str:
        """The words."""
        return self.text

    def problem(self, before: str, after: str) -> str | None:
        """Never: words cannot be checked."""
        return None


def broken(contracts: Iterable[Contract], before: str, after: str) -> str | None:
    """All that is wrong with a proposal, in one text; None when everything holds."""
    problems = [problem for contract in contracts if (problem := contract.problem(before, after)) is not None]
    return "; ".join(problems) or None


def say(contract: str, **slots: Any) -> str:
    """The words of a contract: the prompt ``contract_…``, which has what is asked and what is wrong in one file."""
    return templates.load(f"contract_{contract}").render(**slots)
