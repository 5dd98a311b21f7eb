"""What options for prices and limits come to, in words; the options themselves are in the tests of the commands."""

from __future__ import annotations

import pytest

from textgrad_engine.cli.settings import Budget
from textgrad_engine.cli.spending import limits_of, price_of, short_of, spent_already, too_small
from textgrad_engine.errors import ConfigError
from textgrad_engine.llm.response import Usage


def test_a_budget_that_just_does_is_large_enough() -> None:
    """Only what is less than needed is short; what nobody limits, or knows, is not."""
    needed = Budget(dollars=0.5, calls=60, tokens=900)
    assert short_of(needed, needed) == []
    assert short_of(Budget(dollars=0.5, calls=59, tokens=899), needed) == ["calls", "tokens"]
    assert short_of(Budget(calls=60), needed) == short_of(needed, Budget(calls=60)) == []
    assert too_small(Budget(calls=60), Budget(calls=60)) == ""
    assert too_small(Budget(dollars=0.25, calls=59), needed) == (
        "The budget has room for $0.25 and 59 calls, but the seed prompt alone takes about $0.50 and 60 calls or more "
        "on the validation and test examples: the run will end early. Raise it, or take fewer examples."
    )


def test_what_is_on_record_counts_in_a_budget() -> None:
    """Where it is more than the budget, nothing new is bought; tokens are those of both sides."""
    used = Usage(calls=2, input_tokens=90, output_tokens=10)
    assert spent_already(Budget(calls=2, tokens=100, dollars=0.1), used) == ""
    assert spent_already(Budget(calls=1, tokens=99, dollars=0.1), used) == (
        "The budget has room for 1 call and 99 tokens, but the 2 calls and 100 tokens on record count in it: "
        "nothing new is bought."
    )
    assert "$0.10, but the $0.50 on record count in it" in spent_already(
        Budget(dollars=0.1), Usage(calls=1, dollars=0.5)
    )


def test_a_price_has_each_part_once() -> None:
    """In any order; a part that is named otherwise, twice, or without a number is refused, and so is one too few."""
    found = price_of("output=1.6, cached=0.1,input=0.4")
    assert found is not None
    assert (found.input, found.cached, found.output) == (0.4, 0.1, 1.6)
    assert price_of(None) is None
    for said in ("input=1,output=2,input=1", "input=1,output=2,x=1", "input=1,output", "input=1,output=-1", "input=1"):
        with pytest.raises(ConfigError, match="--price"):
            price_of(said)


@pytest.mark.parametrize("dollars", [float("nan"), float("inf")])
def test_a_limit_in_dollars_is_a_number(dollars: float) -> None:
    """No limit is said by leaving it out."""
    with pytest.raises(ConfigError, match="name a number of dollars, or leave it out"):
        limits_of(dollars, None, None)
    assert limits_of(0.5, 1, 2) == Budget(dollars=0.5, calls=1, tokens=2)
