import asyncio
import threading
from contextvars import copy_context

import pytest

from textgrad_engine import dispatch
from textgrad_engine.dispatch import threads


def done(events):
    return [event.wait(60) for event in events] == [True] * len(events)


def test_a_thread_that_has_ended_its_work_is_used_again():
    """Work by the thousand does not cost a thread each."""
    pool, idents = threads._Threads(), set()
    for count in range(20):
        ended = threading.Event()

        def work(ended=ended):
            idents.add(threading.get_ident())
            ended.set()

        while count and not pool.idle:  # the thread says that it is idle a moment after its work has ended
            pass
        pool.begin(work)
        assert ended.wait(60)
    assert len(idents) == 1


def test_idle_threads_end(monkeypatch):
    """A process that scores no more keeps none of them."""
    monkeypatch.setattr(threads, "IDLE_SECONDS", 0.0)
    pool, found = threads._Threads(), []
    pool.begin(lambda: found.append(threading.current_thread()))
    while not found:
        pass
    found[0].join(60)
    assert (found[0].is_alive(), pool.idle) == (False, 0)


def test_as_many_pieces_run_at_a_time_as_there_are_places():
    """The others begin when these have ended."""
    turns, order, gate = threads._Turns(most=2), [], threading.Event()
    begun = [threading.Event() for _ in range(6)]

    def piece(number):
        order.append(number)
        begun[number].set()
        gate.wait(60)

    for number in range(6):
        turns.begin(lambda number=number: piece(number))
    assert done(begun[:2])
    assert sorted(order) == [0, 1]
    gate.set()
    assert done(begun)
    assert sorted(order) == list(range(6))


def test_a_piece_that_another_one_has_begun_waits_for_no_place():
    """However it is waited for, or both would wait for ever."""
    turns, ended = threads._Turns(most=1), threading.Event()

    def outer():
        inner = threading.Event()
        turns.begin(inner.set)
        assert inner.wait(60)
        ended.set()

    with threads.inside_turn():
        inside = copy_context()
    turns.begin(lambda: inside.run(outer))
    assert ended.wait(60)


def test_who_waits_for_a_value_holds_no_place(monkeypatch):
    """The value may be that of a piece that has not had its turn yet."""
    monkeypatch.setattr(threads, "_turns", threads._Turns(most=1))
    ready, ended = threading.Event(), threading.Event()

    async def value():
        while not ready.is_set():
            await asyncio.sleep(0)
        return "there"

    def reader():
        call = dispatch.submit(value)
        found.append(call.result())
        ended.set()

    found = []
    threads.begin_in_turn(reader)
    threads.begin_in_turn(ready.set)
    assert ended.wait(60)
    assert found == ["there"]


class NoThreads:
    """A system that gives so many threads."""

    def __init__(self, most):
        self.left, self.lock, self.begin_one = most, threading.Lock(), threads._Threads().begin

    def begin(self, work):
        with self.lock:
            if not self.left:
                raise RuntimeError("can't start new thread")
            self.left -= 1
        self.begin_one(work)


def test_work_waits_for_the_threads_there_are_where_the_system_gives_no_more(monkeypatch):
    """Thousands of metrics that wait for their models have a thread each: work that gets none was lost, and hung."""
    monkeypatch.setattr(threads, "_turns", threads._Turns(most=1))
    monkeypatch.setattr(threads, "_threads", NoThreads(2))
    ready, ended = threading.Event(), [threading.Event() for _ in range(6)]

    async def value():
        while not ready.is_set():
            await asyncio.sleep(0)

    def reader(number):
        dispatch.submit(value).result()
        ended[number].set()

    for number in range(6):
        threads.begin_in_turn(lambda number=number: reader(number))
    ready.set()
    assert done(ended)


def test_where_no_thread_is_to_be_had_at_all_that_is_an_error(monkeypatch):
    """And the place is free again."""
    turns, ended = threads._Turns(most=1), threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(threads, "_threads", NoThreads(0))
        with pytest.raises(RuntimeError, match="can't start"):
            turns.begin(ended.set)
    assert not ended.is_set()
    turns.begin(ended.set)
    assert ended.wait(60)


@pytest.mark.parametrize("most", [1, 2])
def test_a_pool_does_with_the_threads_that_the_system_gives(most, monkeypatch):
    """All pieces are done, whoever does them."""
    monkeypatch.setattr(threads, "_threads", NoThreads(most))
    pool, ready = threads.Pool(8), threading.Event()
    first = [pool.submit(ready.wait, 60) for _ in range(most)]
    found = [pool.submit(pow, 2, n) for n in range(20)]
    ready.set()
    assert [each.result(60) for each in (*first, *found)] == [True] * most + [2**n for n in range(20)]


def test_a_pool_that_gets_no_thread_at_all_says_so(monkeypatch):
    """And the piece is forgotten, so that nobody does it later."""
    pool, done = threads.Pool(2), []
    with monkeypatch.context() as patch:
        patch.setattr(threads, "_threads", NoThreads(0))
        with pytest.raises(RuntimeError, match="can't start"):
            pool.submit(done.append, "refused")
    pool.submit(done.append, "taken").result(60)
    assert done == ["taken"]


def test_a_piece_that_is_done_while_a_pool_gets_no_thread_is_done(monkeypatch):
    """The only other thread may do it meanwhile, and end."""
    pool, ready = threads.Pool(2), threading.Event()
    pool.submit(ready.wait, 60)

    def scarce(_):
        ready.set()
        while pool._threads > 1 and not pool._lock.locked():
            pass
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "begin", scarce)
    assert pool.submit(pow, 2, 3).result(60) == 8
