"""What notebooks and pytest show of an error: the user's lines, and not those of the library between them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import signal
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import data, dispatch, llm, nn, optim
from textgrad_engine.dispatch.refusing import waits
from textgrad_engine.errors import ScriptError, Stopped
from textgrad_engine.keywords import names_told
from textgrad_engine.llm.stop import Stop, check_stop
from textgrad_engine.testing import FunctionModel, ScriptedModel
from textgrad_engine.tracebacks import hide


def frames_of(error: BaseException) -> list[FrameType]:
    found, entry = [], error.__traceback__
    while entry is not None:
        found.append(entry.tb_frame)
        entry = entry.tb_next
    return found


def shown(call: Callable[[], Any]) -> list[str]:
    """The modules of the frames that are not hidden, of what a call raises."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011
        call()
    return [
        frame.f_globals["__name__"] for frame in frames_of(caught.value) if not frame.f_locals.get("__tracebackhide__")
    ]


def metric(answer: str, target: str) -> float:
    raise LookupError(answer)


def answer(request: llm.Request) -> str:
    raise LookupError(request.purpose)


class Program(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.chat = nn.ChatCompletion("{text}", system=nn.Parameter("Sort.", role="system prompt"))

    def forward(self, text: str) -> tg.Variable:
        said: tg.Variable = self.chat(text=text)
        return self.chat(text=said) if said == "again" else said


ROWS = [{"text": "a", "target": "b"}]


def with_model(model: Any, call: Callable[[], Any]) -> Any:
    with tg.use_models(forward=model):
        return call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: tg.evaluate(Program(), [{"txt": "a"}], nn.ExactMatch()),
        lambda: tg.Trainer().fit(Program(), nn.ExactMatch(), None, ROWS, ROWS),
        lambda: tg.Trainer().fit(Program(), nn.ExactMatch(), optim.TGD([nn.Parameter("a")]), ROWS),
        lambda: optim.TGD(Program()),  # type: ignore[arg-type]
        lambda: data.load("no such file.csv"),
        lambda: nn.ChatCompletion("{text}")(txt="a"),
        lambda: nn.Metric(metric),  # type: ignore[call-arg]
        lambda: optim.TGD([], learning_rate=1),  # type: ignore[call-arg]
        lambda: tg.backward(tg.Variable("a")),
        lambda: with_model(ScriptedModel([]), lambda: Program()("a").data),
        lambda: with_model(ScriptedModel([]), lambda: str(Program()("a"))),
        lambda: with_model(ScriptedModel([]), lambda: "a" in nn.Sequential(Program())("a")),
        lambda: with_model(FunctionModel(answer), lambda: Program()("a").data),
        lambda: with_model(FunctionModel(str), lambda: tg.evaluate(Program(), ROWS, nn.Metric(metric, "it"))),
        lambda: asyncio.run(tg.aevaluate(Program(), [{"txt": "a"}], nn.ExactMatch())),
    ],
)  # fmt: skip
def test_of_an_error_that_leaves_the_library_its_own_frames_are_hidden(call: Callable[[], Any]) -> None:
    """The user's lines stay: those of the test, of a program's forward, of a metric, of a model."""
    found = shown(call)
    assert set(found) <= {__name__, "asyncio.runners", "asyncio.base_events"}
    assert found.count(__name__) >= 2


async def awaited() -> None:
    with tg.use_models(forward=FunctionModel(answer)):
        await nn.ChatCompletion("{text}")(text="a")


def test_of_an_awaited_value_that_failed_the_library_s_frames_are_hidden() -> None:
    """As of one that is read; the last one is that of the model, which is the user's."""
    found = shown(lambda: asyncio.run(awaited()))
    assert set(found) <= {__name__, "asyncio.runners", "asyncio.base_events"}
    assert found[-1] == __name__


