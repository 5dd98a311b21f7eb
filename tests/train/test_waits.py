"""Which programs wait while they run: for answers, or for something else before they ask."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import textgrad_engine as tg
from textgrad_engine import Variable, nn, optim, use_models
from textgrad_engine.errors import AuthenticationFailed, Stopped
from textgrad_engine.llm import CallableModel, Completion, Request, Wrapper, caching
from textgrad_engine.llm.stop import Stop
from textgrad_engine.testing import FunctionModel, simulated_task
from textgrad_engine.train import waits
from textgrad_engine.train.calling import run_together
from textgrad_engine.train.evaluator import attempt
from textgrad_engine.train.waits import Look

PATIENCE = 60.0


class Clock:
    """Stands in the place of `time` for who looks at programs: it goes on when a program waits or computes."""

    def __init__(self) -> None:
        self.now, self.computed = 0.0, 0.0

    def monotonic(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.computed

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def compute(self, seconds: float) -> None:
        self.now, self.computed = self.now + seconds, self.computed + seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """A clock that stands still by itself."""
    found = Clock()
    monkeypatch.setattr(waits, "time", found)
    return found


def looked_at(work: Callable[[int], Any], items: int = 8, look: Look | None = None, **settings: Any) -> list[bool]:
    """For each item, whether it was run in a thread of its own."""
    here = threading.get_ident()

    def begin(number: int) -> bool:
        work(number)
        return threading.get_ident() != here

    return run_together(look or Look(work), begin, range(items), **settings)


def test_a_program_that_waits_before_it_asks_is_run_in_threads(clock: Clock) -> None:
    """Of a retriever, say: the first example connects, and three more show that it waits."""
    found = looked_at(lambda number: clock.wait(0.2) if number < 4 else None)
    assert found == [False] * 4 + [True] * 4


def test_a_program_that_computes_is_run_in_this_thread(clock: Clock) -> None:
    """Threads would not make it quicker."""
    assert not any(looked_at(lambda number: clock.compute(0.2)))


def test_one_that_is_quick_is_run_in_this_thread(clock: Clock) -> None:
    """What 100 examples wait for together is less than three seconds then."""
    assert not any(looked_at(lambda number: clock.wait(0.024)))


def test_what_waits_now_and_then_does_not_count(clock: Clock) -> None:
    """As on a machine with more to do than it can, or where something is loaded."""
    assert not any(looked_at(lambda number: clock.wait(0.5 if number % 3 else 0.0), 20))


def test_what_is_known_of_a_program_holds_for_later_evaluations(clock: Clock) -> None:
    """They would wait for a first example by itself each time."""

    def work(number: int) -> None:
        clock.wait(0.2 if len(seen) < 8 else 0.0)
        seen.append(number)

    seen = list[int]()
    assert looked_at(work) == [False] * 4 + [True] * 4
    assert looked_at(work) == [True] * 8
    assert looked_at(lambda number: None) == [False] * 8, "of others nothing is known"
    assert looked_at(work, items=1) == [False], "one needs no thread"


def test_what_is_known_of_a_method_is_that_of_its_object(clock: Clock) -> None:
    """Each time that it is looked up it is another object."""

    class Program:
        def forward(self, number: int) -> None:
            clock.wait(0.2)

    program, other = Program(), Program()
    assert looked_at(program.forward) == [False] * 4 + [True] * 4
    assert looked_at(program.forward) == [True] * 8
    assert looked_at(other.forward) == [False] * 4 + [True] * 4


def test_a_single_example_changes_nothing_of_what_is_known(clock: Clock) -> None:
    """It is run in this thread, whatever that has waited for before; the note on connections goes by what is known."""

    def work(number: int) -> None:
        clock.wait(0.2)

    looked_at(work)
    nn.ChatCompletion("Say x.", model=FunctionModel(lambda request: "x"))().data  # noqa: B018  it is waited for
    assert looked_at(work, items=1) == [False]
    assert Look(work).elsewhere


def test_one_at_a_time_is_in_this_thread(clock: Clock) -> None:
    """As what a program shares may be for one thread alone."""

    def work(number: int) -> None:
        clock.wait(0.2)

    assert not any(looked_at(work, concurrency=1))
    assert any(looked_at(work))
    assert not any(looked_at(work, concurrency=1)), "whatever is known"


@pytest.mark.parametrize("kind", ["unhashable", "refusing"])
def test_what_is_known_is_of_the_object_whatever_it_says_of_being_equal(clock: Clock, kind: str) -> None:
    """A dataclass has no hash, and others compare arrays; nobody asks them."""

    class Program:
        def __eq__(self, other: object) -> bool:
            raise ValueError("the truth value of an array is ambiguous")

        def __call__(self, number: int) -> None:
            clock.wait(0.2)

    class Refusing(Program):
        def __hash__(self) -> int:
            raise NotImplementedError

    made: Any = Program if kind == "unhashable" else Refusing
    program = made()
    assert looked_at(program) == [False] * 4 + [True] * 4
    assert looked_at(program) == [True] * 8
    assert looked_at(made()) == [False] * 4 + [True] * 4


def test_what_is_known_of_an_object_ends_with_it(clock: Clock) -> None:
    """Another one may be put in its place in memory, and of that nothing is known."""
    known = len(waits._known)
    for _ in range(20):
        assert looked_at(lambda number: clock.wait(0.2)) == [False] * 4 + [True] * 4
    gc.collect()
    assert len(waits._known) <= known


def test_what_cannot_be_remembered_is_looked_at_each_time(clock: Clock) -> None:
    """An object that nothing can refer to weakly would be kept for ever."""

    class Program:
        __slots__ = ()

        def __call__(self, number: int) -> None:
            clock.wait(0.2)

    program: Any = Program()
    for _ in range(2):
        assert looked_at(program) == [False] * 4 + [True] * 4


def test_a_program_that_keeps_its_event_loop_is_run_in_this_thread(clock: Clock) -> None:
    """A loop runs once at a time; one that each call makes anew is no hindrance."""

    async def retrieve() -> None:
        clock.wait(0.2)

    class Patched(asyncio.SelectorEventLoop):
        def run_until_complete(self, future: Any) -> Any:
            """As nest_asyncio has it: a step after the other."""
            with contextlib.suppress(StopIteration):
                while True:
                    future.send(None)

    for loop in (asyncio.new_event_loop(), Patched()):
        try:
            assert not any(looked_at(lambda number: loop.run_until_complete(retrieve()), 20))  # noqa: B023
        finally:
            loop.close()
    assert looked_at(lambda number: asyncio.run(retrieve())) == [False] * 4 + [True] * 4
    assert sys.getprofile() is None


def test_a_profiler_is_left_alone(clock: Clock) -> None:
    """One that the user has set sees all, and nothing is decided."""
    heard = list[str]()
    sys.setprofile(lambda frame, event, found: heard.append(event))
    try:
        assert not any(looked_at(lambda number: clock.wait(0.2)))
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    assert "call" in heard


def test_a_profiler_that_an_example_begins_goes_on(clock: Clock) -> None:
    """Also one that begins while it is looked at whether that example runs an event loop."""
    heard = list[str]()

    def begin(number: int) -> None:
        clock.wait(0.2)
        if number == 3:
            sys.setprofile(lambda frame, event, found: heard.append(event))

    try:
        looked_at(begin)
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    assert "call" in heard


def test_a_place_that_is_waited_for_is_no_wait_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit of examples at a time, each waits until one has ended."""
    threads = set[int]()
    clock = Clock()
    monkeypatch.setattr(waits, "time", clock)
    taken = tg.dispatch.place_taken

    def slow_place(places: Any) -> None:
        clock.wait(5.0)
        taken(places)

    monkeypatch.setattr("textgrad_engine.dispatch.place_taken", slow_place)
    chat = nn.ChatCompletion("{n}")

    def program(n: str) -> Variable:
        threads.add(threading.get_ident())
        return chat(n=n)

    rows = [{"n": str(n), "target": "x"} for n in range(12)]
    with use_models(forward=FunctionModel(lambda request: "x")):
        tg.evaluate(program, rows, nn.ExactMatch(), concurrency=2)
    assert threads == {threading.get_ident()}


