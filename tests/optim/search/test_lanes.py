"""Lanes: work at the same time, settled in the order in which it was begun."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from itertools import permutations

import pytest

from textgrad_engine import dispatch
from textgrad_engine.dispatch import scope
from textgrad_engine.optim.search.lanes import Lanes

WAIT = 60.0
"""Seconds after which a test that hangs says so."""


class Gate:
    """Work that ends when it is let through."""

    def __init__(self, value: str) -> None:
        self.value, self.begun, self.open = value, threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.open.wait(WAIT)
        return self.value


def test_there_is_at_least_one_lane() -> None:
    """None could not do anything."""
    with pytest.raises(ValueError, match="at least 1 lane, got 0"):
        Lanes(0)


def test_an_error_comes_out_at_its_place() -> None:
    """Not before what was begun earlier, and what was begun later is not lost."""
    lanes: Lanes[str] = Lanes(3)
    first = Gate("first")
    lanes.put(first, 7)
    lanes.put(lambda: 1 // 0, 8)  # type: ignore[arg-type,return-value]
    lanes.put(lambda: "third", 9)
    first.open.set()
    assert (lanes.oldest, lanes.take()) == (7, "first")
    assert lanes.oldest == 8
    with pytest.raises(ZeroDivisionError):
        lanes.take()
    assert (lanes.oldest, lanes.take(), lanes.under_way) == (9, "third", 0)
    assert lanes.oldest == 0
    lanes.close()


def test_twice_as_many_pieces_go_on_where_that_is_wanted() -> None:
    """What puts them says how many; more than that wait for a place."""
    lanes: Lanes[str] = Lanes(2, ahead=2)
    assert (lanes.count, lanes.most) == (2, 4)
    gates = [Gate(name) for name in "abcde"]
    for gate in gates:
        lanes.put(gate)
    for gate in gates[:4]:
        assert gate.begun.wait(WAIT)
    assert not gates[4].begun.is_set()
    for gate in gates:
        gate.open.set()
    assert [lanes.take() for _ in gates] == list("abcde")
    lanes.close()


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_results_come_in_the_order_of_putting(order: tuple[int, ...]) -> None:
    """Whichever piece is ready first."""
    lanes: Lanes[str] = Lanes(3)
    gates = [Gate(name) for name in "abc"]
    for gate in gates:
        lanes.put(gate)
    for gate in gates:
        assert gate.begun.wait(WAIT)  # all at the same time
    futures = [future for future, _ in lanes._begun]
    for number in order:
        gates[number].open.set()
        assert futures[number].result(WAIT) == gates[number].value
    assert [lanes.take(), lanes.take(), lanes.take()] == ["a", "b", "c"]
    lanes.close()


def test_what_is_begun_ahead_waits_for_a_lane_and_not_for_its_turn() -> None:
    """A lane that is done goes on with it, while the oldest piece is still waited for."""
    lanes: Lanes[str] = Lanes(2)
    slow, quick, ahead = (Gate(name) for name in ("slow", "quick", "ahead"))
    for gate in (slow, quick, ahead):
        lanes.put(gate)
    assert slow.begun.wait(WAIT)
    assert quick.begun.wait(WAIT)
    assert not ahead.begun.is_set()
    quick.open.set()
    assert ahead.begun.wait(WAIT)
    assert lanes.under_way == 3
    slow.open.set()
    ahead.open.set()
    assert [lanes.take(), lanes.take(), lanes.take()] == ["slow", "quick", "ahead"]
    lanes.close()


def test_a_piece_is_done_when_what_it_asked_for_is() -> None:
    """Also what it does not read: where a budget ends meanwhile, chance would say which of it is on record."""
    lanes: Lanes[str] = Lanes(1)
    gate = Gate("late")
    read: list[dispatch.Call] = []

    def piece() -> str:
        read.append(dispatch.submit(lambda: asyncio.to_thread(gate)))
        return "what was wanted"

    with dispatch.Scope(background=True):
        lanes.put(piece)
    assert gate.begun.wait(WAIT)
    (future, _), *_ = lanes._begun
    assert not future.done()
    gate.open.set()
    assert (lanes.take(), read[0].done) == ("what was wanted", True)
    lanes.close()


@pytest.mark.parametrize(("number", "who"), [(0, "a search"), (3, "proposal 3")])
def test_what_a_piece_waits_for_in_vain_is_told(number: int, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the number that the proposal has for the user; what is no proposal (a beam's feedback) is not called one."""
    monkeypatch.setattr(scope, "_PATIENCE", 0.0)
    monkeypatch.setattr(scope._log, "warning", lambda *words: (said.append(words[1]), gate.open.set()))
    said: list[str] = []
    gate, lanes = Gate("late"), Lanes[dispatch.Call](1)
    lanes.put(lambda: dispatch.submit(lambda: asyncio.to_thread(gate)), number)
    lanes.take()
    lanes.close()
    assert said == [who]


