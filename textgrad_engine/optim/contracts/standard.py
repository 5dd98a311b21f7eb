"""The contracts of a parameter: those that always hold, and the user's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textgrad_engine.autograd import Variable
from textgrad_engine.callables import check_method
from textgrad_engine.nn.tool import MOST_CHARACTERS, Description
from textgrad_engine.optim.contracts.aims import aims_now
from textgrad_engine.optim.contracts.base import Contract, Wish
from textgrad_engine.optim.contracts.length import MaxCharacters, MaxTokens, NotEmpty
from textgrad_engine.optim.contracts.pattern import Matches
from textgrad_engine.optim.contracts.phrases import Requires
from textgrad_engine.optim.contracts.placeholders import Placeholders


def contracts_for(
    constraints: Iterable[Contract | str],
    max_tokens: int,
    *,
    template: bool = True,
    variable: Variable | None = None,
) -> tuple[Contract, ...]:
    """The user's constraints behind those that always hold, and then what else a run aims at; a string is a `Wish`.

    Args:
        constraints: the user's.
        max_tokens: the most tokens that a text may have.
        template: False for a text that no program fills, and whose braces are no slots. The user's own `Placeholders`
            hold in any case.
        variable: whose text it is. That of a `nn.Tool` has no slots, and has as few characters as OpenAI's API wants.

    Raises:
        TypeError: one is neither a text nor a contract.
    """
    own = [Wish(constraint) if isinstance(constraint, str) else constraint for constraint in constraints]
    for contract in own:
        if isinstance(contract, type) or not isinstance(contract, Contract):
            name = contract.__name__ if isinstance(contract, type) else type(contract).__name__
            hint = f"; write {name}(...)" if isinstance(contract, type) and isinstance(contract, Contract) else ""
            raise TypeError(
                f"a constraint is a text or has describe(before) and problem(before, after), got {name}{hint}"
            )
        check_method(contract, "describe", "before")
        check_method(contract, "problem", "before", "after")
    slots = slots_stay(own, variable) if template else ()
    describes = isinstance(variable, Description)
    short = [MaxCharacters(MOST_CHARACTERS)] if describes else []
    return (NotEmpty(), *slots, MaxTokens(max_tokens), *short, *own, *aims_now())


def slots_stay(own: Iterable[Contract], variable: Variable | None = None) -> tuple[Contract, ...]:
    """The contract by which a text keeps its slots; none where the user's say it, or it has none, as that of a tool.

    Args:
        own: the user's contracts.
        variable: whose text it is.
    """
    said = isinstance(variable, Description) or any(isinstance(contract, Placeholders) for contract in own)
    return () if said else (Placeholders(),)


def kept_by_some(
    contracts: Iterable[Contract | str], texts: Sequence[str]
) -> tuple[Requires | Matches | Placeholders, int, int] | None:
    """A phrase, a pattern or a slot that is asked of several texts, and that only some of them have as they are.

    Asked of the others, it has nothing new kept in them that does not say it, too; mostly it was meant for the first.

    Args:
        contracts: what is asked of all of the texts.
        texts: the texts.

    Returns:
        The first such contract, for one phrase or slot where it has several; the position of a text that keeps it, and
        of one that does not. None where there is none.

    Example:
        >>> contract, keeps, lacks = kept_by_some([Requires(["code", "JSON"])], ["Name a code.", "Read a code: JSON."])
        >>> contract.phrases, keeps, lacks
        (('JSON',), 1, 0)
    """
    for contract in contracts:
        asked: list[Requires | Matches | Placeholders] = []
        if isinstance(contract, Requires):
            asked += [Requires([phrase], contract.match_case) for phrase in contract.phrases]
        elif isinstance(contract, Placeholders):
            asked += [Placeholders([slot]) for slot in contract.kept or ()]
        elif isinstance(contract, Matches):
            asked.append(contract)
        for each in asked:
            kept = [each.problem(text, text) is None for text in texts]
            if any(kept) and not all(kept):
                return each, kept.index(True), kept.index(False)
    return None
