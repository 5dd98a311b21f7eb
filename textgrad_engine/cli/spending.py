"""What the options for models, prices and limits say, as the config file has it."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from textgrad_engine.cli.model_tables import ModelPrice
from textgrad_engine.cli.settings import Budget
from textgrad_engine.errors import ConfigError
from textgrad_engine.llm.money import money
from textgrad_engine.llm.response import MOST_PRICE, Usage
from textgrad_engine.report.words import plural


@dataclass(frozen=True)
class ModelOptions:
    """What the options that commands share say of models and limits, as they were given; None for what a config says.

    Attributes:
        model: does every role.
        judge: judges, whatever does the others.
        base_url: the endpoint of every role.
        price: of each of its models.
        limits: dollars, calls, tokens.
    """

    model: str | None
    judge: str | None
    base_url: str | None
    price: str | None
    limits: tuple[float | None, int | None, int | None]


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


def limits_in_words(limits: Budget, names: Collection[str]) -> str:
    """Some of the limits of a budget, by their keys.

    Example:
        >>> limits_in_words(Budget(dollars=0.5, calls=500), ["dollars", "calls"])
        '$0.50 and 500 calls'
    """
    words = {
        "dollars": money(limits.dollars or 0),
        "calls": plural(limits.calls or 0, "call"),
        "tokens": plural(limits.tokens or 0, "token"),
    }
    return " and ".join([words[name] for name in names])


def short_of(limits: Budget, needed: Budget) -> list[str]:
    """The limits that are less than what is needed, by their keys."""
    pairs = {name: (getattr(limits, name), getattr(needed, name)) for name in Budget.model_fields}
    return [name for name, (most, least) in pairs.items() if most is not None and least is not None and most < least]


def too_small(limits: Budget, least: Budget) -> str:
    """That a budget does not even score the seed prompt, in a sentence; "" where it does.

    Args:
        limits: the budget.
        least: what the validation and test examples take with the seed prompt alone.

    Example:
        >>> too_small(Budget(calls=40), Budget(calls=200))
        'The budget has room for 40 calls, but the seed prompt alone takes about 200 calls or more ...'
    """
    if not (short := short_of(limits, least)):
        return ""
    return (
        f"The budget has room for {limits_in_words(limits, short)}, but the seed prompt alone takes about "
        f"{limits_in_words(least, short)} or more on the validation and test examples: the run will end early. Raise "
        "it, or take fewer examples."
    )


def spent_already(limits: Budget, used: Usage) -> str:
    """That a run which goes on has used more than its budget allows, in a sentence; "" where it has not.

    Args:
        limits: of the whole run.
        used: what it has on record.

    Example:
        >>> spent_already(Budget(calls=60), Usage(calls=120, input_tokens=9, output_tokens=9))
        'The budget has room for 60 calls, but the 120 calls on record count in it: nothing new is bought.'
    """
    on_record = Budget.model_construct(dollars=used.dollars, calls=used.calls, tokens=used.total_tokens)
    if not (over := short_of(limits, on_record)):
        return ""
    return (
        f"The budget has room for {limits_in_words(limits, over)}, but the {limits_in_words(on_record, over)} on "
        "record count in it: nothing new is bought."
    )