def test_where_ctrl_c_ends_a_wait_the_frames_that_waited_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no fault of the library that somebody presses it there, and a cell showed seven places of it."""
    with tg.use_models(forward=FunctionModel(lambda request: "wrong")):
        loss = nn.ExactMatch()(Program()("a"), "right")
        assert loss.data == 0
    press = functools.partial(signal.raise_signal, signal.SIGINT)  # in no frame of its own, as in a lock of Python's
    monkeypatch.setattr("textgrad_engine.autograd.waiting.Waiting.next", staticmethod(press))
    found = shown(lambda: tg.backward(loss))
    assert set(found) == {__name__}


def test_of_an_error_that_a_future_of_the_library_s_failed_with_its_frames_are_hidden() -> None:
    """No `raise` of ours stands where it comes out, and yet it is meant: of calls that Ctrl-C kept from being sent."""

    all_begun = asyncio.Event()

    async def pressed(request: llm.Request) -> str:
        await all_begun.wait()
        stop.set()
        return "x"

    with tg.use_models(forward=llm.resolve(FunctionModel(pressed), max_in_flight=1)), Stop() as stop:
        first, _, last = (nn.ChatCompletion("{text}")(text=text) for text in "abc")
        dispatch.call_soon(all_begun.set)
        assert first.data == "x"
        assert set(shown(lambda: last.data)) == {__name__}


def test_of_a_twin_that_is_cancelled_the_library_s_frames_are_hidden() -> None:
    """Those of the error that ended its work, too, which stands above it as its cause."""
    rows = [{"text": str(number), "target": "x"} for number in range(50)]

    async def run() -> None:
        loop, under_way = asyncio.get_running_loop(), asyncio.Event()

        async def until_stopped(request: llm.Request) -> str:
            loop.call_soon_threadsafe(under_way.set)
            with contextlib.suppress(Stopped):
                while True:
                    check_stop()
                    await asyncio.sleep(0)
            return "x"

        with tg.use_models(forward=llm.resolve(FunctionModel(until_stopped), max_in_flight=1)):
            task = asyncio.ensure_future(tg.aevaluate(Program(), rows, nn.ExactMatch()))
            await under_way.wait()
            task.cancel()
            await task

    with pytest.raises(asyncio.CancelledError) as caught:
        asyncio.run(run())
    assert isinstance(caught.value.__cause__, Stopped)
    for error in (caught.value, caught.value.__cause__):
        ours = [frame for frame in frames_of(error) if frame.f_globals["__name__"].startswith("textgrad_engine.")]
        assert ours
        assert [frame.f_code for frame in ours if not frame.f_locals.get("__tracebackhide__")] == []


def test_a_program_s_own_line_is_shown_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """The read that waited for what failed is in the user's forward."""
    with tg.use_models(forward=ScriptedModel([])), pytest.raises(ScriptError) as caught:
        Program()("a").data  # noqa: B018
    lines = [frame.f_code.co_name for frame in frames_of(caught.value) if not frame.f_locals.get("__tracebackhide__")]
    assert lines == ["test_a_program_s_own_line_is_shown_between", "forward"]


def test_a_fault_of_the_library_is_shown_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Python raised it and no `raise` of ours, somebody has to find the line."""
    monkeypatch.setattr("textgrad_engine.train.evaluator.examples_of", None)
    found = shown(lambda: tg.evaluate(Program(), ROWS, nn.ExactMatch()))
    assert "textgrad_engine.train.evaluator" in found


def test_an_error_that_the_library_asks_for_itself_is_not_marked() -> None:
    """Only where it leaves: to mark each of a thousand lost answers would cost, and tells nobody anything."""
    names: dict[str, Any] = {"__name__": "textgrad_engine.somewhere", "hide": hide}
    exec("def raised(boundary):\n    try:\n        raise KeyError\n    except KeyError as error:\n"
         "        hide(error, boundary=boundary)\n        raise\n", names)  # fmt: skip
    exec("def asked(boundary):\n    raised(boundary)\n", names)
    assert shown(lambda: names["asked"]("textgrad_engine.other"))[-2:] == ["textgrad_engine.somewhere"] * 2
    assert shown(lambda: names["asked"]("textgrad_engine.somewhere")) == [__name__] * 2


class Marked(LookupError):
    """An error that a weak reference may be of."""


class Raises(nn.Module):
    def forward(self) -> None:
        raise Marked


@names_told
def told() -> None:
    raise Marked


@waits("await atold()")
@names_told
def waited() -> None:
    raise Marked


@pytest.mark.parametrize("call", [Raises(), told, waited])
def test_a_marked_error_is_freed_when_nobody_holds_it(call: Callable[[], None]) -> None:
    """It holds the frames that it came through, and what these hold, such as the lock of a run folder."""
    gc.collect()
    gc.disable()
    try:
        try:
            call()
        except Marked as error:
            found = weakref.ref(error)
        assert found() is None
    finally:
        gc.enable()
