"""A model that is recorded, or answered for: by the cassettes and the players around a call."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Protocol

from textgrad_engine.errors import BudgetExceeded, CallCancelled, ModelError, RunError, Stopped, TextgradError
from textgrad_engine.llm.budget import Budgeted
from textgrad_engine.llm.charged import costs_nothing
from textgrad_engine.llm.ended import unless_ended
from textgrad_engine.llm.ids import known_ids
from textgrad_engine.llm.meters import under_way
from textgrad_engine.llm.model import Model, Wrapper
from textgrad_engine.llm.recording import Recording, cassettes
from textgrad_engine.llm.request import Request
from textgrad_engine.llm.response import Completion
from textgrad_engine.llm.stop import check_stop
from textgrad_engine.llm.toolcalls import ToolCall, ToolRecord, ToolResult, are_observed, id_of, inside, tell_of
from textgrad_engine.llm.tools_on_record import is_run_again
from textgrad_engine.llm.usage import call_item, call_place, call_tool, next_moment
from textgrad_engine.scoped import setting

_ENDING = (BudgetExceeded, CallCancelled, RunError, Stopped)
"""What ends a run, so that nobody knows how far a tool had come that it went through."""


class Player(Protocol):
    """What answers calls in the place of their model, or asks it.

    Attributes:
        outer: what answers in the place of the model where this one has no answer; None where that asks the model.
        ids: of the calls on record inside of which others were made.
    """

    outer: Player | None
    ids: frozenset[str]

    async def answer(self, model: Budgeted, request: Request) -> Completion:
        """The answer to a request.

        Args:
            model: the model, ``.inner``, and the way to charge the budgets for what is played back.
            request: what is asked.
        """
        ...

    async def tool(self, call: ToolCall) -> ToolRecord | None:
        """What a call of a tool had given; None where that is not known, and the tool is run."""
        ...


async def tool_result(call: ToolCall, run: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
    """What a call of a tool gives, or gave where it is played back; cassettes and observers around are told of it.

    See NOTE [Tools that are played back] in `llm.tools_on_record`.

    Args:
        call: the call.
        run: runs the tool.

    Raises:
        Stopped: the run was stopped; the tool was not run.
        TextgradError: what `run` raised, which is on record as that, but where it ends the run; or a budget has no room
            for what was asked inside of the tool.
    """
    check_stop()
    player = answered_by.get()
    if player is None and not cassettes.get() and not are_observed():
        with under_way():
            return await unless_ended(run())
    started, began = next_moment(), time.perf_counter()
    begun = [(recording, recording.begin_tool()) for recording in cassettes.get()]
    known = None if player is None else await player.tool(call)
    raised: TextgradError | None = None
    on_record = known is not None
    if known is not None and not is_run_again(call, known):
        result = known.result
    else:
        name = id_of(call) if known is None else known.id
        with under_way(), inside(name):
            try:
                result = await unless_ended(run())
            except _ENDING:
                raise
            except TextgradError as error:
                raised, result = error, ToolResult("", f"{type(error).__name__}: {error}", raised=True)
    if known is None:
        also, took = call.also, time.perf_counter() - began
        known = ToolRecord(call.name, call.arguments, result, name, also, call.turn.example, latency=took)
    record = replace(
        known,
        result=result,
        item=call_item.get(),
        tool=call_tool.get(),
        place=call_place.get(),
        started=started,
        keys=call.turn.keys,
    )
    for recording, call_begun in begun:
        if not (on_record and recording.resumed):
            recording.end_tool(call_begun, record)
    tell_of(record)
    if raised is not None:
        raise raised
    return result


class Taped(Wrapper):
    """Writes calls to the cassettes that are recorded around them, or has what is played back there answer.

    What says something about the run, and not about the request, is not recorded: that it was stopped, and that a
    budget had no room for a call. In a replay, budgets say so themselves.
    """

    def __init__(self, inner: Model) -> None:
        super().__init__(inner)
        self._charging = Budgeted(_Kept(inner))

    def complete(self, request: Request) -> Coroutine[Any, Any, Completion]:
        """Pass the request on and record what came of it, or play it back."""
        player, recordings = answered_by.get(), cassettes.get()
        if player is None and not recordings:
            return self.inner.complete(request)
        if player is None:
            return _written(recordings, self.inner, request, self.inner.complete)
        new = tuple([each for each in recordings if not each.resumed])
        return _written(new, self.inner, request, functools.partial(player.answer, self._charging))


class _Kept(Wrapper):
    """Writes what is asked of a model, and not what is played back, to the cassettes that are gone on with."""

    def complete(self, request: Request) -> Coroutine[Any, Any, Completion]:
        resumed = tuple([each for each in cassettes.get() if each.resumed])
        return _written(resumed, self.inner, request, self.inner.complete)


async def _written(
    recordings: Sequence[Recording], model: Model, request: Request, ask: Callable[[Request], Awaitable[Completion]]
) -> Completion:
    """Ask, and write down what came of it."""
    begun = [(each, each.begin(model, request)) for each in recordings]
    try:
        completion = await ask(request)
    except ModelError as error:
        if isinstance(error, Stopped) or (isinstance(error, BudgetExceeded) and costs_nothing(error)):
            raise
        for recording, call in begun:
            recording.end(call, model, error)
        raise
    for recording, call in begun:
        recording.end(call, model, completion)
    return completion


@contextlib.contextmanager
def playing(player: Player) -> Iterator[None]:
    """Inside the block, `player` answers calls; its `outer` is who did so around the block."""
    player.outer = answered_by.get()
    with setting(answered_by, player), known_ids(player.ids):
        yield


answered_by: ContextVar[Player | None] = ContextVar("textgrad_engine_replay", default=None)
"""Who answers calls in the place of their models; None where nobody does."""
