"""A clock that jumps: time passes only while every thread waits, so that wall time does not depend on the machine.

Call `virtual_time` before the library makes its event loop. Then its loop never sleeps: when nothing is ready, no
thread of the process has anything left to do, and a timer is due later, the loop's clock is moved to that timer. What
threads and models compute takes no time at all, what they wait for takes exactly as long as they say. So the time
between two readings of the clock is the critical path of the answers.

That nobody has anything left to do is read from Linux: every other thread sleeps in the kernel, and has not computed
since the last look. The loop looks several times and lets the others run in between: a thread that was just woken is no
longer asleep, and one that waits for the interpreter's lock gets it. The threads are those that Linux knows, not those
that `threading` does, to which one that begins or ends does not belong yet or any more: on a busy machine it may have
to wait for the processor for longer than all looks take, and who waits for it sleeps.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import threading
import time
from pathlib import Path
from typing import Any

__all__ = ["Clock", "virtual_time"]

LOOKS = 3
"""So often in a row nobody may have anything to do before time goes on."""

DIGITS = 9
"""Of the seconds: a moment is equal to itself, whatever steps time came there by. A nanosecond is asyncio's own."""


class Clock:
    """The time of one event loop, in seconds from 0."""

    def __init__(self) -> None:
        self.now = 0.0


class _Selector(selectors.DefaultSelector):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        looks, before = 0, _asleep()
        while looks < LOOKS:
            if events := super().select(0.001):  # lets the others run, too
                return events
            now = _asleep()
            looks, before = looks + 1 if now is not None and now == before else 0, now
        if timeout is None:  # there is no timer: whatever comes next comes from outside
            return super().select(0.05)
        self._clock.now = round(self._clock.now + timeout, DIGITS)
        return []


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: Clock) -> None:
        self._own = clock
        super().__init__(_Selector(clock))

    def time(self) -> float:
        return self._own.now


class _Policy(asyncio.DefaultEventLoopPolicy):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return _Loop(self._clock)


def virtual_time() -> Clock:
    """Give every event loop that is made from now on the clock that is returned.

    Raises:
        OSError: this is no Linux.
    """
    if not Path("/proc/self/task").is_dir():
        raise OSError("the virtual clock reads from Linux what threads do; use --real elsewhere")
    clock = Clock()
    asyncio.set_event_loop_policy(_Policy(clock))
    return clock


def _asleep() -> dict[str, float] | None:
    """How long each other thread has computed so far; None when one of them is not asleep."""
    found: dict[str, float] = {}
    own = str(threading.get_native_id())
    for thread in os.listdir("/proc/self/task"):
        if thread == own:
            continue
        try:
            state = Path(f"/proc/self/task/{thread}/stat").read_bytes().rpartition(b") ")[2][:1]
            found[thread] = time.clock_gettime(~int(thread) << 3 | 6)  # the kernel's number for that thread's CPU clock
        except OSError:  # it has just ended
            return None
        if state != b"S":
            return None
    return found
