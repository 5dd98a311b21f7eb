"""Answers of a run that was cut: whose they are, what they cost, and what they do not."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from textgrad_engine.dispatch import waiting
from textgrad_engine.errors import BudgetExceeded, RunError, ServerFailed, Stopped, TruncatedResponse
from textgrad_engine.llm import (
    Completion,
    RetryPolicy,
    Stop,
    Usage,
    budget,
    call_key_scope,
    meter,
    repeat,
    resolve,
)
from textgrad_engine.llm.amounts import Amount
from textgrad_engine.llm.answers import Answer, entry_of
from textgrad_engine.llm.ids import digest
from textgrad_engine.llm.limits import Limit
from textgrad_engine.llm.reserve import UNTESTED, LastTest, Reserve
from textgrad_engine.llm.resume import Resumption
from textgrad_engine.llm.toolcalls import ToolCall, ToolRecord, ToolResult, Turn, inside
from textgrad_engine.llm.tools_on_record import ToolOnRecord
from textgrad_engine.llm.usage import call_item, call_place
from textgrad_engine.scoped import setting
from textgrad_engine.testing import FunctionModel

MODEL = FunctionModel(lambda request: "new", name="o")
PATIENCE = 2000.0  # seconds of the loop, whose time is virtual


def recorded(
    request: Any,
    outcome: Any,
    nth: int = 0,
    example: str = "",
    phase: int = 1,
    model: str = "o",
    item: tuple[int, ...] = (),
) -> Answer:
    """An answer as it was written down; a text is that of a call with ten tokens."""
    asked = entry_of(MODEL, request)["request"]
    if isinstance(outcome, str):
        outcome = Completion(text=outcome, usage=Usage(input_tokens=8, output_tokens=2, calls=1))
    return Answer(model, request.purpose, example, nth, nth + 1, digest(asked), outcome, None, asked, phase, item=item)


def resumption(*answers: Answer, phase: int = 1, validated: bool | None = None) -> Resumption:
    return Resumption(answers, phase=lambda: phase, validated=validated)


async def said(player: Resumption, request: Any, model: Any = MODEL) -> str:
    with player.answering():
        return (await resolve(model, policy=RetryPolicy(max_attempts=1)).complete(request)).text


def test_what_was_asked_inside_of_a_call_on_record_is_given_with_it_alone(run: Any, ask: Any) -> None:
    """An equal request from elsewhere is asked anew; else the call would count without what was asked inside of it."""
    outer = replace(recorded(ask("outer"), "made of it"), id="x")
    player = resumption(replace(recorded(ask(), "inner"), tool="x"), outer)

    async def main() -> list[Any]:
        with meter() as used:
            found = [await said(player, ask()), await said(player, ask("outer"))]
        return [*found, used.total.calls, player.left]

    assert run(main()) == ["new", "made of it", 3, []]


def test_what_was_asked_inside_of_a_call_that_was_cut_is_its_alone(run: Any, ask: Any) -> None:
    """Of two equal calls, killed both, each gets its own, whichever asks first; elsewhere it is nobody's answer."""
    player = resumption(replace(recorded(ask(), "of x"), tool="x"), replace(recorded(ask(), "of y", 1), tool="y"))

    async def main() -> list[str]:
        found = [await said(player, ask())]
        for name in ("y", "y", "x"):
            with inside(name):
                found.append(await said(player, ask()))
        return found

    assert run(main()) == ["new", "of y", "new", "of x"]
    assert player.left == []


def test_what_a_budget_has_no_room_for_of_a_tool_is_kept_for_the_next_time(run: Any, ask: Any) -> None:
    """What was counted is counted once; the rest, with the tool and those inside of it, is not given, and not lost."""
    call = ToolCall("mail", "{}", Turn("o", ask("turn")), 0)
    whole = ToolOnRecord(ToolRecord("mail", "{}", ToolResult("sent"), "x", call.also), 1, phase=1)
    within = ToolOnRecord(ToolRecord("sign", "{}", ToolResult("me"), "y", (), tool="x"), 0, phase=1)
    inner = [replace(recorded(ask(str(nth)), "inner", nth), tool="y" if nth == 3 else "x") for nth in range(4)]
    player = Resumption(inner, [whole, within], phase=lambda: 1)

    async def main(calls: int) -> int:
        with meter() as used, player.answering(), budget(calls=calls):
            try:
                given = await player.tool(call)
            except BudgetExceeded:
                assert player.tools.left == [whole, within]
            else:
                assert given == whole.record
        return used.total.calls

    assert [run(main(calls)) for calls in (2, 1, 1)] == [2, 1, 1]
    assert (player.left, player.tools.left) == ([], [])