def test_context_is_that_of_the_putting() -> None:
    """Models, budgets, phases are context variables: each piece has those of when it was begun, and its own after."""
    colour: ContextVar[str] = ContextVar("colour", default="none")
    lanes: Lanes[str] = Lanes(2)

    def look() -> str:
        seen = colour.get()
        colour.set("changed inside")
        return seen

    for name in ("red", "blue"):
        token = colour.set(name)
        lanes.put(look)
        colour.reset(token)
    assert (lanes.take(), lanes.take(), colour.get()) == ("red", "blue", "none")
    lanes.close()


def test_close_waits_and_drops() -> None:
    """Every piece that was put is run to its end, its result or error is nobody's, and the lanes can be used again."""
    lanes: Lanes[str] = Lanes(2)
    gate = Gate("slow")
    done: list[str] = []

    def slow() -> str:
        done.append(gate())
        return "slow"

    lanes.put(slow)
    lanes.put(lambda: 1 // 0)  # type: ignore[arg-type,return-value]
    closing = threading.Thread(target=lanes.close)
    closing.start()
    assert gate.begun.wait(WAIT)
    assert (closing.is_alive(), done) == (True, [])
    gate.open.set()
    closing.join(WAIT)
    assert (closing.is_alive(), done, lanes.under_way) == (False, ["slow"], 0)
    lanes.put(lambda: "again")
    assert lanes.take() == "again"
    lanes.close()
    lanes.close()


def test_an_interrupted_wait_loses_nothing() -> None:
    """Ctrl-C while the oldest piece is waited for: it is still the oldest afterwards."""
    lanes: Lanes[str] = Lanes(1)
    gate = Gate("slow")
    lanes.put(gate)
    future, _ = lanes._begun[0]
    real = future.exception

    def interrupted(timeout: float) -> None:
        raise KeyboardInterrupt

    future.exception = interrupted  # type: ignore[assignment,method-assign]
    with pytest.raises(KeyboardInterrupt):
        lanes.take()
    future.exception = real  # type: ignore[method-assign]
    assert lanes.under_way == 1
    gate.open.set()
    assert lanes.take() == "slow"
    lanes.close()


def test_ctrl_c_that_gives_up_the_calls_does_not_wait_for_what_else_lanes_do() -> None:
    """A retriever that hangs would keep a search that was told twice to end, and then the interpreter."""
    lanes: Lanes[str] = Lanes(1)
    gate, held = Gate("slow"), Gate("held")
    threads = list[threading.Thread]()

    def hang() -> str:
        threads.append(threading.current_thread())
        return gate()

    def interrupted() -> None:
        try:
            scope.cancel()
            raise KeyboardInterrupt
        finally:
            lanes.close()

    late = threading.Timer(5.0, gate.open.set)
    with dispatch.Scope() as scope:
        lanes.put(hang)
        lanes.put(held)
        assert gate.begun.wait(WAIT)
        late.start()
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    late.cancel()
    assert (gate.open.is_set(), lanes.under_way) == (False, 0)
    assert threads[0].daemon
    gate.open.set()
    lanes.put(lambda: "again")
    assert (lanes.take(), held.begun.is_set()) == ("again", False)
    lanes.close()


def test_work_in_a_lane_knows_a_line_of_the_user() -> None:
    """The one that put it there, not one of Python's threads."""
    lanes = Lanes(1)
    lanes.put(dispatch.caller_line)
    line = lanes.take()
    lanes.close()
    assert isinstance(line, dispatch.Line)
    assert line.file == __file__
