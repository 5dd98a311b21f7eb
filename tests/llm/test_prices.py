import pytest

from textgrad_engine.llm import Usage, price, set_price
from textgrad_engine.llm.prices import price_of
from textgrad_engine.testing import ScriptedModel

MILLION = Usage(input_tokens=1_000_000, output_tokens=1_000_000)


@pytest.mark.parametrize("name", ["no-such-model", "openai/no-such-model", "nobody/gpt", "gpt", ""])
def test_an_unknown_price_is_none(name):
    """Never a silent zero."""
    assert price(name, MILLION) is None


def test_the_table_knows_models_with_and_without_their_provider():
    """Both ways to write a name mean the same model."""
    assert price("openai/gpt-5-mini", MILLION) == price("gpt-5-mini", MILLION) > 0


def test_cached_tokens_are_cheaper():
    """Cached input is priced apart, as the endpoint bills it."""
    cached = Usage(input_tokens=1_000_000, cached_tokens=900_000)
    assert price("gpt-5-mini", cached) < price("gpt-5-mini", Usage(input_tokens=1_000_000))


def test_a_stated_price_goes_before_the_table():
    """Contracts and own servers have their own prices."""
    set_price("openai/gpt-5-mini", 1.0, 3.0, cached=0.5)
    try:
        assert price("gpt-5-mini", MILLION) == 4.0
        assert price("openai/gpt-5-mini", Usage(input_tokens=1_000_000, cached_tokens=500_000)) == 0.75
    finally:
        set_price("openai/gpt-5-mini", None)
    assert price("gpt-5-mini", MILLION) != 4.0


def test_a_negative_price_is_refused():
    """It would give a budget money back."""
    with pytest.raises(ValueError, match="negative"):
        set_price("x", -1.0)


def test_simulated_and_free_models_cost_nothing():
    """What runs in this process is free, whatever it is called."""
    assert price("simulated/tickets", MILLION) == 0.0
    assert price_of(ScriptedModel([], name="gpt-5"), MILLION) == 0.0
