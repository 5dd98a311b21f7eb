import genai_prices
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textgrad_engine.errors import BudgetExceeded
from textgrad_engine.llm import (
    Completion,
    Fallback,
    GenerateConfig,
    OpenAIModel,
    Price,
    Usage,
    budget,
    price,
    resolve,
    set_price,
)
from textgrad_engine.llm.context import context_window
from textgrad_engine.llm.model import is_free
from textgrad_engine.llm.prices import known_context, price_of
from textgrad_engine.testing import FunctionModel, ScriptedModel

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


@pytest.mark.parametrize("tier", [None, "priority"])
@pytest.mark.parametrize("name", ["gpt-5-mini", "stated"])
def test_more_cached_input_than_input_costs_what_the_cached_costs(name, tier):
    """A model of one's own may count them apart; a negative price would give a budget money back."""
    set_price("stated", 10.0, 30.0, cached=1.0)
    try:
        apart, inside = Usage(input_tokens=10, cached_tokens=2000), Usage(input_tokens=2000, cached_tokens=2000)
        assert price(name, apart, tier) == price(name, inside, tier) > 0
    finally:
        set_price("stated", None)


def test_a_negative_price_is_refused():
    """It would give a budget money back."""
    with pytest.raises(ValueError, match="from 0 to 1,000,000, got input = -1"):
        set_price("x", -1.0)


def test_what_an_endpoint_calls_simulated_is_not_free():
    """A limit in dollars would let all of its calls through."""
    model = resolve("simulated/tickets", base_url="http://localhost:1/v1")
    assert (is_free(model), price_of(model, MILLION)) == (False, None)
    set_price("simulated/tickets", 2.0)
    assert price_of(model, Usage(input_tokens=10**6)) == 2.0
    set_price("simulated/tickets", None)
    assert is_free(resolve("simulated/tickets"))


def test_simulated_and_free_models_cost_nothing():
    """What runs in this process is free, whatever it is called."""
    assert price("simulated/tickets", MILLION) == 0.0
    assert price_of(ScriptedModel([], name="gpt-5"), MILLION) == 0.0


@pytest.mark.parametrize(
    "name", ["gpt-5-mini", "o3", "anthropic/claude-sonnet-4-5", "perplexity/sonar", "deepseek-chat"]
)
@given(st.integers(0, 10**7), st.floats(0, 1), st.integers(0, 10**6))
def test_a_price_is_the_tables_to_the_last_digit(name, read, share, written):
    """Rates are taken out of the table once, and the table is not asked again: it must make no difference."""
    usage = Usage(input_tokens=read, cached_tokens=round(share * read), output_tokens=written)
    provider, _, rest = name.rpartition("/")
    theirs = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens or None,
    )
    wanted = genai_prices.calc_price(theirs, rest, provider_id=provider or None).total_price
    assert price(name, usage) == float(wanted)


def test_a_price_that_rises_with_the_size_of_the_request_is_not_taken_for_a_straight_line():
    """Some models cost twice as much beyond a number of input tokens."""
    small, large = Usage(input_tokens=100_000), Usage(input_tokens=1_000_000)
    assert price("gemini-2.5-pro", large) > 10 * price("gemini-2.5-pro", small)


@pytest.mark.parametrize(
    ("name", "context"),
    [("openai/gpt-4o", 128_000), ("gpt-4o", 128_000), ("simulated/tickets", None), ("no-such-model", None)],
)
def test_contexts_come_from_the_table_too(name, context):
    """A number that is not known is None, never a guess."""
    assert known_context(name) == context


@pytest.mark.parametrize(
    ("name", "address", "owner", "there"),
    [
        ("openai/gpt-oss-120b", "https://api.groq.com/openai/v1", "groq", "openai/gpt-oss-120b"),
        ("openai/gpt-oss-120b", "https://openrouter.ai/api/v1", "openrouter", "openai/gpt-oss-120b"),
        ("gpt-oss-120b", "https://api.cerebras.ai/v1", "cerebras", "gpt-oss-120b"),
        ("openai/gpt-4o:nitro", "https://openrouter.ai/api/v1", "openrouter", "openai/gpt-4o"),
        ("deepseek/deepseek-r1:free", "https://openrouter.ai/api/v1", "openrouter", "deepseek/deepseek-r1:free"),
        (
            "models/gemini-2.5-flash",
            "https://generativelanguage.googleapis.com/v1beta/openai/",
            "google",
            "gemini-2.5-flash",
        ),
        ("gpt-5-mini", "https://ours.openai.azure.com/openai/v1", "azure", "gpt-5-mini"),
        ("gpt-4o", "https://eu.api.openai.com/v1", "openai", "gpt-4o"),
        ("gpt-4o", "http://localhost:4000/v1", "openai", "gpt-4o"),
    ],
)
def test_a_price_is_that_of_the_endpoint_that_is_asked(name, address, owner, there):
    """Groq takes three times what the name alone would say, and a budget in dollars has to hold there."""
    model = OpenAIModel(name, base_url=address, api_key="k")
    tokens = genai_prices.Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    wanted = genai_prices.calc_price(tokens, there, provider_id=owner).total_price
    assert price_of(model, MILLION) == float(wanted)


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("deepseek-r1:8b", "http://localhost:11434/v1"),
        ("gpt-oss:latest", "http://localhost:11434/v1"),
        ("our-deployment", "https://ours.openai.azure.com/openai/v1"),
        ("accounts/fireworks/models/none-of-that-name", "https://api.fireworks.ai/inference/v1"),
    ],
)
def test_a_price_that_the_endpoint_s_table_lacks_is_unknown(name, address):
    """What begins with the name of a model of a cloud is another one on a machine of one's own."""
    model = OpenAIModel(name, base_url=address, api_key="k")
    assert (price_of(model, MILLION), context_window(model)) == (None, None)