def test_what_is_not_on_record_is_asked(run: Any, ask: Any) -> None:
    """The n-th equal request gets the n-th answer, and the one after the last a new one."""
    player = resumption(recorded(ask(), "first"), recorded(ask(), "second", 1))

    async def main() -> list[str]:
        return [await said(player, ask()) for _ in range(3)] + [await said(player, ask("other"))]

    assert run(main()) == ["first", "second", "new", "new"]
    assert (player.asked, len(player.played), player.left) == (2, 2, [])


def test_an_answer_belongs_to_its_model_and_its_example(run: Any, ask: Any) -> None:
    """Each example has samples of its own, and another model would have said something else."""
    player = resumption(recorded(ask(), "of a", example="a"), recorded(ask(), "of p", model="p"))

    async def main() -> list[str]:
        with call_key_scope("b"):
            other = await said(player, ask())
        with call_key_scope("a"):
            return [other, await said(player, ask()), await said(player, ask())]

    assert run(main()) == ["new", "of a", "new"]
    assert [each.model for each in player.left] == ["p"]


def test_an_answer_belongs_to_its_item_of_a_pmap(run: Any, ask: Any) -> None:
    """Whichever thread asks first, and also where the answer of another item is missing as the run was cut."""
    player = resumption(
        recorded(ask(), "of 1", item=(1,)),
        recorded(ask(), "of 2.0", 1, item=(2, 0)),
        recorded(ask("old"), "old", 2),
        recorded(ask("also beside"), "beside", 3),
        recorded(ask("also beside"), "of 0", 4, item=(0,)),
    )

    async def of_item(item: tuple[int, ...], text: str = "hello") -> str:
        token = call_item.set(item)
        try:
            return await said(player, ask(text))
        finally:
            call_item.reset(token)

    async def main() -> list[str]:
        found = [await of_item((2, 0)), await of_item((0,)), await of_item((1,)), await of_item((1,))]
        found += [await of_item((0,), "old"), await of_item((0,), "also beside")]
        return [*found, await said(player, ask("also beside"))]

    assert run(main()) == ["of 2.0", "new", "of 1", "new", "old", "of 0", "beside"]


def test_an_answer_belongs_to_its_conversation(run: Any, ask: Any) -> None:
    """Of two parts of a program that ask the same, or of one that is asked twice, whichever comes first."""
    first, second = (replace(recorded(ask(), f"of {n}", n), place=(0, 0, n)) for n in range(2))
    player = resumption(first, second)

    async def of_place(place: tuple[int, ...]) -> str:
        with setting(call_place, place):
            return await said(player, ask())

    async def main() -> list[str]:
        return [await of_place((0, *place)) for place in ((0, 1), (1, 0), (0, 0), (0, 1))]

    assert run(main()) == ["of 1", "new", "of 0", "new"]


def test_the_answers_of_a_phase_go_to_that_phase_first(run: Any, ask: Any) -> None:
    """Lanes that ask the same at the same time do not take each other's; where phases have shifted, nothing is lost."""
    player = resumption(recorded(ask(), "of 1", 0, phase=1), recorded(ask(), "of 2", 1, phase=2), phase=2)

    async def main() -> list[str]:
        return [await said(player, ask()) for _ in range(3)]

    assert run(main()) == ["of 2", "of 1", "new"]


