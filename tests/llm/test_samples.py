import asyncio

import pytest

from textgrad_engine.errors import RequestRefused, ServerFailed
from textgrad_engine.llm import Cache, Cached, GenerateConfig, OpenAIModel, budget, resolve, samples
from textgrad_engine.testing import FunctionModel, ScriptedModel


def test_a_sample_that_fails_gives_up_the_others(run, ask):
    """No call goes on that nobody waits for."""
    failing = iter([ServerFailed("x", status=500)])

    def answer(request):
        for error in failing:
            raise error
        return "late"

    model = FunctionModel(answer, latency=5)
    with pytest.raises(ServerFailed):
        run(samples(model, ask(), 3))
    assert model.in_flight == 0


def test_no_samples_are_refused(run, ask):
    """Zero is a mistake."""
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        run(samples(ScriptedModel([]), ask(), 0))


def test_each_sample_is_a_call_of_its_own(run, ask):
    """For the budget and the sums; and they differ."""
    model = resolve(ScriptedModel(["a", "b", "c"]))
    with budget(calls=3) as b:
        answers = run(samples(model, ask(), 3))
    assert [answer.text for answer in answers] == ["a", "b", "c"]
    assert b.spent.calls == 3


def test_samples_are_samples_with_a_cache_too(ask, tmp_path):
    """Equal requests at the same time are one request there, and these are not to be; asked again, they are kept."""
    texts = iter("abcdef")
    model = FunctionModel(lambda request: next(texts))
    model.cache_key = "mine"
    cached = Cached(model, Cache(tmp_path))

    async def main():
        return [[answer.text for answer in await samples(cached, ask(), n)] for n in (3, 3, 4)]

    assert [sorted(each) for each in asyncio.run(main())] == [["a", "b", "c"], ["a", "b", "c"], ["a", "b", "c", "d"]]


@pytest.mark.parametrize("name", ["n", "stream", "model", "messages"])
def test_what_the_adapter_decides_cannot_be_passed_by_it(run, ask, name):
    """n=4 in extra would be paid four times and read once."""
    model = OpenAIModel("m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(RequestRefused, match=f"extra={{'{name}'") as caught:
        run(model.complete(ask(config=GenerateConfig(extra={name: 4}))))
    assert caught.value.sent is False
