import re

import pytest

from textgrad_engine import llm
from textgrad_engine.errors import UnknownModelError
from textgrad_engine.llm import GenerateConfig, OpenAIModel, Wrapper, innermost, resolve, set_models
from textgrad_engine.llm.model import defaults_of
from textgrad_engine.testing import FunctionModel, ScriptedModel


@pytest.mark.parametrize("name", ["gpt-5-mini", "nobody/model", "", "openai/"])
def test_an_unknown_name_says_what_there_is(name):
    """The error lists the embedded models and how to give an address."""
    with pytest.raises(UnknownModelError, match=r"simulated/tickets.*base_url='http"):
        resolve(name)


@pytest.mark.parametrize("refused", [lambda: resolve("qwen3:8b"), lambda: set_models(forward="qwen3:8b")])
def test_what_the_error_says_of_a_server_makes_a_model_as_it_stands(refused):
    """Who names a model gives its address to `resolve`, as the calls that take a name take no address."""
    with pytest.raises(UnknownModelError) as told:
        refused()
    (said,) = re.findall(r"llm\.(resolve\(.*?\))", str(told.value))
    made = eval(said, {"resolve": resolve})
    assert (innermost(made).name, innermost(made).base_url) == ("qwen3:8b", "http://localhost:11434/v1")


def test_what_the_error_says_of_the_environment_holds_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that a script asks with OPENAI_BASE_URL set is unknown in a job that lacks it; nothing said so."""
    with pytest.raises(UnknownModelError, match="OPENAI_BASE_URL in the environment"):
        resolve("qwen3:8b")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:11434/v1")
    made = innermost(resolve("qwen3:8b"))
    assert (made.name, made.base_url) == ("qwen3:8b", "http://localhost:11434/v1")


def test_an_unknown_embedded_model_lists_those_there_are():
    """A typo in a config file is repaired from the message."""
    with pytest.raises(UnknownModelError, match="'simulated/tickets'"):
        resolve("simulated/ticket")


def test_settings_that_do_not_exist_or_do_not_apply_are_refused():
    """Sampling settings silently dropped: a defect of earlier systems."""
    with pytest.raises(TypeError, match=r"'temprature'.*temperature"):
        resolve("openai/gpt-5", temprature=0)
    with pytest.raises(TypeError, match="'temprature'"):
        OpenAIModel("gpt-5", temprature=0)
    with pytest.raises(TypeError, match="is a model already"):
        resolve(ScriptedModel([]), base_url="http://localhost/v1")
    with pytest.raises(TypeError, match="resolved already"):
        resolve(resolve(ScriptedModel([])), temperature=0)
    with pytest.raises(TypeError, match="got 3"):
        resolve(3)


def test_the_stack_is_what_is_documented():
    """The order of the wrappers is part of the meaning, and the repr shows it."""
    assert repr(resolve("openai/gpt-5")) == (
        "Metered(Traced(Taped(Cached(Retry(Limit(Budgeted(Deadline(Check(OpenAIModel('gpt-5')), 300)), "
        "max_in_flight=256, start=64))))))"
    )
    assert repr(resolve(ScriptedModel([]))) == (
        "Metered(Traced(Taped(Cached(Retry(Limit(Budgeted(Deadline(Check("
        "ScriptedModel(0 answers, name='scripted')), 300))))))))"
    )


def test_an_address_in_the_environment_counts_as_one_that_is_given(monkeypatch):
    """Whoever has set it for other tools need not write it again; a simulated model is asked here all the same."""
    local = "http://localhost:11434/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", local)
    for name in ("qwen3:8b", "openai/gpt-oss-20b"):
        inside = innermost(resolve(name))
        assert (inside.name, inside.base_url) == (name, local)
    assert not hasattr(innermost(resolve("simulated/tickets")), "base_url")


def test_what_is_resolved_is_not_wrapped_again():
    """Two retry loops inside each other: a defect of earlier systems."""
    once = resolve(ScriptedModel([]))
    assert resolve(once) is once
    around = Wrapper(once)
    assert resolve(around) is around


def test_names_with_an_address_go_there():
    """Any OpenAI-compatible server works, with the name that it knows; that of some begins with "openai/"."""
    local = "http://localhost:11434/v1"
    for name in ("llama3.2", "qwen3:8b", "openai/gpt-oss-20b", "accounts/fireworks/models/llama", "meta/llama"):
        inside = innermost(resolve(name, base_url=local, max_in_flight=3))
        assert (inside.name, inside.base_url) == (name, local)


def test_settings_reach_a_model_of_one_s_own(run, ask):
    """Settings given with a model fill in what its requests leave out, and no more."""
    model = FunctionModel(lambda request: "x")
    resolved = resolve(model, temperature=0.5, seed=3)
    run(resolved.complete(ask(config=GenerateConfig(temperature=0.0))))
    assert (model.requests[0].config.temperature, model.requests[0].config.seed) == (0.0, 3)
    assert defaults_of(resolved).temperature == 0.5


def test_the_rates_that_a_user_names_reach_the_limit() -> None:
    """An endpoint that says nothing in its headers still has limits that its user knows."""
    shown = repr(resolve("openai/gpt-5-mini", api_key="x", requests_per_minute=30, tokens_per_minute=9000))
    assert "requests_per_minute=30" in shown
    assert "tokens_per_minute=9000" in shown


def test_rates_belong_where_a_model_is_resolved() -> None:
    """Given to a stack that is there already they would be ignored, so they are refused."""
    with pytest.raises(TypeError, match="resolved already"):
        resolve(resolve("openai/gpt-5-mini", api_key="x"), requests_per_minute=30)


class Mine:
    """A model of one's own."""

    name = "mine"

    async def complete(self, request: llm.Request) -> llm.Completion:
        return llm.Completion("yes")


def test_a_name_of_a_model_that_is_no_text_is_refused() -> None:
    """It failed where the name is first looked at, amid the library."""
    with pytest.raises(TypeError, match="the name of a model is a text, and that of Own is 3"):
        llm.resolve(type("Own", (Mine,), {"name": 3})())


def test_a_wrapper_that_does_not_make_its_base_class_says_so() -> None:
    """Where it is first asked something, as Python only names what is missing."""

    class Bare(llm.Wrapper):
        def __init__(self, model: llm.Model) -> None:
            self.asked = 0

    with pytest.raises(AttributeError, match=r"^Bare\.__init__ did not call super\(\)\.__init__\(inner\)$"):
        llm.resolve(Bare(Mine()))
