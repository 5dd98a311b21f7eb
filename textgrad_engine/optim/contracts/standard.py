"""The contracts of a parameter: those that always hold, and the user's."""

from __future__ import annotations

from collections.abc import Iterable

from textgrad_engine.optim.contracts.base import Contract, Wish
from textgrad_engine.optim.contracts.length import MaxTokens, NotEmpty
from textgrad_engine.optim.contracts.placeholders import Placeholders

__all__ = ["contracts_for"]


def contracts_for(constraints: Iterable[Contract | str], max_tokens: int) -> tuple[Contract, ...]:
    """The user's constraints behind those that always hold; a string is a `Wish`.

    Raises:
        TypeError: one is neither a text nor a contract.
    """
    own = [Wish(constraint) if isinstance(constraint, str) else constraint for constraint in constraints]
    for contract in own:
        if isinstance(contract, type) or not isinstance(contract, Contract):
            name = contract.__name__ if isinstance(contract, type) else type(contract).__name__
            hint = f"; write {name}(...)" if isinstance(contract, type) and isinstance(contract, Contract) else ""
            raise TypeError(f"a constraint is a text or has describe() and problem(), got {name}{hint}")
    return (NotEmpty(), Placeholders(), MaxTokens(max_tokens), *own)