class Retrieving(nn.Module):
    """Looks something up for each example, before its model is asked."""

    def __init__(self, look_up: Callable[[str], str]) -> None:
        super().__init__()
        self.chat = nn.ChatCompletion("{found}", system=nn.Parameter("Repeat.", role="system prompt"))
        self.look_up = look_up

    def forward(self, q: str) -> Variable:
        return self.chat(found=self.look_up(q))


ROWS = [{"q": str(n), "target": str(n)} for n in range(12)]


def test_examples_look_up_at_the_same_time(clock: Clock) -> None:
    """Those behind the first four meet at a barrier, which one thread could never pass."""
    together = threading.Barrier(8, timeout=PATIENCE)

    def look_up(q: str) -> str:
        clock.wait(0.2)
        if int(q) >= 4:
            together.wait()
        return q

    with use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):
        found = tg.evaluate(Retrieving(look_up), ROWS, nn.ExactMatch())
    assert found.mean == 1.0


@pytest.mark.parametrize("concurrency", [1, 2])
def test_nothing_is_looked_up_any_more_once_the_run_is_stopped(clock: Clock, concurrency: int) -> None:
    """It may cost, takes its time, and what it finds would not be asked about."""
    seen, both, over = list[str](), threading.Barrier(concurrency, timeout=PATIENCE), threading.Event()

    def look_up(q: str) -> str:
        clock.wait(0.2)
        seen.append(q)
        if int(q) >= 4:
            both.wait()
        if q == "4":
            stop.set()
            over.set()
        assert int(q) < 4 or over.wait(PATIENCE)
        return q

    model = FunctionModel(lambda request: request.messages[-1].text)
    with use_models(forward=model), Stop() as stop:
        found = attempt(Retrieving(look_up), ROWS, nn.ExactMatch(), concurrency)
    assert sorted(seen) == ["0", "1", "2", "3", "4", "5"][: 4 + concurrency]
    assert isinstance(found.ended, Stopped)
    assert found.evaluation is not None
    assert found.evaluation.scores[:4] == (1.0,) * 4


