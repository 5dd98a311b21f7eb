import asyncio

from textgrad_engine.llm import Completion, Metered, Usage, meter
from textgrad_engine.testing import FunctionModel, ScriptedModel


def test_usage_is_added_up_by_purpose(run, ask):
    """Reports say what forward, backward and optimizer calls cost, apart."""

    async def main():
        model = Metered(FunctionModel(lambda request: "four letters"))
        with meter() as outer:
            await model.complete(ask())
            with meter() as inner:
                await asyncio.gather(*(model.complete(ask(purpose="backward")) for _ in range(3)))
        return outer, inner

    outer, inner = run(main())
    assert {purpose: usage.calls for purpose, usage in outer.by_purpose.items()} == {"backward": 3, "forward": 1}
    assert list(inner.by_purpose) == ["backward"]
    assert outer.total.calls == 4


def test_cached_and_reasoning_tokens_are_added_up_apart(run, ask):
    """They have prices of their own, and say whether an endpoint's cache is worth its order of messages."""
    used = Usage(input_tokens=10, output_tokens=7, cached_tokens=4, reasoning_tokens=5, calls=1)

    async def main():
        with meter() as m:
            for _ in range(3):
                await Metered(ScriptedModel([Completion(text="x", usage=used)])).complete(ask())
        return m.total

    total = run(main())
    assert (total.input_tokens, total.output_tokens, total.cached_tokens, total.reasoning_tokens) == (30, 21, 12, 15)


def test_sums_of_money_do_not_depend_on_the_order():
    """Artifacts are equal at any concurrency, so sums must be exact."""
    with meter() as one, meter() as other:
        pass
    for dollars in (0.1, 0.2, 0.3, 1e-9):
        one.begin()
        one.end("forward", Usage(calls=1, dollars=dollars), failed=False)
    for dollars in (1e-9, 0.3, 0.2, 0.1):
        other.begin()
        other.end("forward", Usage(calls=1, dollars=dollars), failed=False)
    assert one.total.dollars == other.total.dollars


def test_an_unknown_price_makes_the_sum_unknown():
    """An unknown price is never a silent zero."""
    with meter() as m:
        m.begin()
        m.end("forward", Usage(calls=1, dollars=None), failed=False)
    assert m.total.dollars is None