def test_what_is_played_back_waits_in_no_queue(run: Any, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the limits per minute nor the places in flight are used up."""

    async def never(self: Limit, request: Any) -> Completion:
        raise AssertionError("it came to the queue")

    monkeypatch.setattr(Limit, "complete", never)
    assert run(said(resumption(recorded(ask(), "first")), ask())) == "first"


def test_it_counts_in_budgets_and_sums_as_it_did(run: Any, ask: Any) -> None:
    """It was paid for by this run; where a budget has no room for it, it is there for later."""
    player = resumption(recorded(ask(), "first"), recorded(ask(), "second", 1))

    async def main() -> tuple[Usage, int]:
        with meter() as used, budget(calls=1) as b:
            await said(player, ask())
            with pytest.raises(BudgetExceeded):
                await said(player, ask())
            assert (b.spent.calls, b.spent.total_tokens) == (1, 10)
        return used.total, len(player.left)

    total, left = run(main())
    assert (total.calls, total.total_tokens, left) == (1, 10, 1)
    assert run(said(player, ask())) == "second"


def test_what_was_not_asked_for_again_is_kept_from_new_calls(run: Any, ask: Any) -> None:
    """It was paid for all the same; what it is kept for may have it."""
    player = resumption(recorded(ask(), "first"), recorded(ask("gone"), "second", 1))

    async def main() -> list[str]:
        with budget(calls=3) as b, player.answering():
            model = resolve(MODEL)
            found = [(await model.complete(ask())).text, (await model.complete(ask("new"))).text]
            with pytest.raises(BudgetExceeded, match=r"2 spent, 1 kept for the rest of the run"):
                await model.complete(ask("newer"))
            found.append((await model.complete(ask("gone"))).text)
            assert b.spent.calls == 3
        return found

    assert run(main()) == ["first", "new", "second"]


@pytest.mark.parametrize("tested", [True, False])
def test_what_failed_is_asked_anew_in_the_room_that_the_test_on_record_leaves(run: Any, ask: Any, tested: bool) -> None:
    """On the way to that test, what is on record of it is what is kept for it; else the test may be another one."""
    down = ServerFailed("down")
    down.sent = False
    lost, test = recorded(ask(), down), recorded(ask("of the test"), "tested", 1)
    last = LastTest(1, {"system": "best"}) if tested else UNTESTED
    player = Resumption([lost, test], phase=lambda: 1, ends={(test.source, test.line): "best"}, tested=last)

    async def main() -> str:
        with budget(calls=2), player.answering(), Reserve(decided=False) as later:
            later.parts["best"] = Amount(calls=1)
            later.keep(Amount(calls=1))
            return (await resolve(MODEL).complete(ask())).text

    if tested:
        assert run(main()) == "new"
    else:
        with pytest.raises(BudgetExceeded):
            run(main())


@pytest.mark.parametrize(("sent", "held"), [(True, 1), (None, 1), (False, 0)])
def test_a_failure_that_may_have_cost_something_is_held_again(run: Any, ask: Any, sent: bool | None, held: int) -> None:
    """Its worst case, as then; what was never sent cost nothing."""
    down = ServerFailed("down")
    down.sent = sent
    player = resumption(recorded(ask(), down))

    async def main() -> tuple[str, int, int]:
        with budget(calls=9) as b:
            return await said(player, ask()), b.spent.calls, b.unknown.calls

    assert run(main()) == ("new", 1, held)
    assert player.left == []


def test_attempts_of_unknown_cost_before_an_answer_are_kept_and_then_held_again(run: Any, ask: Any) -> None:
    """They may have been charged, so no call has their room, neither before the answer is given again nor after."""
    lost = Usage(output_tokens=50, calls=2, dollars=0.0)
    player = resumption(recorded(ask(), Completion("said", usage=Usage(output_tokens=2, calls=1), unknown=lost)))

    async def main() -> tuple[str, int, Amount]:
        with budget(calls=3, tokens=10**6) as b, player.answering():
            model = resolve(MODEL)
            with pytest.raises(BudgetExceeded, match="3 kept for the rest of the run"):
                await model.complete(ask("new"))
            text = (await model.complete(ask())).text
            with pytest.raises(BudgetExceeded):
                await model.complete(ask("new"))
        return text, b.spent.calls, b.held

    assert run(main()) == ("said", 1, Amount(2, 50, 0))


def test_a_stopped_run_plays_nothing_back(run: Any, ask: Any) -> None:
    """Ctrl-C is heard as if the models were asked, also where there is no budget."""
    player = resumption(recorded(ask(), "first"))

    async def main() -> None:
        with Stop() as stop:
            stop.set()
            await said(player, ask())

    with pytest.raises(Stopped):
        run(main())
    assert len(player.left) == 1


def test_answers_of_the_cache_cost_as_little_as_then(run: Any, ask: Any) -> None:
    """They were not paid for by this run."""
    kept = Completion(text="kept", usage=Usage(), cached=True, saved=Usage(calls=1, input_tokens=5))

    async def main() -> tuple[Usage, Usage, int]:
        with meter() as used, budget(calls=1) as b:
            await said(resumption(recorded(ask(), kept)), ask())
        return used.total, used.saved, b.spent.calls

    total, saved, spent = run(main())
    assert (total.calls, saved.input_tokens, spent) == (0, 5, 0)


def test_a_sample_on_record_is_given_as_that_sample(run: Any, ask: Any) -> None:
    """The one that is missing is asked for, and not given what another got; of an item its own answer is given."""
    model = FunctionModel(lambda request: "new", name="o")
    answers = [replace(recorded(ask(), f"old {n}", nth=n), sample=(n,) if n else ()) for n in (0, 2)]
    items = [replace(recorded(ask("b"), f"item {n}", nth=n, item=(n,)), sample=(1 - n,)) for n in (0, 1)]

    async def main() -> list[str]:
        stack = resolve(model, policy=RetryPolicy(max_attempts=1))
        said = []
        with resumption(*answers, *items).answering():
            for number in range(3):
                with repeat(number):
                    said.append((await stack.complete(ask())).text)
            for number in range(2):
                with repeat(number), setting(call_item, (number,)):
                    said.append((await stack.complete(ask("b"))).text)
        return said

    assert run(main()) == ["old 0", "new", "old 2", "item 0", "item 1"]


BEGINNINGS = {
    "all was recorded": (True, "b", True),
    "cut, another example": (False, "b", False),
    "cut, the same example": (False, "a", True),
    "anyway": (None, "a", False),
}


@pytest.mark.parametrize("which", BEGINNINGS)
def test_other_requests_in_the_beginning_are_refused(run: Any, ask: Any, which: str) -> None:
    """Where they were recorded, or all of them were; what is refused once is not paid for by the next."""
    validated, example, refused = BEGINNINGS[which]
    player = resumption(recorded(ask("old"), "x", example="a"), validated=validated)

    async def main() -> str:
        with call_key_scope(example):
            return await said(player, ask("changed"))

    if not refused:
        assert run(main()) == "new"
        return
    for _ in range(2):
        with pytest.raises(
            RunError, match=rf"example '{example}'; the nearest is line 1, and differs so:(.|\n)*-.*old"
        ):
            run(main())
    assert player.asked == 0


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not on record waits a moment only."""
    monkeypatch.setattr("textgrad_engine.llm.resume._PATIENCE", 0.1)


def test_what_is_asked_at_once_may_be_on_record_in_part(run: Any, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with two prompts side by side was cut between their answers, and nothing has changed.

    That the machine was asleep between the two requests changes nothing either.
    """
    player = resumption(recorded(ask("right"), "old", example="a"), validated=False)
    leaping = count(step=3600)
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: next(leaping)))

    async def later() -> str:
        await asyncio.sleep(0.03)  # while the other one looks
        return await said(player, ask("right"))

    async def main() -> list[str]:
        with call_key_scope("a"):
            return await asyncio.gather(said(player, ask("left")), later())

    assert run(main()) == ["new", "old"]


@pytest.mark.usefixtures("hasty")
def test_nothing_is_asked_while_another_example_is_in_doubt(run: Any, ask: Any) -> None:
    """The first example was not answered when the run was cut; the second tells that the prompt was changed."""
    player = resumption(recorded(ask("old"), "x", example="b"), validated=False)

    async def one(example: str) -> str:
        with call_key_scope(example):
            return await said(player, ask("changed"))

    async def main() -> list[Any]:
        return await asyncio.gather(*map(one, "abc"), return_exceptions=True)

    assert [type(each) for each in run(main())] == [RunError] * 3
    assert player.asked == 0


@pytest.mark.usefixtures("hasty")
def test_nobody_waits_for_one_in_doubt_whose_call_was_given_up(run: Any, ask: Any) -> None:
    """A program that gives up a slow call (`asyncio.wait_for`) had all others of its run wait for ever."""
    player = resumption(recorded(ask("right"), "old", example="a"), validated=False)

    async def main() -> list[str]:
        with call_key_scope("a"):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(said(player, ask("left")), 0.01)
            first = await said(player, ask("right"))
        with call_key_scope("b"):
            return [first, await asyncio.wait_for(said(player, ask("left")), PATIENCE)]

    assert run(main()) == ["old", "new"]


def test_after_the_beginning_anything_may_be_asked(run: Any, ask: Any) -> None:
    """What is new there is what the run was cut before."""
    player = resumption(recorded(ask("old"), "x"), validated=True)
    player.validation_ended()
    assert run(said(player, ask("changed"))) == "new"


def test_another_model_is_named(run: Any, ask: Any) -> None:
    """The requests are equal, so there is nothing else to show."""
    player = resumption(recorded(ask(), "x", model="p"), validated=True)
    with pytest.raises(RunError, match="is for 'o', and was recorded with 'p'"):
        run(said(player, ask()))


def test_a_failed_answer_fails_again(run: Any, ask: Any) -> None:
    """After all attempts that were paid for then; it is not tried again."""
    error = TruncatedResponse("too long")
    error.usage = Usage(output_tokens=7, calls=3)
    player = resumption(recorded(ask(), error))

    async def main() -> int:
        with meter() as used, pytest.raises(TruncatedResponse, match="too long"):
            await said(player, ask())
        return used.total.calls

    assert run(main()) == 3
    assert player.asked == 0
