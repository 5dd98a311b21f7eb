"""What the options for prices and limits say, as the config file has it."""

from __future__ import annotations

import math

from textgrad_engine.cli.model_tables import ModelPrice
from textgrad_engine.cli.settings import Budget
from textgrad_engine.errors import ConfigError
from textgrad_engine.llm.response import MOST_PRICE


def price_of(said: str | None) -> ModelPrice | None:
    """The price that `ModelPrices` gave, if it did.

    Raises:
        ConfigError: it is none.

    Example:
        >>> price_of("input=0.4, output=1.6")
        ModelPrice(input=0.4, cached=None, output=1.6)
    """
    if said is None:
        return None
    given: dict[str, float] = {}
    for part in said.split(","):
        name, equals, value = (each.strip() for each in part.partition("="))
        if name not in ModelPrice.model_fields or not equals or name in given:
            raise ConfigError(f"--price {said!r}: {_PRICE}; {part.strip()!r} is no part of that")
        try:
            given[name] = float(value)
        except ValueError:
            raise ConfigError(f"--price {said!r}: {name} = {value!r} is no number; {_PRICE}") from None
        if not 0 <= given[name] <= MOST_PRICE:
            raise ConfigError(
                f"--price {said!r}: {name} is dollars per million tokens, a number from 0 to {MOST_PRICE:,}"
            )
    if not {"input", "output"} <= given.keys():
        raise ConfigError(f"--price {said!r}: {_PRICE}; input and output must be there")
    return ModelPrice(**given)


_PRICE = "write dollars per million tokens as input=0.4,cached=0.1,output=1.6"


def limits_of(dollars: float | None, calls: int | None, tokens: int | None) -> Budget:
    """The limits that `BudgetLimit`, `CallsLimit` and `TokensLimit` gave, in the order of [budget].

    Raises:
        ConfigError: one is no number.

    Example:
        >>> limits_of(None, 500, None)
        Budget(dollars=None, calls=500, tokens=None)
    """
    if dollars is not None and not math.isfinite(dollars):
        raise ConfigError(f"--budget {dollars}: name a number of dollars, or leave it out for no limit")
    return Budget(dollars=dollars, calls=calls, tokens=tokens)
