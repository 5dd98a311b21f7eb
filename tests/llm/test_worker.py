import asyncio
import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from textgrad_engine.llm.worker import Closed, Worker


def test_work_is_done_in_order_and_the_last_of_all_behind_it():
    """What was asked for before the end is still done."""
    done = []
    worker = Worker("w", lambda: done.append("last"))
    for number in range(50):
        worker.post(done.append, number)
    worker.close()
    worker.close()
    worker.join()
    assert done == [*range(50), "last"]


def test_an_error_is_that_of_who_waits():
    """The thread goes on."""
    worker = Worker("w", lambda: None)
    with pytest.raises(ZeroDivisionError):
        worker.run_here(lambda: 1 // 0)

    async def main():
        with pytest.raises(KeyError):
            await worker.run({}.__getitem__, "a")
        return await worker.run(len, "abc")

    worker.post(lambda: 1 // 0)
    assert asyncio.run(main()) == 3
    worker.close()


def test_after_its_end_nothing_is_taken():
    """A late call must not wait for ever."""
    worker = Worker("w", lambda: None)
    worker.close()
    worker.join()
    worker.post(pytest.fail)
    with pytest.raises(RuntimeError, match="closed"):
        worker.run_here(int)
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(worker.run(int))


def test_work_that_is_given_while_it_is_closed_is_refused():
    """It may come to lie behind the end, where nothing is done any more; who waits for it must hear that."""
    worker = Worker("w", lambda: None)
    jobs = worker._jobs

    class Slow:
        def put(self, job):
            worker._jobs = jobs
            worker.close()
            worker.join()
            jobs.put(job)

    worker._jobs = Slow()
    with pytest.raises(Closed):
        asyncio.run(asyncio.wait_for(worker.run(int), 10))


def test_who_gives_up_before_the_work_begins_cancels_it():
    """Nobody wants it any more."""
    gate, done = threading.Event(), []
    worker = Worker("w", lambda: None)
    worker.post(gate.wait)

    async def main():
        task = asyncio.ensure_future(worker.run(done.append, 1))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    gate.set()
    assert worker.run_here(lambda: done) == []
    worker.close()


def test_what_was_done_is_let_go():
    """The thread keeps nothing of the last work alive while it waits for more."""

    class Big:
        pass

    worker, big = Worker("w", lambda: None), Big()
    gone = weakref.ref(big)
    worker.run_here(lambda held=big: None)
    del big
    worker.run_here(int)
    gc.collect()
    assert gone() is None
    worker.close()


def test_it_may_be_ended_while_an_executor_starts_a_thread(monkeypatch):
    """A collection there finds a lock taken that `submit` would wait for: a deadlock that was met in practice."""
    ended, executor = [], ThreadPoolExecutor(1)
    worker = Worker("w", lambda: ended.append(True))
    begin = threading.Thread.start

    def start(thread):
        worker.close()
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    assert executor.submit(int).result(timeout=60) == 0
    worker.join()
    assert ended == [True]
    executor.shutdown()


def test_the_end_of_the_interpreter_waits_for_the_work():
    """What was paid for is written down, also when nobody closes the cache."""
    script = (
        "from textgrad_engine.llm.worker import Worker\n"
        "worker = Worker('w', lambda: print('closed', flush=True))\n"
        "for number in range(3):\n"
        "    worker.post(lambda: (sum(range(10**6)), print('done', flush=True)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["done"] * 3 + ["closed"], "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_leaves_it_alone():
    """The thread is the parent's; to end it there would close the parent's file."""
    done = []
    worker = Worker("w", lambda: done.append("last"))
    pid = worker.pid
    worker.pid = -1  # as in a child
    worker.close()
    assert done == []
    worker.pid = pid
    worker.close()
    worker.join()
    assert done == ["last"]