def test_a_context_that_the_table_lacks_for_an_endpoint_is_that_of_the_name():
    """It has none for OpenRouter's models."""
    model = OpenAIModel("anthropic/claude-sonnet-4", base_url="https://openrouter.ai/api/v1", api_key="k")
    assert context_window(model) == 200_000


@pytest.mark.parametrize("address", [None, object(), ["https://api.openai.com/v1"]])
def test_a_model_of_one_s_own_may_have_any_address(address):
    """It is no part of the protocol, so it may be an object of whatever client is used, or nothing."""
    model = ScriptedModel(["yes"], name="gpt-4o")
    model.base_url, model.free = address, False
    assert price_of(model, MILLION) == price("gpt-4o", MILLION) > 0
    assert context_window(model) == 128_000


def test_the_usual_tier_costs_what_no_tier_costs():
    """OpenAI names it in each answer, and asking the table takes a hundred times as long."""
    model = OpenAIModel("gpt-5-mini", api_key="k")
    assert price_of(model, MILLION, "default") == price_of(model, MILLION)


@pytest.mark.parametrize("wrong", [-0.1, 1e308, float("nan"), float("inf"), True, "0.4", None])
@pytest.mark.parametrize("name", ["input", "output"])
def test_a_price_is_a_number_that_is_not_negative(name, wrong):
    """It would give a budget money back, never be spent, or end in an OverflowError in the middle of a run."""
    with pytest.raises(ValueError, match=f"per million tokens, from 0 to 1,000,000, got {name} = "):
        Price(**{"input": 1.0, "output": 1.0, name: wrong})
    with pytest.raises(ValueError, match="got cached = -1"):
        Price(1.0, 2.0, -1)


def test_the_price_of_one_model_goes_before_what_is_stated_for_its_name_and_before_the_table():
    """Two deployments of one name may be paid differently, at the same time."""
    dear, cheap = Price(input=4.0, cached=1.0, output=16.0), Price(input=0.4, output=1.6)
    usage = Usage(input_tokens=10**6, cached_tokens=500_000, output_tokens=10**6)
    set_price("gpt-5-mini", 100.0, 100.0)
    try:
        models = [OpenAIModel("gpt-5-mini", price=dear), resolve("openai/gpt-5-mini", price=cheap)]
        assert [price_of(each, usage, "priority") for each in models] == [18.5, 2.0]
        assert price_of(resolve(models[0]), usage) == 18.5
        assert price_of(resolve(models[0], price=cheap), usage) == 2.0
        assert price_of(Fallback(models[1], models[0]), usage) == 2.0
    finally:
        set_price("gpt-5-mini", None)


def test_a_model_of_one_s_own_says_what_it_costs():
    """Or whoever resolves it does; a price of another kind is none."""
    model = FunctionModel(lambda request: "fine")
    assert price_of(model, MILLION) == 0.0
    assert price_of(resolve(model, price=Price(1.0, 2.0)), MILLION) == 3.0
    model.price = Price(3.0, 4.0)
    assert (price_of(model, MILLION), is_free(resolve(model))) == (7.0, False)
    model.price = 5
    assert price_of(model, MILLION) == 0.0
    with pytest.raises(TypeError, match="resolved already"):
        resolve(resolve(model), price=Price(1.0, 1.0))


def test_a_budget_in_dollars_holds_for_a_model_whose_price_is_stated(run, ask):
    """An Azure deployment that is not called like its model had none."""
    model = resolve(
        FunctionModel(lambda request: Completion(text="x", usage=Usage(calls=1, input_tokens=100, output_tokens=1000))),
        price=Price(input=0.0, output=1000.0),
    )

    async def main():
        with budget(dollars=2.5) as spent:
            for _ in range(2):
                await model.complete(ask(config=GenerateConfig(max_tokens=1000)))
            with pytest.raises(BudgetExceeded):
                await model.complete(ask(config=GenerateConfig(max_tokens=1000)))
        return spent.spent.dollars

    assert run(main()) == pytest.approx(2.0)