def test_what_only_asks_goes_on_where_the_run_is_stopped(tmp_path: Path) -> None:
    """A cache may have the answers, so that the result of the run says more."""
    app = CallableModel(lambda messages: str(messages[-1]["content"]), name="app", cache_key="1")
    program = nn.ChatCompletion("{q}", model=app)
    with caching(tmp_path), Stop() as stop:
        assert tg.evaluate(program, ROWS, nn.ExactMatch()).mean == 1.0
        stop.set()
        assert tg.evaluate(program, ROWS, nn.ExactMatch()).mean == 1.0


def test_a_run_learns_once_that_its_program_waits(main_waits: Any) -> None:
    """Each race would begin with an example by itself, for whose answer all others wait."""
    task = simulated_task(rules=4, seed=3, train=32, val=24)
    asked: list[int] = []

    class Waiting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = task.program()

        def forward(self, parcel: str) -> Variable:
            asked.append(threading.get_ident())
            answer = self.inner(parcel=parcel)
            return answer if answer.data else self.inner(parcel=parcel)

    class Held(Wrapper):
        async def complete(self, request: Request) -> Completion:
            if len(asked) == 1:
                await main_waits()
            return await self.inner.complete(request)

    program = Waiting()
    with use_models(forward=Held(task.model)):
        tg.Trainer(max_steps=3, batch_size=16).fit(
            program, task.loss, optim.TGD(program.parameters()), task.train, task.val
        )
    assert len(asked) > 100
    assert asked.count(threading.get_ident()) == 1


def test_what_belongs_to_one_thread_is_told_with_the_repair(clock: Clock) -> None:
    """A connection of sqlite3, of another thread than the one that made it, refuses in words of its own."""
    connection = sqlite3.connect(":memory:")

    def look_up(q: str) -> str:
        clock.wait(0.2)
        return str(connection.execute("select ?", (q,)).fetchone()[0])

    program = Retrieving(look_up)
    with use_models(forward=FunctionModel(lambda request: request.messages[-1].text)):
        with pytest.raises(sqlite3.ProgrammingError) as caught:
            tg.evaluate(program, ROWS, nn.ExactMatch())
        assert any("concurrency=1 runs one example after the other" in note for note in caught.value.__notes__)
        assert tg.evaluate(program, ROWS, nn.ExactMatch(), concurrency=1).mean == 1.0
    connection.close()


def test_an_error_of_a_model_has_nothing_to_do_with_threads(clock: Clock) -> None:
    """The note on what belongs to one thread would lead away from the key, say, that is to be repaired."""

    class Deciding(Retrieving):
        def forward(self, q: str) -> Variable:
            answer = super().forward(q)
            return self.chat(found=answer.data) if int(q) > 5 else answer

    def look_up(q: str) -> str:
        clock.wait(0.2)
        return q

    def refuse(request: Request) -> str:
        if request.messages[-1].text == "7":
            raise AuthenticationFailed("the key is refused")
        return request.messages[-1].text

    with use_models(forward=FunctionModel(refuse)), pytest.raises(AuthenticationFailed) as caught:
        tg.evaluate(Deciding(look_up), ROWS, nn.ExactMatch())
    assert not any("threads" in note for note in caught.value.__notes__)
