"""A run that is over, played back: what was recorded is given, and whatever was not is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from textgrad_engine.errors import BudgetExceeded, ConnectionFailed, RunError, Stopped
from textgrad_engine.llm import RetryPolicy, Stop, Usage, budget, call_key_scope, meter, resolve
from textgrad_engine.llm.answers import Answer
from textgrad_engine.llm.charged import mark
from textgrad_engine.llm.playback import Playback
from textgrad_engine.llm.taped import playing
from textgrad_engine.llm.usage import call_item
from textgrad_engine.testing import FunctionModel

from .test_resume import recorded


def unasked(request: Any) -> Any:
    """A model that must not be asked."""
    raise AssertionError(f"was asked: {request.messages}")


MODEL = FunctionModel(unasked, name="o")


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not on record waits a moment only."""
    monkeypatch.setattr("textgrad_engine.llm.playback._PATIENCE", 0.1)


def playback(*answers: Answer) -> Playback:
    return Playback(answers, phase=lambda: 1, refused=lambda what: RunError(f"gone: {what}"))


async def said(player: Playback, request: Any) -> str:
    with playing(player):
        return (await resolve(MODEL, policy=RetryPolicy(max_attempts=1)).complete(request)).text


def test_what_is_not_on_record_is_refused(run: Any, ask: Any) -> None:
    """Once more than it was asked, for another example, or something else; the first of it is remembered."""
    player = playback(recorded(ask(), "first"), recorded(ask(), "second", 1))

    async def main() -> list[str]:
        return [await said(player, ask()), await said(player, ask())]

    assert run(main()) == ["first", "second"]
    with pytest.raises(RunError, match=r"gone: a forward request .* for other examples only, or less often"):
        run(said(player, ask()))
    with call_key_scope("b"), pytest.raises(RunError, match=r"gone: .* or less often"):
        run(said(player, ask()))
    with pytest.raises(RunError, match="gone"):
        run(said(player, ask("other")))
    assert "less often" in player.problem
    with pytest.raises(RunError, match=r"the nearest is line 1, and differs so:(.|\n)*\+.*other"):
        run(said(playback(recorded(ask(), "first")), ask("other")))


def test_an_answer_belongs_to_its_item_of_a_pmap(run: Any, ask: Any) -> None:
    """Whichever thread asks first; what has no item is that of a run of before, or was asked beside the items."""
    player = playback(
        recorded(ask(), "beside"),
        recorded(ask(), "of 1", 1, item=(1,)),
        recorded(ask(), "of 0", 2, item=(0,)),
        recorded(ask("old"), "old", 3),
    )

    async def of_item(item: tuple[int, ...], text: str = "hello") -> str:
        token = call_item.set(item)
        try:
            return await said(player, ask(text))
        finally:
            call_item.reset(token)

    async def main() -> list[str]:
        return [await of_item((0,)), await of_item((1,)), await said(player, ask()), await of_item((0,), "old")]

    assert run(main()) == ["of 0", "of 1", "beside", "old"]


def test_of_a_purpose_that_is_not_on_record_nothing_is_near(run: Any, ask: Any) -> None:
    """The difference between a question and a critic's request would tell nobody anything."""
    with pytest.raises(RunError, match=r"^gone: a forward request for example ''(\n|$)"):
        run(said(playback(recorded(ask(purpose="judge"), "x")), ask("other")))


def test_a_failure_of_the_endpoint_is_what_the_request_got(run: Any, ask: Any) -> None:
    """The run went on without an answer, so it does again."""
    player = playback(recorded(ask(), ConnectionFailed("it broke")), recorded(ask(), "later", 1))
    with pytest.raises(ConnectionFailed, match="it broke"):
        run(said(player, ask()))
    assert run(said(player, ask())) == "later"


def test_a_call_that_found_no_room_finds_none_again(run: Any, ask: Any) -> None:
    """Also where it is asked first; those on record take the room that they had."""
    player = playback(recorded(ask("a"), "A"), recorded(ask("b"), "B", 1))

    async def main() -> list[Any]:
        with budget(calls=2):
            asked = [said(player, ask(word)) for word in ("c", "a", "b")]
            return await asyncio.gather(*asked, return_exceptions=True)

    refused, *answered = run(main())
    assert isinstance(refused, BudgetExceeded)
    assert answered == ["A", "B"]
    assert player.problem == ""


def test_what_is_refused_costs_nothing(run: Any, ask: Any) -> None:
    """It is looked for room, and no more."""
    with budget(calls=9) as given, meter() as used, pytest.raises(RunError, match="gone"):
        run(said(playback(recorded(ask("a"), "A")), ask("b")))
    assert (given.spent.calls, given.unknown.calls, used.total.calls) == (0, 0, 0)


def test_a_stop_ends_it(run: Any, ask: Any) -> None:
    """Ctrl-C is heard while it is played back, too."""
    stop = Stop()
    stop.set()
    with stop, pytest.raises(Stopped):
        run(said(playback(recorded(ask(), "x")), ask()))


def test_what_is_on_record_of_a_later_phase_waits_for_who_had_the_room(run: Any, ask: Any) -> None:
    """A call that a budget had no room for may be asked once more in another phase, where there was room for it."""
    player = playback(recorded(ask("had room"), "early"), recorded(ask("had none"), "late", phase=2))

    async def main() -> list[Any]:
        with budget(calls=1):
            both = await asyncio.gather(
                said(player, ask("had none")), said(player, ask("had room")), return_exceptions=True
            )
        return [*both, await said(player, ask("had none"))]

    refused, early, late = run(main())
    assert (type(refused), early, late) == (BudgetExceeded, "early", "late")


def test_a_further_attempt_that_had_no_room_waits_for_who_had_it(run: Any, ask: Any) -> None:
    """What it had used counts, and whoever limits a part of a run knows that it was this part's limit."""
    failure = mark(BudgetExceeded("no room for the second attempt"), usage=Usage(calls=1), sent=True)
    player = playback(recorded(ask(), failure), recorded(ask("had room"), "early"))

    async def main() -> tuple[bool, str, int]:
        with meter() as used, budget(calls=2) as limit:
            both = await asyncio.gather(said(player, ask()), said(player, ask("had room")), return_exceptions=True)
        return limit.refused(both[0]), both[1], used.total.calls

    assert run(main()) == (True, "early", 2)
