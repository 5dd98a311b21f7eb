"""What a contract is, and how several are checked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from textgrad_engine import templates
from textgrad_engine.checks import check
from textgrad_engine.errors import ReturnError


@runtime_checkable
class Contract(Protocol):
    """One thing that a new text must keep to: a subclass has `problem`; what is none has `describe`, too.

    Example:
        >>> class GrowsBy(Contract):
        ...     def __init__(self, most):
        ...         self.most = most
        ...     def problem(self, before, after):
        ...         grown = len(after) - len(before)
        ...         return f"it grew by {grown} characters; {self.most} are allowed" if grown > self.most else None
        >>> GrowsBy(2).problem("Sort.", "Sort it now.")
        'it grew by 7 characters; 2 are allowed'
    """

    def describe(self, before: str) -> str:
        """What is asked, in words for the optimizer; "" when nothing needs saying."""
        return ""

    @abstractmethod
    def problem(self, before: str, after: str) -> str | None:
        """What is wrong with `after`, in words for the optimizer; None when it holds."""
        ...


@dataclass(frozen=True)
class Wish:
    """A constraint in words: the optimizer is told; nothing can check it.

    Example:
        >>> from textgrad_engine import nn, optim
        >>> optimizer = optim.TGD([nn.Parameter("Answer.")], constraints=["Stay polite."])  # a text is a Wish
    """

    text: str

    def __post_init__(self) -> None:
        check(Wish, vars(self))

    def describe(self, before: str) -> str:
        """The words."""
        return self.text

    def problem(self, before: str, after: str) -> str | None:
        """Never: words cannot be checked."""
        return None


def broken(contracts: Iterable[Contract], before: str, after: str) -> str | None:
    """All that is wrong with a proposal, in one text; None when everything holds.

    Raises:
        ReturnError: a contract says neither None nor what is wrong.
    """
    problems: list[str] = []
    for contract in contracts:
        problem: object = contract.problem(before, after)
        if isinstance(problem, str):
            problems.append(problem)
        elif problem is not None:
            raise ReturnError(
                f"{type(contract).__name__}.problem() gave {problem!r:.80}; give None where the contract is kept, and "
                "else what is wrong, as a text"
            )
    return "; ".join(problems) or None


def say(contract: str, **slots: Any) -> str:
    """The words of a contract: the prompt ``contract_…``, which has what is asked and what is wrong in one file."""
    return templates.load(f"contract_{contract}").render(**slots)
